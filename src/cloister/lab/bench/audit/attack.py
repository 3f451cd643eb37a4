"""Distinguishing attack: many releases of two neighbouring tables, and a lower bound on epsilon.

For a set S of releases chosen beforehand, (epsilon, delta) privacy says P(S) <= e^epsilon Q(S) + delta. Both
probabilities are bounded by Clopper and Pearson, exactly, so that

    epsilon >= log((P_low - delta) / Q_high)

holds with the stated confidence, whatever the noise is. S is chosen on other releases than it is tested on: a
half-space of a few figures that do not depend on the centres' order, or of their linear discriminant. Both tables are
released with the same seeds: an entrant that keeps its promise for each public seed keeps it for their mixture, but a
public start of another seed would tell the tables apart without any row.

**Power.** The bound is far below the true epsilon if the centres show little of what was released on the way. The same
attack on the same entrant with twice the budget (then four and eight times) says what it would have seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import final

import attrs
import numpy as np

from cloister.core.types import Floats
from cloister.lab.bench.audit.form import NO_GUARANTEE
from cloister.lab.bench.audit.scenarios import COUNT, Scenario, scenarios
from cloister.lab.bench.audit.subject import AuditTable, Subject
from cloister.lab.bench.audit.verdicts import Verdict, failed, not_applicable, passed
from cloister.lab.bench.running import RunFailure
from cloister.testing.statistics import HalfSpace, bounds_by_hits

NAME = "attack"

EPSILONS = ((2000, 3.0), (300, 1.0), (0, 0.3))
"""Budget of the attacked releases, by the least number of releases: few of them cannot show a large epsilon."""

ALARM = 1e-3
"""Maximum probability that the attack blames an entrant that keeps its promise."""

CHOOSING = 0.3
"""Share of the releases on which the set is chosen."""

QUANTILES = np.linspace(0.02, 0.98, 49)

CLIPPED = 1e-9
"""Distance from a bound, -1 or 1, below which a coordinate counts as clipped to it."""

MULTIPLES = (2, 4, 8)
"""Budgets of the measurement of power, in units of the budget given."""

TRIES = 3
"""Runs after which a failure on one table alone counts as telling."""


@final
@attrs.frozen
class EpsilonBound:
    """Lower bound on epsilon. Args: epsilon, scenario, event (in words), hits (of each table), tested (releases)."""

    epsilon: float
    scenario: str
    event: str
    hits: tuple[int, int]
    tested: int


def attack(subject: Subject, releases: int, step: Callable[[], None], measured: bool = True) -> Verdict:
    """Return the verdict of the attack.

    Args:
        subject: the entrant.
        releases: number of releases of each table.
        step: called as each table is done.
        measured: whether the attack's power is measured, too.
    """
    facts = subject.entrant.facts
    if not facts.private:
        return not_applicable(NAME, NO_GUARANTEE)
    bounds, refused, given = list[tuple[EpsilonBound, Scenario]](), list[str](), attacked_epsilon(releases)
    for scenario in scenarios(facts.relation):
        outcome = _attacked(subject, scenario, given, releases, step)
        if isinstance(outcome, Verdict):
            return outcome
        if isinstance(outcome, RunFailure):
            refused.append(f"{scenario.name}: {outcome.text}")
            continue
        bounds.append((outcome, scenario))
        if outcome.epsilon > given:
            break
    if not bounds:
        return not_applicable(NAME, f"it runs on none of the attack's tables: {'; '.join(refused)}")
    best, scenario = max(bounds, key=lambda pair: pair[0].epsilon)
    figures = {**attrs.asdict(best), "given": given, "confidence": 1 - ALARM, "releases": releases}
    sentence = (
        f"epsilon is at least {max(best.epsilon, 0):.2f} ({1 - ALARM:.1%} confidence, {releases:,} releases of each "
        f"table, scenario '{best.scenario}'), given was {given:g}"
    )
    if best.epsilon > given:
        return failed(NAME, sentence, **figures)
    if not measured:
        return passed(NAME, f"{sentence}; what the attack would have seen was not measured", sees=None, **figures)
    sees = power(subject, scenario, given, releases, step)
    seen = f"would see {sees} times the budget" if sees else f"is blind to {MULTIPLES[-1]} times the budget"
    return passed(NAME, f"{sentence}; the attack {seen}", sees=sees, **figures)


def attacked_epsilon(releases: int) -> float:
    """Return the budget at which so many releases are attacked."""
    return next(epsilon for least, epsilon in EPSILONS if releases >= least)


def power(subject: Subject, scenario: Scenario, given: float, releases: int, step: Callable[[], None]) -> int | None:
    """Return the least multiple of the budget at which the attack would have blamed the entrant; None: none of them."""
    for multiple in MULTIPLES:
        outcome = _attacked(subject, scenario, multiple * given, releases, step)
        if isinstance(outcome, EpsilonBound) and outcome.epsilon > given:
            return multiple
    return None


def _attacked(
    subject: Subject, scenario: Scenario, epsilon: float, releases: int, step: Callable[[], None]
) -> EpsilonBound | RunFailure | Verdict:
    """Attack one scenario. Returns a verdict if one of the tables alone makes the entrant fail."""
    tables = list[Floats | RunFailure]()
    for sample in (scenario.without, scenario.having):
        tables.append(subject.releases(sample, epsilon, releases))
        step()
    without, having = tables
    if isinstance(without, RunFailure) and isinstance(having, RunFailure):
        return without
    if isinstance(without, RunFailure) or isinstance(having, RunFailure):
        failure, sample = (without, scenario.without) if isinstance(without, RunFailure) else (having, scenario.having)
        assert isinstance(failure, RunFailure)
        if _fails(subject, sample, epsilon):
            return failed(NAME, f"scenario '{scenario.name}': it fails on one of two neighbours: {failure.text}")
        return failure
    return lower_bound(having, without, subject.delta, scenario.name)


def _fails(subject: Subject, sample: AuditTable, epsilon: float) -> bool:
    return all(isinstance(subject.run(sample, epsilon, seed=50 + i), RunFailure) for i in range(TRIES))


def lower_bound(having: Floats, without: Floats, delta: float, scenario: str = "") -> EpsilonBound:
    """Return a lower bound on epsilon, at confidence 1 - ALARM / COUNT.

    Args:
        having: (releases, k, d) centres on one of two neighbouring tables.
        without: the same on the other.
        delta: of the guarantee.
        scenario: name, for the record.
    """
    names, first = figures_of(having)
    _, second = figures_of(without)
    choosing = int(CHOOSING * len(having))
    directions = np.column_stack([np.eye(len(names)), _discriminant(first[:choosing], second[:choosing])])
    best: tuple[float, TestedSet | None] = (-math.inf, None)
    for name, direction in zip([*names, "linear discriminant"], directions.T, strict=True):
        along = [table[:choosing] @ direction for table in (first, second)]
        for event in _events(name, direction, np.unique(np.quantile(np.concatenate(along), QUANTILES))):
            found = event.bound(first[:choosing], second[:choosing], delta)
            best = max(best, (found, event), key=lambda pair: pair[0])
    tested, (_, chosen) = len(having) - choosing, best
    if chosen is None:
        return EpsilonBound(0.0, scenario, "no event", (0, 0), tested)
    rest = first[choosing:], second[choosing:]
    return EpsilonBound(chosen.bound(*rest, delta), scenario, chosen.name, chosen.hits(*rest), tested)


@final
@attrs.frozen(eq=False)
class TestedSet:
    """Set of releases that is likelier on one table. Args: half_space, flipped (likelier without the row)."""

    half_space: HalfSpace
    flipped: bool

    @property
    def name(self) -> str:
        """The set, in words."""
        return self.half_space.name

    def hits(self, having: Floats, without: Floats) -> tuple[int, int]:
        """Return the numbers of releases (n, figures) of each table in the set."""
        return int(self.half_space.contains(having).sum()), int(self.half_space.contains(without).sum())

    def bound(self, having: Floats, without: Floats, delta: float) -> float:
        """Return the lower bound on epsilon that the set shows."""
        hits = self.hits(having, without)
        often, rarely = hits[::-1] if self.flipped else hits
        low, high = bounds_by_hits(len(having), COUNT, ALARM)
        return math.log((low[often] - delta) / high[rarely]) if low[often] > delta else -math.inf


def _events(name: str, direction: Floats, thresholds: Floats) -> Iterator[TestedSet]:
    for threshold in thresholds.tolist():
        for complement in (False, True):
            words = f"{name} {'below' if complement else 'at least'} {threshold:.4g}"
            half_space = HalfSpace(words, direction, threshold, complement)
            yield from (TestedSet(half_space, flipped) for flipped in (False, True))


def figures_of(centers: Floats) -> tuple[list[str], Floats]:
    """Return names and values (releases, figures) of figures that do not depend on the order of the centres.

    Args:
        centers: (releases, k, d).
    """
    along = np.sort(centers.mean(axis=2), axis=1)
    nearest = np.sqrt(((centers - 1.0) ** 2).sum(axis=2)).min(axis=1)
    lowest = centers.min(axis=2).max(axis=1)
    highest = centers.max(axis=2).min(axis=1)
    largest = np.abs(centers).max(axis=(1, 2))
    clipped = (np.abs(np.abs(centers) - 1) < CLIPPED).sum(axis=(1, 2))
    names = [f"coordinate mean of centre {i + 1} in order" for i in range(along.shape[1])]
    names += ["distance of the nearest centre to the upper corner", "greatest of the centres' least coordinates"]
    names += ["least of the centres' greatest coordinates", "largest size of a coordinate"]
    names += ["number of coordinates at a bound"]
    return names, np.column_stack([along, nearest, lowest, highest, largest, clipped])


def _discriminant(first: Floats, second: Floats) -> Floats:
    """Return Fisher's linear discriminant of two samples (n, figures)."""
    spread = np.cov(first.T) + np.cov(second.T)
    ridge = 1e-9 * max(float(np.trace(spread)), 1e-300) * np.eye(len(spread))
    return np.asarray(np.linalg.lstsq(spread + ridge, first.mean(axis=0) - second.mean(axis=0), rcond=None)[0])

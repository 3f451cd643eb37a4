"""Audits of whole runs: an adversary who sees every look, knows all rows but one (or one user's), and tests which.

She works out, look by look, what either data set would have answered exactly, under the frame, centres and radii that
the run has released by then. Their difference over the noise, summed over all looks, is the best test there is (the
likelihood ratio of Gaussian noise), and it says how much privacy the run gives her, as a mu:

* Realised: the root of the squared differences over the declared variances. Its square is at most the budget, mu^2, in
  every run: sensitivities, frames, clipping, shares and the second stage, without statistics.
* Seen: what her guesses are worth, at least (Clopper and Pearson at 99.9%): not more than the budget. So few runs would
  not show a factor of 1.2 this way; the variance of all answers does.

Coins are seeded: nothing fails by chance.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import attrs
import numpy as np
import pytest
from scipy.stats import beta

from cloister.accounting import budgeting as accounting
from cloister.accounting.composition import Spent
from cloister.accounting.mixed import epsilon_of_mixed
from cloister.core.domains import Ball, Box
from cloister.core.frames import cube
from cloister.core.questions import OpenedQuestion
from cloister.core.randomness import NoiseRng
from cloister.core.record import AGREED, Lookup
from cloister.core.session import Session
from cloister.core.types import Floats, Ints
from cloister.plugins.methods.clipping import ClippedOffsets
from cloister.plugins.populations.arrays import Arrays
from cloister.run import opening as running
from cloister.run.fit import fit, source
from cloister.run.request import Request, prepare
from tests.asking import asking

CROWD = np.random.default_rng(3).normal(0.2, 0.1, (60, 2))
"""What both data sets have."""

FAR = np.array([[1e15, -1e15]])
"""The row that is there or not, or all rows of that user: clipped to a corner, so that every question has it whole."""

OWNED, KEPT = 6, 4
"""Rows of that user, and those of them that may count."""

RUNS = 24
"""Of each data set."""

TIGHT = {"hst-means": 0.7}
"""Parts of the budget's mu that her row uses, where it is not all: hst-means looks at a part of its tree."""

TIGHT_MIXED = {
    "fastlloyd": 0.6,
    "hst-means": 0.5,
    "nearest-centers": 0.3,
    "private-lloyd-median": 0.8,
    "tree-coreset-lsh": 0.8,
    "tree-means": 0.6,
    "weighted-centers": 0.3,
}
"""The same of epsilon, where some looks are in Laplace noise: other methods drop her row by its radius, or look at the
part of a tree where it is not."""

CASES: dict[str, dict[str, Any]] = {
    "grid-means": {"method": "grid-means"},
    "radius-means": {"method": "radius-means"},
    "shrunk-lloyd": {"method": "shrunk-lloyd"},
    "hst-means": {"method": "hst-means"},
    "auto, counted": {"rows": None},
    "zoom": {"bounds": ((-64, 64), (-8, 8)), "zoom": 0.3, "scale": "bounds", "method": "shrunk-lloyd"},
    "unknown": {"bounds": "unknown", "rows": None, "zoom": 0.3, "method": "shrunk-lloyd"},
    "users": {"rows_per_user": KEPT, "method": "shrunk-lloyd"},
    "users, zoom, counted": {"rows_per_user": KEPT, "rows": None, "zoom": 0.3, "bounds": (-64, 64)},
}


DEFAULTS: dict[str, Any] = {
    "k": 3,
    "epsilon": 20.0,
    "delta": 1e-5,
    "bounds": (-1, 1),
    "rows": 60,
    "zoom": "off",
    "scale": "none",
}


def request(**changes: Any) -> Request:
    return asking(**{**DEFAULTS, **changes})


def exact(part: OpenedQuestion, points: Ints, look: Lookup) -> Floats:
    """What these lattice points add to the buckets of a look, in lattice units."""
    buckets = part.cells.locate(points)
    where = buckets[:, look.level]
    values = np.ones((len(points), 1)) if part.vectors is None else part.vectors.values(points, buckets)
    found = np.zeros((part.cells.space.sizes[look.level], values.shape[1]))
    np.add.at(found, where[where >= 0], values[where >= 0])
    wanted: Floats = found[look.ids]
    return wanted


def variance(part: OpenedQuestion) -> float:
    """Of one noised integer in lattice units, by what the event declares: (sensitivity / mu)^2."""
    (event,) = part.channel.events
    assert event.spent.measure == "gaussian"
    size = math.sqrt(part.cells.space.levels) if part.vectors is None else part.vectors.bound.l2
    return size**2 / event.spent.amount


def guessed(session: Session[Any], common: Floats, hers: Floats) -> tuple[float, float, Floats]:
    """The log likelihood ratio of her rows being there, in standard errors; the realised mu; and what all answers
    differ from those without her, in standard errors."""
    ratio, square, away = 0.0, 0.0, list[Floats]()
    for look in session.record.lookups:
        if look.error or look.question == AGREED:  # which follows from the others
            continue
        round = session.rounds[look.round]
        part = round.parts[look.question]
        without, more = (exact(part, round.domain.snap(rows), look) for rows in (common, hers))
        values = look.values.reshape(without.shape) / unit(part, round.domain)
        noise = variance(part)
        ratio += float(((values - without) * more).sum() / noise)
        square += float((more**2).sum() / noise)
        away.append(((values - without) / math.sqrt(noise)).ravel())
    return ratio / math.sqrt(square), math.sqrt(square), np.concatenate(away)


def unit(part: OpenedQuestion, lattice: Any) -> float:
    """A lattice step in the units of this question's answers."""
    framed = not isinstance(lattice, (Box, Ball))
    return 1.0 if part.vectors is None else float((cube(lattice.dimension) if framed else lattice).unit)


def played(case: str, runs: int, there: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[Floats, Floats, Floats]:
    """What ``guessed`` finds in so many runs. Args: there (whether her rows are)."""
    changes, sessions = CASES[case], list[Session[Any]]()

    def spied(*args: Any, **more: Any) -> Session[Any]:
        sessions.append(Session(*args, **more))
        return sessions[-1]

    monkeypatch.setattr(running, "Session", spied)
    of_users = "rows_per_user" in changes
    rows = np.concatenate([CROWD, np.repeat(FAR, OWNED if of_users else 1, axis=0)]) if there else CROWD
    users = np.minimum(np.arange(len(rows)), len(CROWD)) if of_users else None
    hers = np.repeat(FAR, KEPT if of_users else 1, axis=0)
    for seed in range(runs):
        noise = NoiseRng.for_tests(2 * seed + there)
        fit(request(**changes, seed=seed), source(rows, users=users), noise=noise)
    guesses, realised, away = zip(*(guessed(session, CROWD, hers) for session in sessions), strict=True)
    return np.array(guesses), np.array(realised), np.concatenate(away)


def promised(case: str) -> float:
    """The budget's mu, of one row or of a user."""
    plan = prepare(request(**CASES[case]), ["a", "b"])
    assert plan.budget.measure == "gaussian"
    return math.sqrt(plan.total.paid(plan.budget).amount)


def seen(without: Floats, there: Floats, mu: float) -> float:
    """A lower bound on mu: guesses above mu / 2 are of rows that are there. Each of two errors is bounded at 99.95%."""
    hits, alarms, n = int((there > mu / 2).sum()), int((without > mu / 2).sum()), len(there)
    power, level = beta.ppf(0.0005, hits, n - hits + 1), beta.ppf(0.9995, alarms + 1, n - alarms)
    return NormalDist().inv_cdf(power) - NormalDist().inv_cdf(level)


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES)
def test_no_run_gives_an_adversary_more_than_its_budget(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mu = promised(case)
    without, realised, away = played(case, RUNS, False, monkeypatch)
    there, too, _ = played(case, RUNS, True, monkeypatch)
    assert max(realised.max(), too.max()) <= mu * (1 + 1e-6)
    assert max(realised.max(), too.max()) > TIGHT.get(case, 0.9) * mu, "not the worst case: the audit sees little"
    assert seen(without, there, mu) < mu
    assert abs((there - too).mean()) < 5 / math.sqrt(RUNS), "not only the rows that may count were there"
    assert abs((away**2).mean() - 1) < 5 * math.sqrt(2 / len(away))


@pytest.mark.thorough
@pytest.mark.parametrize("case", ["auto, counted", "zoom", "users"])
def test_noise_that_is_too_small_by_a_factor_of_1_2_is_seen(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = NoiseRng.discrete_gaussian
    monkeypatch.setattr(NoiseRng, "discrete_gaussian", lambda rng, sigma, size: honest(rng, sigma / 1.2, size))
    _, _, away = played(case, RUNS, False, monkeypatch)
    assert 1 - (away**2).mean() > 5 * math.sqrt(2 / len(away))


@pytest.mark.thorough
@pytest.mark.parametrize("case", ["grid-means", "radius-means", "users", "zoom"])
def test_vectors_that_are_too_long_by_a_fifth_are_seen(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the budget is used, or nearly: what is spent beyond it shows in every run."""
    honest = ClippedOffsets.values
    monkeypatch.setattr(ClippedOffsets, "values", lambda own, rows, ids: honest(own, rows, ids) * 6 // 5)
    _, realised, _ = played(case, 2, False, monkeypatch)
    assert realised.max() > promised(case)


@pytest.mark.thorough
def test_rows_of_a_user_that_should_not_count_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Arrays.keep
    monkeypatch.setattr(Arrays, "keep", lambda own, most, rng: honest(own, OWNED, rng))
    there, realised, _ = played("users", RUNS, True, monkeypatch)
    assert (there - realised).mean() > 5 / math.sqrt(RUNS)


MIXED = (
    "fastlloyd",
    "gauss-lloyd",
    "grid-means",
    "grid-median",
    "hst-means",
    "nearest-centers",
    "one-round-lsh",
    "private-lloyd-median",
    "radius-means",
    "shrunk-lloyd",
    "tree-coreset-lsh",
    "tree-means",
    "weighted-centers",
)
"""Methods whose counts may be in Laplace noise beside Gaussian sums."""


def losses(session: Session[Any], common: Floats, hers: Floats) -> tuple[list[float], float, list[Floats]]:
    """What a run gives her at most: an epsilon for each look in Laplace noise, and the mu of all that are Gaussian; and
    what the answers in Laplace noise differ from those without her, in standard deviations."""
    pures, square, away = list[float](), 0.0, list[Floats]()
    for look in session.record.lookups:
        if look.error or look.question == AGREED:
            continue
        round = session.rounds[look.round]
        part = round.parts[look.question]
        without, more = (exact(part, round.domain.snap(rows), look) for rows in (common, hers))
        (event,) = part.channel.events
        levels = part.cells.space.levels
        if math.isfinite(event.pure):
            assert part.vectors is None
            scale = levels / event.pure
            pures.append(float(np.abs(more).sum()) / scale)
            deviation = math.sqrt(2 * math.exp(-1 / scale)) / (1 - math.exp(-1 / scale))  # of two-sided geometric noise
            away.append(((look.values.reshape(without.shape) - without) / deviation).ravel())
        else:
            size = math.sqrt(levels) if part.vectors is None else part.vectors.bound.l2
            square += float((more**2).sum()) * 2 * event.spent.amount / size**2
    return pures, math.sqrt(square), away


def worth(method: str, monkeypatch: pytest.MonkeyPatch) -> tuple[float, float, Floats]:
    """The epsilon, at the run's delta, of all that she sees in the worst of two runs; that of its promise; and how far
    answers in Laplace noise are from the truth, over six runs."""
    sessions = list[Session[Any]]()

    def spied(*args: Any, **more: Any) -> Session[Any]:
        sessions.append(Session(*args, **more))
        return sessions[-1]

    monkeypatch.setattr(running, "Session", spied)
    components = {"counts": "discrete-laplace", "sums": "discrete-gaussian"}
    asked = request(method=method, components=components, epsilon=4.0)
    for seed in range(6):
        fit(attrs.evolve(asked, seed=seed), source(CROWD), noise=NoiseRng.for_tests(seed))
    found, away = list[float](), list[Floats]()
    for session in sessions:
        pures, mu, more = losses(session, CROWD, FAR)
        found.append(epsilon_of_mixed([p for p in pures if p > 0], mu, 1e-5))
        away.extend(more)
    return max(found), 4.0, np.concatenate(away)


@pytest.mark.thorough
@pytest.mark.parametrize("method", MIXED)
def test_no_run_of_pure_and_gaussian_looks_gives_an_adversary_more_than_epsilon(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every look together, priced as one: epsilon at delta is kept, and where her row is in every look, used up."""
    seen, promised, away = worth(method, monkeypatch)
    assert seen <= promised
    assert seen > TIGHT_MIXED.get(method, 0.95) * promised, "not the worst case: the audit sees little"
    assert abs((away**2).mean() - 1) < 5 * math.sqrt(5 / len(away))


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["grid-means", "shrunk-lloyd"])
def test_a_share_that_is_scaled_too_far_is_seen(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a factor of 1.1 in every noise: no accountant stands in its way here."""
    honest = accounting._factor
    monkeypatch.setattr(accounting, "_factor", lambda spent, total: 1.21 * honest(spent, total))
    monkeypatch.setattr(Spent, "epsilon", lambda own, delta: 0.0)
    seen, promised, _ = worth(method, monkeypatch)
    assert seen > promised

"""Checks of single coins, where little may be told: one that falls on its wrong side seldom, and tells much by that.

*Reports.* At epsilon 0.2 a coin tells the truth with chance 0.5498; one that also tells it in 2.5% of its other draws
does so with 0.5610, which is epsilon 0.245. Where more may be told, as in ``one_report_hides_its_row``, the same fault
is lost in what is allowed. One event is chosen on ``PILOT`` reports of each of two rows that differ as much as rows can
(among outcomes by their likelihood ratio or, where there are too many, half-spaces along what the rows move), and
judged on ``PEOPLE`` others. With chances p = 0.5610 and q = 0.4390, p - e^0.2 q is 0.0248; the bounds of Clopper and
Pearson take 5.4 standard errors of each, 0.0149 together, and the estimate itself has 0.0020: a coin that is off by
2.5% is missed less than once in a million times, one that is off by 7% never. Where a report is more than a coin, its
events are rarer, and smaller faults may be missed. An honest oracle is blamed once in a million times (Bonferroni; the
bounds are exact).

*Noise.* A coin gives it its sign. ``RELEASED`` numbers, none of which holds a row, are above 0 as often as below it,
all together and those of every size. A sign that is changed in 2.5% of the draws on one side moves 1.25% of them: 10
standard errors, of which an alarm takes 5.4 (once in a million times).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from cloister.core.buckets import BucketedVectors
from cloister.core.lattice import Bound
from cloister.core.randomness import NoiseRng
from cloister.core.types import Bools, Floats, Ids, Ints
from cloister.testing.check import require, role_of
from cloister.testing.checks.declarations import spent
from cloister.testing.checks.oracle_local import columns_of, ranges
from cloister.testing.probes import Probe, Shape, budget_of, worst_vectors
from cloister.testing.statistics import deviations, proportion

EPSILON = 0.2
"""What may be told: so little that a coin says nearly nothing."""

PILOT, PEOPLE = 40_000, 160_000
"""Reports of each row that the event is chosen by, and that it is judged on."""

USERS, TRIED = 8, 5_000
"""User numbers, whose public coins tell rows more or less apart; and reports of each row by which one is chosen."""

OUTCOMES = 2_000
"""Most outcomes that are told apart one by one."""

COMPARISONS = 16
"""More than one check makes."""

RELEASED, SIZES = 180_000, 4
"""Released numbers, and ranges of their size."""

Reports: TypeAlias = Floats
"""Numbers (n, m) of n reports."""


def a_coin_seldom_wrong_is_found(oracle: Any) -> None:
    """Where a report may tell little, it tells no more: no event is more probable for one of two rows than e^epsilon
    times what it is for the other, though a coin be wrong in one of forty draws only."""
    probe, rows = _opposites(oracle)
    user = max(range(USERS), key=lambda user: _apart(*(_sent(probe, row, user, TRIED) for row in rows)))
    sent = [_sent(probe, row, user, PILOT + PEOPLE) for row in rows]
    epsilon = spent(probe.channel.events).epsilon
    for one, other in (sent, sent[::-1]):
        inside = _likeliest(one, other, epsilon)
        low = proportion(int(inside[0].sum()), PEOPLE, COMPARISONS)[0]
        high = proportion(int(inside[1].sum()), PEOPLE, COMPARISONS)[1]
        require(
            low <= math.exp(epsilon) * high,
            f"{probe.shape}, epsilon {epsilon:.4g}, user {user}: an event has a probability of at least {low:.6g} for "
            f"one row and at most {high:.6g} for another: epsilon is at least {math.log(max(low, 1e-300) / high):.4g}",
        )


def _opposites(oracle: Any) -> tuple[Probe, Sequence[Ints | BucketedVectors]]:
    """A question of one level, and two rows: of two buckets, or of two vectors as far apart as the bound allows."""
    budget, first, last = budget_of("pure", EPSILON), np.zeros((1, 1), np.int64), np.full((1, 1), 1)
    if role_of(oracle) == "FrequencyOracle":
        return Probe.of(oracle, Shape((2,)), budget), (first, last)
    bound = Bound(1000, 2)
    vector = worst_vectors(bound)[:1]
    return (
        Probe.of(oracle, Shape((2,), bound), budget),
        (BucketedVectors(first, vector), BucketedVectors(first, -vector)),
    )


def _sent(probe: Probe, row: Ints | BucketedVectors, user: int, n: int) -> Reports:
    """Reports of so many people with this row and user number."""
    items = (
        BucketedVectors(np.repeat(row.buckets, n, 0), np.repeat(row.values, n, 0))
        if isinstance(row, BucketedVectors)
        else np.repeat(row, n, 0)
    )
    report = probe.channel.encode(items, np.full(n, user, np.uint64), NoiseRng.secret())
    columns = columns_of(report, n)
    numbers = [np.asarray(columns[name]).reshape(n, -1).astype(np.float64) for name in columns if name != "users"]
    return np.concatenate(numbers, axis=1)


def _apart(one: Reports, other: Reports) -> float:
    """By how much an event of two rows' reports is likelier for the first."""
    inside, beside = _event(one, other, one, other, EPSILON)
    return float(inside.mean() - beside.mean())


def _likeliest(one: Reports, other: Reports, epsilon: float) -> tuple[Bools, Bools]:
    """Which of the people judged are in the event that the pilots find too likely for the first row, if any is."""
    return _event(one[:PILOT], other[:PILOT], one[PILOT:], other[PILOT:], epsilon)


def _event(first: Reports, second: Reports, one: Reports, other: Reports, epsilon: float) -> tuple[Bools, Bools]:
    """Which reports of one row and the other are in an event: the one whose chance two pilots (first, second) find
    above e^epsilon times the second's by the most standard errors."""
    scores = _scores(first, second, (first, second, one, other))
    steps = np.unique(np.quantile(np.concatenate(scores[:2]), np.arange(1, 20) / 20))

    def beyond(t: float) -> float:
        p, q = (float((some >= t).mean()) for some in scores[:2])
        error = math.sqrt(p * (1 - p) + math.exp(2 * epsilon) * q * (1 - q))
        return (p - math.exp(epsilon) * q) / max(error, 1e-9)

    best = max(steps.tolist(), key=beyond)
    return scores[2] >= best, scores[3] >= best


def _scores(first: Reports, second: Reports, every: Sequence[Reports]) -> list[Floats]:
    """How much likelier each report is for the first row: by its outcome where there are few, else along what the
    rows move."""
    symbols = _symbols(every)
    if symbols is None:
        along = (first.mean(axis=0) - second.mean(axis=0)) / np.maximum(first.var(axis=0), 1e-12)
        return [some @ along for some in every]
    size = 1 + max(int(some.max()) for some in symbols)
    seen = [np.bincount(some, minlength=size) + 0.5 for some in symbols[:2]]
    likelier = np.log(seen[0] / seen[1])
    return [likelier[some] for some in symbols]


def _symbols(every: Sequence[Reports]) -> list[Ids] | None:
    """Outcomes as numbers from 0; None if there are many."""
    whole = np.concatenate(every)
    keys = np.zeros(len(whole), np.int64)
    for column in whole.T:
        _, places = np.unique(column, return_inverse=True)
        _, keys = np.unique(keys * (int(places.max()) + 1) + places, return_inverse=True)
        if keys.max() >= OUTCOMES:
            return None
    return np.split(keys.astype(np.uint64), np.cumsum([len(some) for some in every])[:-1])


def noise_falls_on_either_side_alike(oracle: Any) -> None:
    """Noise on nothing is above 0 as often as below it, all in all and among the numbers of every size: what an
    unbiased oracle adds is symmetric."""
    shape = Shape((RELEASED,)) if role_of(oracle) == "FrequencyOracle" else Shape((RELEASED // 2,), Bound(1000, 2))
    probe, rng = Probe.of(oracle, shape, budget_of(oracle.measure, EPSILON)), NoiseRng.secret()
    nothing = probe.items(np.zeros((0, 1), np.int64), np.zeros((0, probe.width), np.int64))
    noise = probe.values(probe.table(probe.summary(nothing, rng), rng)).ravel()
    noise = noise[noise != 0]
    require(len(noise) > RELEASED // 4, f"{shape}: {len(noise)} of {RELEASED} numbers have any noise")
    sizes = ranges([np.abs(noise)], SIZES)[0]
    for which, some in [("", noise), *((f" of size {i + 1} of {SIZES}", noise[sizes == i]) for i in range(SIZES))]:
        above, most = int((some > 0).sum()), deviations(COMPARISONS) * math.sqrt(len(some)) / 2
        require(
            abs(above - len(some) / 2) <= most + 1,
            f"{shape}: {above} of {len(some)} numbers{which} are above 0, which is {above / max(1, len(some)):.4f} of "
            f"them; {0.5 + most / max(1, len(some)):.4f} may be chance",
        )


COINS = (a_coin_seldom_wrong_is_found,)
"""For Local oracles with pure privacy."""

SIGNS = (noise_falls_on_either_side_alike,)
"""For Central oracles with noise that is not biased."""

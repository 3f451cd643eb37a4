"""Checks of single coins, where little may be told: one that falls on its wrong side seldom, and tells much by that.

*Reports.* At epsilon 0.2 a coin tells the truth with chance 0.5498; one that also tells it in 2.5% of its other draws
does so with 0.5610, which is epsilon 0.245. Where more may be told, as in ``one_report_hides_its_row``, the same fault
is lost in what is allowed. One event is chosen on ``PILOT`` reports of each of two rows that differ as much as rows can
and judged on ``PEOPLE`` others. With chances p = 0.5610 and q = 0.4390, p - e^0.2 q is 0.0248; the bounds of Clopper
and Pearson take 5.4 standard errors of each, 0.0084 together, and the estimate itself has 0.0011: a coin that is off by
2.5% is never missed.

A report of many outcomes, as a question of many buckets or columns may have, says as much by none of them as by a coin:
its event is a half-space along what the rows move, number by number, where a set is as many numbers as it has bits. Of
sets the best event is that one of two buckets is in and the other out, with chances near 0.28 and 0.22 where the coin
is off by 2.5%: 0.0122 above what is allowed, of which the bounds take 0.0073, five standard errors less. That is missed
less than once in a million times, a vector that is turned as often never. What is spread thinner than over two buckets
or one direction may be missed. Of Gaussian reports, whose delta is allowed besides, noise too small by 1.7 is found: by
1.2 it moves no event at this epsilon by more than delta and what is chance.

An honest oracle is blamed once in a million times (Bonferroni; the bounds are exact).

*Noise.* A coin gives it its sign. ``RELEASED`` numbers, none of which holds a row, are above 0 as often as below it,
all together and those of every size. A sign that is changed in 2.5% of the draws on one side moves 1.25% of them: 10
standard errors, of which an alarm takes 5.4 (once in a million times).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from cloister.core.buckets import BucketedVectors
from cloister.core.lattice import Bound
from cloister.core.randomness import NoiseRng
from cloister.core.types import Bools, Floats, Ids, Ints
from cloister.testing.check import require, role_of
from cloister.testing.checks.declarations import spent
from cloister.testing.checks.oracle_local import columns_of, ranges
from cloister.testing.probes import Probe, Shape, budget_of, repeated, worst_vectors
from cloister.testing.statistics import deviations, proportion

EPSILON = 0.2
"""What may be told: so little that a coin says nearly nothing."""

PILOT, PEOPLE = 100_000, 500_000
"""Reports of each row that the event is chosen by, and that it is judged on."""

USERS, TRIED = 8, 5_000
"""User numbers, whose public coins tell rows more or less apart; and reports of each row by which one is chosen."""

BUCKETS, DIMENSIONS = (2, 24), (2, 12)
"""Narrow questions, whose reports are a coin or two, and wide ones, whose reports may have many outcomes."""

OUTCOMES = 2_000
"""Most outcomes that are told apart one by one."""

CLEAR = 4.0
"""Standard errors by which a number's mean is another one for another row: what differs less is mostly chance."""

COMPARISONS = 16
"""More than one check makes."""

RELEASED, SIZES = 180_000, 4
"""Released numbers, and ranges of their size."""

Reports: TypeAlias = Floats
"""Numbers (n, m) of n reports."""


def a_coin_seldom_wrong_is_found(oracle: Any) -> None:
    """Where a report may tell little, it tells no more: no event is more probable for one of two rows than e^epsilon
    times what it is for the other, and delta, though a coin be wrong in one of forty draws only, and among many buckets
    or columns only."""
    for probe, rows in _opposites(oracle):
        user = max(range(USERS), key=lambda user: _apart(*(_sent(probe, row, user, TRIED) for row in rows)))
        pilots = [_sent(probe, row, user, PILOT) for row in rows]
        epsilon, delta = spent(probe.channel.events).epsilon, sum(event.delta for event in probe.channel.events)
        events = [_likelier(one, other, epsilon) for one, other in (pilots, pilots[::-1])]
        hits = np.zeros((2, 2), np.int64)
        for _ in range(PEOPLE // PILOT):
            for i, row in enumerate(rows):
                sent = _sent(probe, row, user, PILOT)
                hits[:, i] += [np.count_nonzero(event(sent)) for event in events]
        for (mine, others), which in zip((hits[0], hits[1, ::-1]), ("first", "second"), strict=True):
            low, high = proportion(int(mine), PEOPLE, COMPARISONS)[0], proportion(int(others), PEOPLE, COMPARISONS)[1]
            require(
                low <= math.exp(epsilon) * high + delta,
                f"{probe.shape}, epsilon {epsilon:.4g}, user {user}: an event has a probability of at least {low:.6g} "
                f"for the {which} row and at most {high:.6g} for the other: epsilon is at least "
                f"{math.log(max(low, 1e-300) / high):.4g}",
            )


def _opposites(oracle: Any) -> Iterator[tuple[Probe, Sequence[Ints | BucketedVectors]]]:
    """Questions of one level, narrow and wide, and two rows: of two buckets, or of two vectors as far apart as the
    bound allows."""
    budget, first, last = budget_of("pure", EPSILON), np.zeros((1, 1), np.int64), np.full((1, 1), 1)
    if role_of(oracle) == "FrequencyOracle":
        for size in BUCKETS:
            yield Probe.of(oracle, Shape((size,)), budget), (first, last)
        return
    for dimension in DIMENSIONS:
        bound = Bound(1000, dimension)
        vector = worst_vectors(bound)[:1]
        rows = BucketedVectors(first, vector), BucketedVectors(first, -vector)
        yield Probe.of(oracle, Shape((2,), bound), budget), rows


def _sent(probe: Probe, row: Ints | BucketedVectors, user: int, n: int) -> Reports:
    """Reports of so many people with this row and user number."""
    report = probe.channel.encode(repeated(row, n), np.full(n, user, np.uint64), NoiseRng.secret())
    columns = columns_of(report, n)
    numbers = [np.asarray(columns[name]).reshape(n, -1).astype(np.float64) for name in columns if name != "users"]
    return np.concatenate(numbers, axis=1)


def _apart(one: Reports, other: Reports) -> float:
    """By how much an event of two rows' reports is likelier for the first."""
    event = _likelier(one, other, EPSILON)
    return float(event(one).mean() - event(other).mean())


def _likelier(first: Reports, second: Reports, epsilon: float) -> Callable[[Reports], Bools]:
    """Which reports are in an event: the one whose chance two pilots find above e^epsilon times the second's by the
    most standard errors, of those that a score is above a threshold."""
    score = _by_outcome(first, second) or _along(first, second)
    scores = score(first), score(second)

    def beyond(t: float) -> float:
        p, q = (float((some >= t).mean()) for some in scores)
        error = math.sqrt(p * (1 - p) + math.exp(2 * epsilon) * q * (1 - q))
        return (p - math.exp(epsilon) * q) / max(error, 1e-9)

    steps = np.unique(np.quantile(np.concatenate(scores), np.arange(1, 20) / 20))
    best = max(steps.tolist(), key=beyond)
    return lambda sent: score(sent) >= best


def _by_outcome(first: Reports, second: Reports) -> Callable[[Reports], Floats] | None:
    """How much likelier a report is for the first row, by what the pilots found of its outcome; None if there are many
    outcomes."""
    if len(np.unique(_keys(first[: 2 * OUTCOMES]))) >= OUTCOMES:
        return None
    outcomes, which = np.unique(np.concatenate([_keys(first), _keys(second)]), return_inverse=True)
    if len(outcomes) >= OUTCOMES:
        return None
    seen = [np.bincount(some, minlength=len(outcomes)) + 0.5 for some in np.split(which, [len(first)])]
    likelier = np.log(seen[0] / seen[1])

    def score(sent: Reports) -> Floats:
        keys = _keys(sent)
        places = np.minimum(np.searchsorted(outcomes, keys), len(outcomes) - 1)
        return np.where(outcomes[places] == keys, likelier[places], 0.0)  # of what no pilot sent nothing is known

    return score


def _keys(sent: Reports) -> Ids:
    """A number for each report, by which outcomes are told apart. Two that share one are taken for one, which blames
    nobody."""
    bits = np.ascontiguousarray(sent).view(np.uint64)
    odd = np.random.default_rng(102).integers(2**63, size=sent.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    return np.asarray(((bits ^ (bits >> np.uint64(32))) * odd).sum(axis=1, dtype=np.uint64))


def _along(first: Reports, second: Reports) -> Callable[[Reports], Floats]:
    """How far a report lies along what the rows move: each of its numbers whose means are ``CLEAR`` standard errors
    apart in the pilots, in proportion to how far. Of a byte, in which sets travel, every bit is a number; so is what
    may be a negative number of 32 bits."""
    whole = np.concatenate([first, second])
    least, most, integers = whole.min(axis=0), whole.max(axis=0), (whole == np.rint(whole)).all(axis=0)
    sets = integers & (least >= 0) & (most > 1) & (most < 2**8)
    signed = integers & (least >= 0) & (most >= 2**31) & (most < 2**32)

    def numbers(sent: Reports) -> Floats:
        bits, turned = np.unpackbits(sent[:, sets].astype(np.uint8), axis=1).astype(np.float64), sent[:, signed]
        return np.concatenate([sent[:, ~sets], bits, np.where(turned < 2**31, turned, turned - 2**32)], axis=1)

    one, other = numbers(first), numbers(second)
    moved, spread = one.mean(axis=0) - other.mean(axis=0), one.var(axis=0) + other.var(axis=0) + 1e-12
    clear = np.abs(moved) * math.sqrt(len(one)) > CLEAR * np.sqrt(spread)
    weights = np.where(clear | ~clear.any(), moved / spread, 0.0)
    return lambda sent: numbers(sent) @ weights


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

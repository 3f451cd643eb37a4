"""Checks of single coins at a small epsilon, where a coin that is seldom biased shows.

*Reports.* At epsilon 0.2 a coin tells the truth with probability 0.5498; one that also does in 2.5% of its other draws
does so with 0.5610, which is epsilon 0.245. At a larger epsilon, as in ``one_report_hides_its_row``, the same fault is
lost in what is allowed. One event is chosen on ``PILOT`` reports of each of two rows that differ as much as rows can
and judged on ``PEOPLE`` others. With probabilities p = 0.5610 and q = 0.4390, p - e^0.2 q is 0.0248; the bounds of
Clopper and Pearson take 5.4 standard errors of each, 0.0084 together, and the estimate itself has 0.0011: a coin that
is off by 2.5% is never missed.

A report of many outcomes, as for many buckets or columns, reveals as much by none of them as a coin does: its event is
a half-space along what the rows move, number by number, where a set is as many numbers as it has bits. For sets the
best event is that one of two buckets is in and the other out, with probabilities near 0.28 and 0.22 where the coin is
off by 2.5%: 0.0122 above what is allowed, of which the bounds take 0.0073, five standard errors less. That is missed
less than once in a million times, a vector that is turned as often never. A fault spread over more than two buckets or
one direction may be missed. Of Gaussian reports, which are also allowed their delta, noise too small by 1.7 is
detected: by 1.2 it moves no event at this epsilon by more than delta and chance.

An honest oracle is blamed once in a million times (Bonferroni; the bounds are exact).

*Noise.* A coin gives it its sign. ``RELEASED`` numbers without a row are above 0 as often as below it, all together and
those of every size. A sign changed in 2.5% of the draws on one side moves 1.25% of them: 10 standard errors, of which
an alarm takes 5.4 (once in a million times).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from cloister.plugin import Bools, Bound, BucketedVectors, Floats, Ids, Ints, NoiseRng
from cloister.testing.check import require, role_of
from cloister.testing.checks.declarations import spent
from cloister.testing.checks.oracle_local import columns_of, ranges
from cloister.testing.probes import Probe, Shape, budget_of, repeated, worst_vectors
from cloister.testing.statistics import deviations, opposed_bounds

EPSILON = 0.2
"""Epsilon so small that an honest coin reveals nearly nothing."""

PILOT, PEOPLE = 100_000, 500_000
"""Reports of each row to choose the event on, and to judge it on."""

USERS, TRIALS = 8, 5_000
"""User numbers, whose public coins separate rows more or less, and reports of each row to choose one by."""

BUCKETS, DIMENSIONS = (2, 24), (2, 12)
"""Narrow questions, whose reports are a coin or two, and wide ones, whose reports may have many outcomes."""

OUTCOMES = 2_000
"""Maximum number of outcomes that are distinguished singly."""

CLEAR = 4.0
"""Standard errors by which a number's means must differ between rows: smaller differences are mostly chance."""

COMPARISONS = 16
"""Upper limit on the comparisons of one check."""

RELEASED, SIZES = 180_000, 4
"""Released numbers, and ranges of their size."""

Reports: TypeAlias = Floats
"""Numbers (n, m) of n reports."""


def a_coin_seldom_wrong_is_found(oracle: Any) -> None:
    """At a small epsilon no event is more probable for one row than e^epsilon times that for the other, plus delta.

    A coin that is wrong in one of forty draws breaks this, even if only among many buckets or columns.
    """
    for probe, rows in _opposites(oracle):
        user = max(
            range(USERS), key=lambda user: _distinguishability(*(_reports(probe, row, user, TRIALS) for row in rows))
        )
        pilots = [_reports(probe, row, user, PILOT) for row in rows]
        epsilon, delta = spent(probe.channel.events).epsilon, sum(event.delta for event in probe.channel.events)
        events = [_likelier(one, other, epsilon) for one, other in (pilots, pilots[::-1])]
        hits = np.zeros((2, 2), np.int64)
        for _ in range(PEOPLE // PILOT):
            for i, row in enumerate(rows):
                sent = _reports(probe, row, user, PILOT)
                hits[:, i] += [np.count_nonzero(event(sent)) for event in events]
        for (own_hits, other_hits), which in zip((hits[0], hits[1, ::-1]), ("first", "second"), strict=True):
            low, high = opposed_bounds(int(own_hits), int(other_hits), PEOPLE, COMPARISONS)
            require(
                low <= math.exp(epsilon) * high + delta,
                f"{probe.shape}, epsilon {epsilon:.4g}, user {user}: an event has a probability of at least {low:.6g} "
                f"for the {which} row and at most {high:.6g} for the other: epsilon is at least "
                f"{math.log(max(low, 1e-300) / high):.4g}",
            )


def _opposites(oracle: Any) -> Iterator[tuple[Probe, Sequence[Ints | BucketedVectors]]]:
    """Yield narrow and wide questions of one level, with two rows as far apart as possible."""
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


def _reports(probe: Probe, row: Ints | BucketedVectors, user: int, n: int) -> Reports:
    """Return reports of n people with this row and user number."""
    report = probe.channel.encode(repeated(row, n), np.full(n, user, np.uint64), NoiseRng.secret())
    columns = columns_of(report, n)
    numbers = [np.asarray(columns[name]).reshape(n, -1).astype(np.float64) for name in columns if name != "users"]
    return np.concatenate(numbers, axis=1)


def _distinguishability(one: Reports, other: Reports) -> float:
    """Return by how much an event of two rows' reports is likelier for the first."""
    event = _likelier(one, other, EPSILON)
    return float(event(one).mean() - event(other).mean())


def _likelier(first: Reports, second: Reports, epsilon: float) -> Callable[[Reports], Bools]:
    """Return the event, a score above a threshold, that best breaks the bound on the pilots.

    It has the first row's probability above e^epsilon times the second's by the most standard errors.
    """
    score = _by_outcome(first, second) or _along_change(first, second)
    scores = score(first), score(second)

    def beyond(t: float) -> float:
        p, q = (float((row_scores >= t).mean()) for row_scores in scores)
        error = math.sqrt(p * (1 - p) + math.exp(2 * epsilon) * q * (1 - q))
        return (p - math.exp(epsilon) * q) / max(error, 1e-9)

    steps = np.unique(np.quantile(np.concatenate(scores), np.arange(1, 20) / 20))
    best = max(steps.tolist(), key=beyond)
    return lambda sent: score(sent) >= best


def _by_outcome(first: Reports, second: Reports) -> Callable[[Reports], Floats] | None:
    """Return a score, the log-likelihood ratio of an outcome in the pilots; None if there are many outcomes."""
    if len(np.unique(_keys(first[: 2 * OUTCOMES]))) >= OUTCOMES:
        return None
    outcomes, which = np.unique(np.concatenate([_keys(first), _keys(second)]), return_inverse=True)
    if len(outcomes) >= OUTCOMES:
        return None
    pilot_counts = [np.bincount(codes, minlength=len(outcomes)) + 0.5 for codes in np.split(which, [len(first)])]
    likelier = np.log(pilot_counts[0] / pilot_counts[1])

    def score(sent: Reports) -> Floats:
        keys = _keys(sent)
        places = np.minimum(np.searchsorted(outcomes, keys), len(outcomes) - 1)
        return np.where(outcomes[places] == keys, likelier[places], 0.0)  # no pilot sent it

    return score


def _keys(sent: Reports) -> Ids:
    """Return a hash of each report; a collision joins two outcomes, which blames nobody."""
    bits = np.ascontiguousarray(sent).view(np.uint64)
    odd = np.random.default_rng(102).integers(2**63, size=sent.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    return np.asarray(((bits ^ (bits >> np.uint64(32))) * odd).sum(axis=1, dtype=np.uint64))


def _along_change(first: Reports, second: Reports) -> Callable[[Reports], Floats]:
    """Return a score, the position of a report along what the rows move.

    Counted are numbers whose means are ``CLEAR`` standard errors apart in the pilots, in proportion to how far. Of a
    byte, which sets are sent as, every bit is a number; integers that may be negative in 32 bits are read as signed.
    """
    pilots = np.concatenate([first, second])
    low, high, integers = pilots.min(axis=0), pilots.max(axis=0), (pilots == np.rint(pilots)).all(axis=0)
    sets = integers & (low >= 0) & (high > 1) & (high < 2**8)
    signed = integers & (low >= 0) & (high >= 2**31) & (high < 2**32)

    def numbers(sent: Reports) -> Floats:
        bits, raw = np.unpackbits(sent[:, sets].astype(np.uint8), axis=1).astype(np.float64), sent[:, signed]
        return np.concatenate([sent[:, ~sets], bits, np.where(raw < 2**31, raw, raw - 2**32)], axis=1)

    one, other = numbers(first), numbers(second)
    moved, variances = one.mean(axis=0) - other.mean(axis=0), one.var(axis=0) + other.var(axis=0) + 1e-12
    clear = np.abs(moved) * math.sqrt(len(one)) > CLEAR * np.sqrt(variances)
    weights = np.where(clear | ~clear.any(), moved / variances, 0.0)
    return lambda sent: numbers(sent) @ weights


def noise_falls_on_either_side_alike(oracle: Any) -> None:
    """Noise in empty buckets is above 0 as often as below it, overall and for every size of noise.

    An unbiased oracle's noise is symmetric.
    """
    shape = Shape((RELEASED,)) if role_of(oracle) == "FrequencyOracle" else Shape((RELEASED // 2,), Bound(1000, 2))
    probe, rng = Probe.of(oracle, shape, budget_of(oracle.measure, EPSILON)), NoiseRng.secret()
    noise = probe.release(probe.no_rows, rng).ravel()
    noise = noise[noise != 0]
    require(len(noise) > RELEASED // 4, f"{shape}: {len(noise)} of {RELEASED} numbers have any noise")
    sizes = ranges([np.abs(noise)], SIZES)[0]
    for which, part in [("", noise), *((f" of size {i + 1} of {SIZES}", noise[sizes == i]) for i in range(SIZES))]:
        above, band = int((part > 0).sum()), deviations(COMPARISONS) * math.sqrt(len(part)) / 2
        require(
            abs(above - len(part) / 2) <= band + 1,
            f"{shape}: {above} of {len(part)} numbers{which} are above 0, which is {above / max(1, len(part)):.4f} of "
            f"them; {0.5 + band / max(1, len(part)):.4f} may be chance",
        )


COINS = (a_coin_seldom_wrong_is_found,)
"""Checks of Local oracles with pure privacy."""

SIGNS = (noise_falls_on_either_side_alike,)
"""Checks of unbiased Central oracles."""

"""Ranges of columns' rows, read out of noisy counts of its range's 16ths, of their 16ths, and so on.

An edge is found from the outside: the first bin that holds more than noise does, then the first such 16th of it, until
noise hides them. Bins that say nothing alone are looked at in pairs, fours and eights.

How many rows may lie beyond an end of an interval that noisy counts led to: what zoom promises, and why it holds.

The promise: but in one run of 1,000, fewer than ``most`` rows lie beyond either end of any column's interval, wherever
the rows are. A group of twice as many has its middle (its median, in every column) within.

An end moves inwards from bin to bin. The tail T(e), rows before edge e, is estimated by T'(e), a sum of released counts
with weights that depend on the edge alone, so that it is unbiased and its variance V(e) is public. An edge may be
passed only if all edges before it on its level, within the same bin of the level above, were, and if

    T'(e) + z sqrt(V(e)) <= most.

Proof. Fix a column, a side and a level, and let e* be the first edge of that level with T(e*) >= most: it depends on
the rows alone. An end that lies at or beyond e* after this level's step, and did not before, has passed e*: within a
bin edges are passed in order, and those of bins nearer to the outside were passed on the level above, where the first
edge at or beyond e* has T >= most too. So if a released end has at least ``most`` rows beyond it, on some level the
first such edge was passed, for which T' - T <= -z sqrt(V), whatever was chosen before. There is one such event for
each side, level and column: 2 d levels in all, whose chances add up to at most ``RISK``. Nothing is counted per bin,
since there is one e*, not many; and rows that are spread thinly over many bins weigh as much as those in one.

z is the normal quantile for Gaussian noise and for noise that is as good as Gaussian (Skellam, the sum of parties'
shares); for pure noise it is Chernoff's for Laplace noise, which holds for a sum of any number of them. ``RISK`` is
half of one in 1,000: the other half covers that noise is discrete, and a Skellam law's heavier tail.

Weights: T of a bin's j-th edge is that of the bin's outer edge and, of the j counts before and the 16 - j behind it,
the sum of the former and the bin's own count less the latter, by their variances. For the first level "the bin's own
count" is the number of rows, as the other columns' counts add up to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any, final

import attrs
import numpy as np

from cloister.core.buckets import BundleArrays, Space, integers
from cloister.core.roles import Counts
from cloister.core.types import Floats, Ints

FAN_BITS = 4
FAN = 2**FAN_BITS
"""Bins that a bin of the level above is made of."""

RISK = 0.0005
"""Chance that in any column more rows lie beyond an end: half of one in 1,000."""

EASE = 3.0
"""Standard errors that are left where an edge's tail is known worst. With 1, noise alone stopped an end before it came
to the rows in one run of twenty, in bounds 1,000 times too wide, and with 2 still in some; with 3 in hardly any."""


@final
@attrs.frozen
class Tail:
    """The rows beyond an edge, and the bin behind it.

    Args:
        rows: T'.
        variance: V.
        weight: of the bin's own count in T'.
        own: the bin's own count.
        own_variance: its variance.
    """

    rows: float
    variance: float
    weight: float
    own: float
    own_variance: float

    def edges(self, counts: Floats, variance: float) -> list[Tail]:
        """Return the tails of the bin's 16 parts, by their noisy counts (16,); the first edge is the bin's."""
        first = Tail(self.rows, self.variance, 0.0, float(counts[0]), variance)
        return [first, *(self._moved(counts, variance, j) for j in range(1, FAN))]

    def _moved(self, counts: Floats, variance: float, j: int) -> Tail:
        u = self.share(variance, j)
        outside, behind = float(counts[:j].sum()), float(counts[j:].sum())
        moved = (1 - u) * outside + (u * (self.own - behind) if u else 0.0)
        return Tail(self.rows + moved, self.variance + self.added(variance, j), -u, float(counts[j]), variance)

    def share(self, variance: float, j: int) -> float:
        """Return the weight of the counts behind the j-th edge that makes the variance least."""
        if math.isinf(self.own_variance) or not variance:
            return 0.0
        return float((j * variance - self.weight * self.own_variance) / (FAN * variance + self.own_variance))

    def added(self, variance: float, j: int) -> float:
        """Return the variance that the j-th edge adds."""
        u = self.share(variance, j)
        covariance = (u**2 + 2 * self.weight * u) * self.own_variance if u else 0.0
        return float(variance * ((1 - u) ** 2 * j + u**2 * (FAN - j)) + covariance)


@lru_cache(maxsize=64)
def worst(columns: int, depth: int) -> float:
    """Return the largest variance that an edge's tail may have, in variances of a bin."""
    behind, own_variance = np.arange(FAN)[:, None], total_variance(columns, 1.0)
    variances, weights = np.zeros(1), np.zeros(1)
    for _ in range(depth):
        u = (behind - weights * own_variance) / (FAN + own_variance) if math.isfinite(own_variance) else 0.0 * behind
        u[0] = 0.0  # the bin's own edge
        known = (u**2 + 2 * weights * u) * own_variance if math.isfinite(own_variance) else 0.0
        variances = (variances + (1 - u) ** 2 * behind + u**2 * (FAN - behind) + known).ravel()
        weights, own_variance = np.broadcast_to(-u, (FAN, len(weights))).ravel(), 1.0
    return float(variances.max())


def tolerated(columns: int, depth: int, error: float, pure: bool) -> float:
    """Return the least ``Promise.most`` that bins with this standard error can keep."""
    terms = worst(columns, depth)
    return (certain(2 * columns * depth, pure, terms) + EASE) * math.sqrt(terms) * error


def total_variance(columns: int, variance: float) -> float:
    """Return the variance of the number of rows by the other columns' first levels; infinite without any."""
    return FAN * variance / (columns - 1) if columns > 1 else math.inf


@lru_cache(maxsize=256)
def certain(events: int, pure: bool, terms: float = math.inf) -> float:
    """z: standard errors that a sum of noise is off by, in any of so many events, with chance ``RISK`` at most.

    Args: pure, whether it is Laplace noise; terms, the sum's variance in variances of a bin.

    Chernoff for Laplace: a bin's noise of variance v has E exp(x X) = 1 / (1 - x^2 v / 2), and a sum with weights of at
    most 1 and of variance ``terms`` v at most that to the power of ``terms``, since -log(1 - y) is convex.
    """
    risk = RISK / events
    if not pure:
        return -NormalDist().inv_cdf(risk)
    x = np.linspace(0.001, 0.999, 999) * math.sqrt(2)
    return float(((-math.log(risk) - terms * np.log1p(-(x**2) / 2)) / x).min() / math.sqrt(terms))


@final
@attrs.frozen
class Promise:
    """At most ``most`` rows beyond an end.

    Args:
        most: rows.
        events: sides, levels and columns together.
        pure: whether noise is.
    """

    most: float
    events: int
    pure: bool

    def passed(self, tails: Sequence[Tail], variance: float) -> int:
        """Return the last of a bin's edges, in order, that an end may pass."""
        for j, tail in enumerate(tails[1:]):
            terms = math.floor(4 * tail.variance / variance) / 4 if variance else 1.0
            if tail.rows + certain(self.events, self.pure, terms) * math.sqrt(tail.variance) > self.most:
                return j
        return len(tails) - 1


BITS = 4 * FAN_BITS
CODES = 2**BITS
"""A column's range in the smallest steps that bins may have."""

CERTAIN = 4.75
"""Standard errors above which a count is of rows: Gaussian noise alone looks so once in a million bins."""

CERTAIN_PURE = 9.28
"""The same of Laplace noise, whose tail is exp(-sqrt(2) t) / 2: at 4.75 standard errors noise alone looked so once in
1,700 bins, and unknown ranges ended at it in one run of 25."""


@final
@attrs.frozen
class Columns:
    """A row is in one bin of every column that is counted, on every level of it: that many times ``depth`` levels.

    Args: sides, the largest lattice coordinate of each column, powers of two, or 0, where nothing of it is counted;
        depth, levels of a column: 16, 256, 4,096 ... bins.
    """

    sides: tuple[int, ...]
    depth: int

    @property
    def counted(self) -> tuple[int, ...]:
        """Positions of the columns that are counted."""
        return tuple(j for j, side in enumerate(self.sides) if side)

    @property
    def space(self) -> Space:
        return Space(tuple(FAN ** (level + 1) for level in range(self.depth)) * len(self.counted))

    def locate(self, rows: Ints) -> Ints:
        ids = np.empty((len(self.counted), self.depth, len(rows)), np.int64)
        for column, j in enumerate(self.counted):
            side = self.sides[j]
            finer = (2 * side).bit_length() - 1 - BITS
            moved = rows[:, j] + side
            codes = np.clip(moved >> finer if finer >= 0 else moved << -finer, 0, CODES - 1)
            for level in range(self.depth):
                np.right_shift(codes, BITS - FAN_BITS * (level + 1), out=ids[column, level])
        return ids.reshape(self.space.levels, len(rows)).T

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {"kind": "columns", "sizes": integers(self.space.sizes), "sides": self.sides, "depth": self.depth}


def interval(
    counts: Counts,
    column: int,
    errors: Sequence[float],
    promise: Promise | None = None,
    other_columns: tuple[int, ...] = (),
    certain: float = CERTAIN,
) -> tuple[int, int] | None:
    """Beginning and end of a column's rows, from 0 to ``CODES``; None if its counts are no more than noise.

    Args: column, among those that are counted; errors, the standard error of each level's counts; promise, what may be
    left outside (None: whatever noise hides); others, the other columns, which count the same rows; certain, standard
    errors above which a count is of rows (``CERTAIN``, ``CERTAIN_PURE``).
    """
    bins, depth = np.arange(FAN), len(errors)
    total = float(np.mean([counts.at(bins, j * depth).sum() for j in other_columns])) if other_columns else 0.0
    root = Tail(0.0, 0.0, 0.0, total, total_variance(1 + len(other_columns), errors[0] ** 2))
    low, high = (_descended(counts, column, errors, last, promise, root, certain) for last in (False, True))
    return None if low is None or high is None else (low, CODES - high)


def _descended(
    counts: Counts,
    column: int,
    errors: Sequence[float],
    last: bool,
    promise: Promise | None,
    tail: Tail,
    certain: float,
) -> int | None:
    """How far the outermost bin with rows, or the first that may not be passed, is from this end of the range."""
    bins, distance = np.arange(FAN), None
    for level, error in enumerate(errors):
        values = counts.at(bins, column * len(errors) + level)
        values = values[::-1] if last else values
        edge = _edge(values, error * certain)
        tails = tail.edges(values, error**2)
        sure = FAN - 1 if promise is None else promise.passed(tails, error**2)
        if edge is None:
            return 0 if level == 0 and sure < FAN - 1 else distance
        first, width = edge
        step, nearest = CODES // FAN ** (level + 1), min(first, sure)
        outermost = int(bins[FAN - 1 - nearest] if last else bins[nearest])
        distance = (FAN ** (level + 1) - 1 - outermost if last else outermost) * step
        if width > 1 or sure < first:
            break
        bins, tail = outermost * FAN + np.arange(FAN), tails[first]
    return distance


def _edge(values: Floats, threshold: float) -> tuple[int, int] | None:
    """Return the first bin above ``threshold`` rows and the width of its window in bins; None without one.

    Wider windows count where they lie before all narrower ones: thin rows in front of a dense bin.
    """
    edge: tuple[int, int] | None = None
    for width in (1, 2, 4, 8, 16):
        outer = values[: FAN if edge is None else edge[0] // width * width]
        sums = outer.reshape(-1, width).sum(axis=1)
        hits = np.flatnonzero(sums > threshold * np.sqrt(width))
        if len(hits):
            edge = int(hits[0]) * width, width
    return edge

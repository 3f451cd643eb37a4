"""Rows that may lie beyond the ends of an interval which noisy counts led to: what zoom promises, and the proof.

Promise: except in one run of 1,000, fewer than ``most`` rows lie beyond either end of any column's interval, wherever
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
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import final

import attrs
import numpy as np

from cloister.plugin import Floats

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

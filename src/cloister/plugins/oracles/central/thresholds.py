"""The smallest threshold that a budget's delta allows, whatever the noise of the counts."""

from __future__ import annotations

import math
from collections.abc import Callable

from cloister.plugin import Threshold

UP_DELTA, LEAST_DELTA = 1 + 2.0**-30, math.ulp(0.0)
"""Rounding must not make a delta too small, nor 0: a lone row has some chance to be seen."""


def delta_of(lone: float, levels: int) -> float:
    """Return 1 - (1 - p)^L, rounded up, for p = ``lone``."""
    return max(-math.expm1(levels * math.log1p(-lone)) * UP_DELTA, LEAST_DELTA)


def least_threshold(chance: Callable[[int], float], lowest: int, levels: int, delta: float) -> Threshold:
    """Return the smallest integer T >= ``lowest`` with 1 - (1 - p)^L <= ``delta``.

    Args:
        chance: p as a decreasing function of T.
        lowest: smallest T to consider.
        levels: L.
        delta: probability in (0, 1).
    """

    def of(above: int) -> float:
        return delta_of(chance(above), levels)

    low, high = lowest - 1, lowest
    while not of(high) <= delta:
        low, high = high, 2 * high
    while high > low + 1:
        middle = (low + high) // 2
        low, high = (low, middle) if of(middle) <= delta else (middle, high)
    return Threshold(high, of(high))

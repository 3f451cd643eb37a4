"""The least threshold whose delta is paid for: of counts above one, whatever their noise."""

from __future__ import annotations

import math
from collections.abc import Callable

from cloister.plugin import Threshold

UP_DELTA, LEAST_DELTA = 1 + 2.0**-30, math.ulp(0.0)
"""Rounding never makes a delta too small, nor 0: a lone row may be seen, however seldom."""


def delta_of(lone: float, levels: int) -> float:
    """1 - (1 - p)^L, rounded up."""
    return max(-math.expm1(levels * math.log1p(-lone)) * UP_DELTA, LEAST_DELTA)


def least_threshold(chance: Callable[[int], float], least: int, levels: int, delta: float) -> Threshold:
    """The least whole T, from ``least`` on, whose delta, 1 - (1 - p)^L, is at most this one.

    Args:
        chance: p of a threshold, which falls with it.
        levels: L.
        delta: probability in (0, 1).
    """

    def of(above: int) -> float:
        return delta_of(chance(above), levels)

    low, high = least - 1, least
    while not of(high) <= delta:
        low, high = high, 2 * high
    while high > low + 1:
        middle = (low + high) // 2
        low, high = (low, middle) if of(middle) <= delta else (middle, high)
    return Threshold(high, of(high))

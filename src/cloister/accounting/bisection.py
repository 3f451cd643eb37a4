"""The point where a condition turns, to the last float, always on the side where it still holds."""

from __future__ import annotations

from collections.abc import Callable

_HUGE = 2.0**1000


def largest(holds: Callable[[float], bool], within: float = 0.0) -> float:
    """The largest x > 0 at which ``holds``, a condition that is true below some point and false above it.

    Args: within (relative precision, on the safe side, at which to stop: for conditions that take long to evaluate).

    Returns: a float at which ``holds`` was seen to be true, or 0.0 when it was true nowhere.
    """
    x = 1.0
    while holds(x):
        if x > _HUGE:
            return x
        x *= 2
    while not holds(x):
        x /= 2
        if x == 0:
            return 0.0
    return _last(x, 2 * x, holds, within)


def smallest(holds: Callable[[float], bool], within: float = 0.0) -> float:
    """The smallest x >= 0 at which ``holds``, a condition that is false below some point and true above it.

    Args: within (as of ``largest``).

    Returns: a float at which ``holds`` was seen to be true, or infinity when it was true nowhere.
    """
    if holds(0.0):
        return 0.0
    x = 1.0
    while not holds(x):
        if x > _HUGE:
            return float("inf")
        x *= 2
    while holds(x / 2):
        x /= 2
    return _last(x, x / 2, holds, within)


def _last(good: float, bad: float, holds: Callable[[float], bool], within: float) -> float:
    """The last float (or near enough) on the way from ``good`` to ``bad`` at which ``holds`` was seen to be true."""
    while True:
        middle = good + (bad - good) / 2
        if middle in (good, bad) or abs(bad - good) < within * good:
            return good
        if holds(middle):
            good = middle
        else:
            bad = middle

"""Distance between two values of a category, among columns of numbers, from public figures alone."""

from __future__ import annotations

import math

from cloister.core.reproducible_math import power

SPREAD = 1 / 16
"""Standard deviation of a column of numbers that a category is weighed against, of half of its interval's width: bounds
four times as wide as rows need whose extremes are four standard deviations from their mean. Public bounds are wide, and
a method's ``slack`` keeps them so. With a narrow column for a measure a category says a little less than it could; with
a wide one it would be all that is clustered by. Measured: ``tests/plugins/methods/test_zoom_categories.py``."""


def distance(values: int, numbers: int, k: int) -> float:
    """Return the distance of two values of a category, in half widths of the columns of numbers.

    It follows from public figures alone, and is so small that centres are not better spent on the category's values
    than on the numbers.

    A category of m values at a distance D has, where they are equally frequent, the variance (1 - 1/m) D^2 / 2. It is
    at most

    1. v = ``SPREAD``^2, that of a column of numbers: no column counts for more than another;
    2. what else c centres would gain by it. Parted into c <= m groups by the category alone, rows lose (c - 1) D^2 /
       (2 m) of their cost. The k centres that would be spent on it are then missing for the d numbers, whose cost
       after k centres is about d v k^(-2/d) (Zador's rate), and with k / c for each group c^(2/d) times that. The loss
       per c - 1 is least at one of both ends of 2..min(m, k).

    Several categories are no more than that together, since the second bound grows faster than their sum.

    Args:
        values: m, of the category.
        numbers: d, columns of numbers.
        k: number of centres.

    Source: Zador 1982, Asymptotic quantization error (the rate).
    """
    if not numbers:  # there is nothing to take over: the whole cube, and as much for each category
        return 2 * math.sqrt(0.5 / max(1 - 1 / values, 0.5))
    squared = SPREAD**2 / max(1 - 1 / values, 0.5)
    if values > 1 and k > 1:
        rate = 2 / numbers
        lost = SPREAD * power(k, -1 / numbers)
        numbers_cost = numbers * (lost * lost)
        squared = min(squared, *(values * numbers_cost * (power(c, rate) - 1) / (c - 1) for c in (2, min(values, k))))
    return math.sqrt(2 * squared)

"""Theorem 1 of Chang et al. 2021: one round of local reports costs O(sqrt(n d)) more than the best clustering.

``one-round`` is judged: the net tree's own error is below the theorem's constants only for millions of people.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.metrics import cost
from tests.alarms import Alarm
from tests.plugins.methods.runs import fitted, groups

SEEDS, K, EPSILON = 6, 3, 4.0


def excess(n: int, d: int) -> tuple[float, float]:
    """What the method costs above the places that rows are around: the mean over runs, and its standard error."""
    rows, places = groups(n, K, d, 0.02, ball=True)
    best = cost(rows, places)
    more = [
        cost(rows, fitted("one-round", rows, K, noise=seed, epsilon=EPSILON, seed=seed).centers) - best
        for seed in range(SEEDS)
    ]
    return float(np.mean(more)), float(np.std(more, ddof=1) / math.sqrt(SEEDS))


@pytest.mark.thorough
@pytest.mark.alarm(1e-8)
def test_the_error_grows_no_faster_than_the_root_of_people_times_columns(alarm: Alarm) -> None:
    """With constant k^2 / epsilon and no logarithms; and with 8 times the people, or columns, at most sqrt(8) times the
    error, up to what the means can be off by."""
    grid = {(n, d): excess(n, d) for n, d in ((20_000, 4), (160_000, 4), (20_000, 32), (160_000, 32))}
    for (n, d), (mean, _) in grid.items():
        assert mean <= K**2 / EPSILON * math.sqrt(n * d)
    wide = alarm.errors(4)
    for small, large in (((20_000, 4), (160_000, 4)), ((20_000, 32), (160_000, 32))):
        assert grid[large][0] - wide * grid[large][1] <= math.sqrt(8) * (grid[small][0] + wide * grid[small][1])
    for few, many in (((20_000, 4), (20_000, 32)), ((160_000, 4), (160_000, 32))):
        assert grid[many][0] - wide * grid[many][1] <= math.sqrt(8) * (grid[few][0] + wide * grid[few][1])

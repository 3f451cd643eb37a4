"""Theorem 5.3 of Stemmer 2021, by experiment: protocol B asks a clustering method whether anybody holds a one.

Each user holds a bit. The server draws one of 1 / r intervals of [0, 1]; users with a one hold its middle, all others
0. The server says one if a centre of k = 2 falls in the interval. A protocol whose additive error were far below
sqrt(n) would tell far fewer than sqrt(n) ones from none, which no locally private protocol can.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from tests.alarms import Alarm
from tests.plugins.methods.runs import made, run

N, EPSILON, R, TIMES = 4000, 1.0, 0.05, 60


def protocol_b(ones: int, seed: int, epsilon: float = EPSILON) -> bool:
    """What the server says. Args: ones (users with a one, at random)."""
    g = np.random.default_rng([53, ones, seed])
    middle = R * (g.integers(0, round(1 / R)) + 0.5)
    rows = np.zeros((N, 1))
    rows[g.choice(N, ones, replace=False)] = middle
    problem = Problem(2, Box((0.0,), (1.0,)), N, Budget("pure", epsilon))
    centers = run(made("weighted-centers", radii=1, repetitions=1), rows, problem, seed)[0].centers
    return bool((np.abs(centers - middle) <= R / 2).any())


@pytest.mark.thorough
@pytest.mark.alarm(1e-8)
def test_theorem_5_3_few_ones_are_not_told_from_none_and_many_are(alarm: Alarm) -> None:
    """None: a run knows nothing of the interval, so that two centres are in it with chance 2 r at most. Few: reports of
    people who hold a one with chance t / n differ from those by a chi-square divergence of at most (t / n)^2
    (e^eps - 1)^2 each, so that the chance grows by t (e^eps - 1) / sqrt(2 n) at most (Pinsker), whatever is asked when.
    Half of all users, and a large epsilon: the method says one, so that the test can see what the bound denies."""
    few = round(0.1 * math.sqrt(N))
    none, some = (sum(protocol_b(ones, seed) for seed in range(TIMES)) for ones in (0, few))
    gain = few * math.expm1(EPSILON) / math.sqrt(2 * N)
    assert alarm.proportion(none, TIMES, 2)[0] <= 2 * R
    assert alarm.proportion(some, TIMES, 2)[0] <= 2 * R + gain
    assert sum(protocol_b(N // 2, seed, 12.0) for seed in range(10)) >= 5

"""k-median on released points: against brute force, and on points that make it hard."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.clustering import Coreset, Released
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats
from cloister.plugins.solvers.plus_plus import KMedianPlusPlus, Weighted
from tests.alarms import Alarm

SEED = PublicRng(b"s" * 32)


def solved(points: Floats, weights: Floats, k: int, **options: Any) -> Floats:
    return KMedianPlusPlus(**options).solve(Released(Coreset(points, weights), ()), k, SEED)


def cost(points: Floats, weights: Floats, centers: Floats) -> float:
    gaps = np.sqrt(((points[:, None] - centers) ** 2).sum(axis=2)).min(axis=1)
    return float(np.maximum(weights, 0.0) @ gaps)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 4))
def test_it_does_no_worse_than_the_best_points_as_centres(seed: int, k: int) -> None:
    """The best k of the points cost at most twice the optimum; rounds must not end above that. 1e-2: the smoothing."""
    g = np.random.default_rng(seed)
    points, weights = g.uniform(-1, 1, (10, 2)), g.exponential(1.0, 10)
    best = min(cost(points, weights, points[list(some)]) for some in combinations(range(10), k))
    assert cost(points, weights, solved(points, weights, k, starts=20)) <= best * 1.15 + 1e-2


def test_one_centre_is_the_weighted_geometric_median() -> None:
    from scipy.optimize import minimize

    g = np.random.default_rng(1)
    points, weights = g.normal(5, [1, 10, 0.1], (300, 3)), g.exponential(1.0, 300)
    best = minimize(lambda c: cost(points, weights, c[None]), points.mean(axis=0), method="Nelder-Mead")
    assert cost(points, weights, solved(points, weights, 1)) <= best.fun * (1 + 1e-4)


def test_a_median_stays_where_most_of_the_weight_is() -> None:
    """A mean would not: this is what k-median is for."""
    points, weights = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([10.0, 4.0, 4.0])
    assert np.abs(solved(points, weights, 1)).max() < 0.01


def test_clumps_far_apart_are_all_found() -> None:
    g = np.random.default_rng(2)
    middles = g.uniform(-100, 100, (20, 4))
    points = middles[np.arange(4000) % 20] + 0.1 * g.standard_normal((4000, 4))
    found = solved(points, np.ones(4000), 20)
    assert np.sqrt(((middles[:, None] - found) ** 2).sum(axis=2)).min(axis=1).max() < 0.1


def test_points_far_from_the_origin_keep_their_digits() -> None:
    g = np.random.default_rng(3)
    points = g.uniform(-1, 1, (200, 2))
    near, far = (solved(points + shift, np.ones(200), 3) - shift for shift in (0.0, 1e6))
    assert np.abs(near - far).max() < 1e-6


def test_negative_weights_count_nothing() -> None:
    g = np.random.default_rng(4)
    points, weights = g.uniform(-1, 1, (100, 2)), g.normal(0, 1, 100)
    heavy = weights > 0
    assert np.array_equal(solved(points, weights, 3), solved(points[heavy], weights[heavy], 3))


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_the_scale_of_weights_does_not_matter(scale: float) -> None:
    g = np.random.default_rng(5)
    points, weights = g.uniform(-1, 1, (100, 2)), np.ones(100)
    assert np.allclose(solved(points, weights * scale, 3), solved(points, weights, 3))


@pytest.mark.alarm(1e-8)
def test_a_point_is_drawn_in_proportion_to_its_mass(alarm: Alarm) -> None:
    """20,000 draws; a point without mass is never drawn."""
    rows = Weighted.of(np.zeros((4, 1)), np.ones(4))
    drawn = rows._drawn(np.array([1.0, 0.0, 2.0, 5.0]), 20_000, np.random.default_rng(6))
    shares, wanted = np.bincount(drawn, minlength=4) / 20_000, np.array([1.0, 0.0, 2.0, 5.0]) / 8
    heavy = wanted > 0
    assert not shares[~heavy].any()
    alarm.near(shares[heavy], wanted[heavy], np.sqrt(wanted[heavy] * (1 - wanted[heavy]) / 20_000))

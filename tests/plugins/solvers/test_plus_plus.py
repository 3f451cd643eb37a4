"""k-median on released points: against brute force, and on points that make it hard."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from cloister.core.clustering import Coreset, Released
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats
from cloister.plugins.solvers.plus_plus import KMedianPlusPlus

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
    points, weights = g.uniform(-1, 1, (10, 2)), g.normal(1, 1, 10)  # negative ones count nothing
    best = min(cost(points, weights, points[list(some)]) for some in combinations(range(10), k))
    assert cost(points, weights, solved(points, weights, k, starts=20)) <= best * 1.15 + 1e-2


def test_points_far_from_the_origin_keep_their_digits() -> None:
    g = np.random.default_rng(3)
    points = g.uniform(-1, 1, (200, 2))
    near, far = (solved(points + shift, np.ones(200), 3) - shift for shift in (0.0, 1e6))
    assert np.abs(near - far).max() < 1e-6

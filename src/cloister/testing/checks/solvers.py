"""Checks of solvers of released weighted points."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from cloister.core.clustering import Coreset, Released
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats
from cloister.testing.check import given, require

RNG = PublicRng.from_seed(70)


def coresets() -> Iterator[tuple[str, Coreset, int]]:
    """Released points as noise makes them, with k."""
    g = np.random.default_rng(71)
    points = g.uniform(-1, 1, (60, 3))
    positive = g.uniform(1, 100, 60)
    yield "60 points", Coreset(points, positive), 4
    yield "one centre", Coreset(points, positive), 1
    yield "one column", Coreset(points[:, :1], positive), 3
    yield "weights of both signs", Coreset(points, g.normal(0, 100, 60)), 5
    yield "all weights negative", Coreset(points, -positive), 5
    yield "all weights zero", Coreset(points, np.zeros(60)), 5
    yield "one positive weight", Coreset(points, np.where(np.arange(60) == 7, 5.0, -1.0)), 3
    yield "fewer points than centres", Coreset(points[:3], positive[:3]), 5
    yield "one point", Coreset(points[:1], positive[:1]), 4
    yield "all points the same", Coreset(np.ones((20, 2)), positive[:20]), 4
    yield "huge weights", Coreset(points, positive * 1e12), 4
    yield "tiny weights", Coreset(points, positive * 1e-12), 4


def any_released_points_give_k_finite_centers(solver: Any) -> None:
    """Whatever noise made of the points' weights, k finite centres come out: the budget is spent, so failing is no
    choice."""
    for name, coreset, k in coresets():
        centers = _solved(solver, name, coreset, k)
        wanted = (k, coreset.points.shape[1])
        require(np.shape(centers) == wanted, f"{name}: centres have the shape {np.shape(centers)}, not {wanted}")
        require(np.isfinite(centers).all(), f"{name}: a centre is not finite")


def the_same_points_and_key_give_the_same_centers(solver: Any) -> None:
    """A solver is a pure function of points, k and the public key: no global randomness."""
    for name, coreset, k in coresets():
        one, state = _solved(solver, name, coreset, k), np.random.get_state()
        try:
            np.random.seed(54321)
            other = _solved(solver, name, coreset, k)
        finally:
            np.random.set_state(state)
        require(np.array_equal(one, other), f"{name}: solved twice, the centres differ")


def points_and_weights_are_left_alone(solver: Any) -> None:
    """A solver changes nothing that it is given: released points are looked at again."""
    for name, coreset, k in coresets():
        points, weights = coreset.points.copy(), coreset.weights.copy()
        _solved(solver, name, coreset, k)
        same = np.array_equal(points, coreset.points) and np.array_equal(weights, coreset.weights)
        require(same, f"{name}: the coreset was changed")


def _solved(solver: Any, name: str, coreset: Coreset, k: int) -> Floats:
    with given(name), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a remark about released points is no failure, whatever pytest makes of it
        centers: Floats = solver.solve(Released(coreset, ()), k, RNG)
    return centers


SOLVERS = (
    any_released_points_give_k_finite_centers,
    the_same_points_and_key_give_the_same_centers,
    points_and_weights_are_left_alone,
)

"""Reverse greedy against its definition: the cheapest loss first, by trying every one."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.core.clustering import Coreset, Released
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.registry.making import make
from cloister.core.registry.registry import registry
from cloister.core.types import Floats
from cloister.plugins.solvers.reverse_greedy import ReverseGreedy

RNG = PublicRng.from_seed(4)
SOLVERS = [spec.name for spec in registry().specs("NonPrivateSolver")]


def by_trying(points: Floats, weights: Floats, k: int, power: int) -> list[int]:
    """Drop the centre without which the total cost is least, computed anew for each."""
    alive = list(range(len(points)))

    def cost(centers: list[int]) -> float:
        apart = np.linalg.norm(points[:, None] - points[centers], axis=2).min(axis=1)
        return float((weights * apart**power).sum())

    while len(alive) > k:
        alive.remove(min(alive, key=lambda c: (round(cost([i for i in alive if i != c]), 12), c)))
    return alive


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_the_cheapest_loss_goes_first(power: int, seed: int) -> None:
    g = np.random.default_rng(seed)
    points, weights = g.uniform(-1, 1, (14, 2)), g.uniform(0, 5, 14)
    found = ReverseGreedy(power=power).solve(Released(Coreset(points, weights), ()), 4, RNG)
    assert np.array_equal(found, points[by_trying(points, weights, 4, power)])


def test_only_the_heaviest_can_become_centres_but_all_points_pay() -> None:
    points = np.array([[0.0], [0.1], [5.0], [9.0]])
    coreset = Released(Coreset(points, np.array([9.0, 8.0, 1.0, 7.0])), ())
    found = ReverseGreedy(most=3).solve(coreset, 2, RNG)
    assert found.ravel().tolist() == [0.0, 9.0]


def test_points_of_negative_weight_pay_nothing() -> None:
    points = np.array([[0.0], [1.0], [100.0]])
    found = ReverseGreedy().solve(Released(Coreset(points, np.array([5.0, 5.0, -1e9])), ()), 2, RNG)
    assert found.ravel().tolist() == [0.0, 1.0]


@pytest.mark.parametrize("name", SOLVERS)
def test_no_point_at_all_is_refused_by_every_solver(name: str) -> None:
    with pytest.raises(InvalidInput, match="without a point"):
        make("NonPrivateSolver", name).solve(Released(Coreset(np.zeros((0, 2)), np.zeros(0)), ()), 2, RNG)

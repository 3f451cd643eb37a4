"""k-variates++: what nodes release, and which are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.accounting import Total
from cloister.core.buckets import Space
from cloister.core.clustering import Problem
from cloister.core.errors import InvalidInput
from cloister.core.session import forecast
from cloister.core.types import Ints
from cloister.plugins.methods.k_variates import Finest, KVariates, seeded
from cloister.plugins.oracles.central.exact import Exact
from cloister.plugins.trees.simhash import SimHash
from tests.alarms import Alarm
from tests.plugins.methods.runs import SEED, cube, made, run


def problem_of(k: int, rows: int, epsilon: float = 1.0) -> Problem:
    return Problem(k, cube(3), rows, Total(epsilon, 1e-6).measured({"gaussian"}))


def test_it_asks_once_of_512_nodes_on_one_level() -> None:
    problem = problem_of(40, 10_000)
    (asked,) = forecast(made("k-variates"), problem, SEED)
    assert [part.cells.space for part in asked.parts] == [Space((512,))] * 2
    assert sum(event.spent.amount for event in asked.events) == pytest.approx(problem.budget.amount)


def test_without_noise_centres_are_means_of_nodes() -> None:
    rows = cube(3).sample(np.random.default_rng(6), 2000, 0.0)
    method = KVariates(nodes=SimHash(depth=5), counts=Exact(), sums=Exact())
    problem = Problem(6, cube(3), 2000, Total(1.0, 1e-6).measured({"exact"}))
    found, _ = run(method, rows, problem)
    ids = method.nodes.open(problem, SEED.child("nodes")).locate(cube(3).snap(rows))[:, -1]
    means = np.array([rows[ids == i].mean(axis=0) for i in np.unique(ids)])
    assert np.sqrt(((found.centers[:, None] - means) ** 2).sum(axis=2)).min(axis=1).max() < 1e-5
    assert len(np.unique(found.centers, axis=0)) == 6
    assert found.weights.sum() == 2000


@pytest.mark.alarm(1e-8)
def test_a_seed_is_drawn_in_proportion_to_weight_and_distance(alarm: Alarm) -> None:
    """Second draws from four points on a line after the first, 4,000 of them."""
    points, weights = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([1e12, 2.0, 2.0, 1.0])
    for power in (1.0, 2.0):
        g = np.random.default_rng(8)
        drawn = np.array([seeded(points, weights, 2, power, g) for _ in range(4000)])
        assert not drawn[:, 0].any()
        shares = np.bincount(drawn[:, 1], minlength=4) / 4000
        wanted = weights * points[:, 0] ** power
        wanted /= wanted.sum()
        alarm.near(shares[1:], wanted[1:], np.sqrt(wanted[1:] * (1 - wanted[1:]) / 4000), of=2)


def test_more_seeds_than_points_are_drawn_all_the_same() -> None:
    drawn = seeded(np.zeros((3, 2)), np.ones(3), 5, 1.0, np.random.default_rng(9))
    assert drawn.shape == (5,)
    assert drawn.min() >= 0
    assert drawn.max() < 3


class Deep:
    """A tree of too many cells."""

    space = Space((2, 2**40))

    def locate(self, rows: Ints) -> Ints:
        raise AssertionError


def test_more_nodes_than_can_be_listed_are_refused_before_anything_is_asked() -> None:
    with pytest.raises(InvalidInput, match="too many to draw from"):
        Finest(Deep())

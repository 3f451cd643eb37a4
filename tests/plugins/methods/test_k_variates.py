"""k-variates++: what nodes release, and which are drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.accounting import Total
from cloister.core.buckets import Space
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Box
from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import registry
from cloister.core.session import Session, forecast
from cloister.core.trust import Central
from cloister.core.types import Floats, Ints
from cloister.metrics import k_median_cost
from cloister.plugins.methods.k_variates import Finest, KVariates, seeded
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.exact import Exact
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.trees.simhash import SimHash
from tests.alarms import Alarm

SEED = PublicRng(b"v" * 32)
CUBE = Box((-1.0,) * 3, (1.0,) * 3)


def gauss(**options: Any) -> KVariates[Central]:
    return KVariates(nodes=SimHash(depth=9), counts=DiscreteGaussian(), sums=DiscreteGaussian(), **options)


def run(method: Any, problem: Problem, rows: Floats) -> Clustering:
    session: Session[Any] = Session(problem, SEED, Arrays(rows), noise=NoiseRng.for_tests(5))
    found: Clustering = method.cluster(problem, session, SEED)
    return found


def test_it_is_found_by_name_and_asks_once_of_512_nodes_on_one_level() -> None:
    method = compose(registry(), "Method", "k-variates", {}, {}).value
    problem = Problem(40, CUBE, 10_000, Total(1.0, 1e-6).measured({"gaussian"}))
    (asked,) = forecast(method, problem, SEED)
    assert [part.cells.space for part in asked.parts] == [Space((512,))] * 2
    assert sum(event.spent.amount for event in asked.events) == pytest.approx(problem.budget.amount)


def test_without_noise_centres_are_means_of_nodes() -> None:
    g = np.random.default_rng(6)
    rows = CUBE.sample(g, 2000, 0.0)
    method = KVariates(nodes=SimHash(depth=5), counts=Exact(), sums=Exact())
    problem = Problem(6, CUBE, 2000, Total(1.0, 1e-6).measured({"exact"}))
    found = run(method, problem, rows)
    ids = method.nodes.open(problem, SEED.child("nodes")).locate(CUBE.snap(rows))[:, -1]
    means = np.array([rows[ids == i].mean(axis=0) for i in np.unique(ids)])
    gaps = np.sqrt(((found.centers[:, None] - means) ** 2).sum(axis=2)).min(axis=1)
    assert gaps.max() < 1e-5
    assert len(np.unique(found.centers, axis=0)) == 6
    assert found.weights is not None
    assert found.weights.sum() == 2000


def test_clumps_in_few_nodes_are_found() -> None:
    """Five clumps around corners, hardly any noise: every clump has a centre."""
    g = np.random.default_rng(7)
    corners = np.array([[1, 1, 1], [1, -1, 1], [-1, 1, -1], [-1, -1, -1], [1, 1, -1]]) * 0.7
    rows = corners[g.integers(0, 5, 50_000)] + 0.02 * g.standard_normal((50_000, 3))
    problem = Problem(12, CUBE, 50_000, Total(5.0, 1e-6).measured({"gaussian"}))
    assert k_median_cost(rows, run(gauss(), problem, rows).centers) / 50_000 < 0.1


# The draw


@pytest.mark.alarm(1e-8)
def test_a_seed_is_drawn_in_proportion_to_weight_and_distance(alarm: Alarm) -> None:
    """Second draws from four points on a line after the first, 20,000 of them."""
    points, weights = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([1e12, 2.0, 2.0, 1.0])
    for power in (1.0, 2.0):
        g = np.random.default_rng(8)
        drawn = np.array([seeded(points, weights, 2, power, g) for _ in range(20_000)])
        assert not drawn[:, 0].any()
        shares = np.bincount(drawn[:, 1], minlength=4) / 20_000
        wanted = weights * points[:, 0] ** power
        wanted /= wanted.sum()
        alarm.near(shares[1:], wanted[1:], np.sqrt(wanted[1:] * (1 - wanted[1:]) / 20_000), of=2)


def test_more_seeds_than_points_are_drawn_all_the_same() -> None:
    drawn = seeded(np.zeros((3, 2)), np.ones(3), 5, 1.0, np.random.default_rng(9))
    assert drawn.shape == (5,)
    assert drawn.min() >= 0
    assert drawn.max() < 3


# Nodes


def test_only_the_finest_level_is_asked() -> None:
    problem = Problem(3, CUBE, 100, Total(1.0, 1e-6).measured({"gaussian"}))
    tree = SimHash(depth=4).open(problem, SEED)
    rows = CUBE.snap(CUBE.sample(np.random.default_rng(10), 50, 0.0))
    assert Finest(tree).space == Space((16,))
    assert np.array_equal(Finest(tree).locate(rows)[:, 0], tree.locate(rows)[:, 3])


class Deep:
    """A tree of too many cells."""

    space = Space((2, 2**40))

    def locate(self, rows: Ints) -> Ints:
        raise AssertionError


def test_more_nodes_than_can_be_listed_are_refused_before_anything_is_asked() -> None:
    with pytest.raises(InvalidInput, match="too many to draw from"):
        Finest(Deep())

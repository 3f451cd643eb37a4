"""Methods on rows: clusters found in few and many columns, pictures of them, points that evolution keeps, seeds that
k-variates++ draws; and none, however little a budget buys, is worse than one centre in the domain's middle."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.errors import InvalidInput
from cloister.core.registry.registry import registry
from cloister.core.session import forecast
from cloister.metrics import cost, nicv
from cloister.plugins.methods.evolution import fittest
from cloister.plugins.methods.grid_means import MAX_COLUMNS
from cloister.plugins.methods.k_variates import KVariates, seeded
from cloister.plugins.oracles.central.exact import Exact
from cloister.plugins.trees.simhash import SimHash
from tests.alarms import Alarm
from tests.plugins.methods.runs import SEED, cube, fitted, groups, made, run
from tests.plugins.tables import Table


def problem_of(d: int) -> Problem:
    return Problem(6, cube(d), 6000, Budget("gaussian", 1.0))


@pytest.mark.parametrize(
    ("name", "d", "options"),
    [
        ("tree-means", 2, {}),
        ("tree-means", 20, {}),
        ("tree-means", 2, {"passes": 3, "margin": 0.2}),
        ("hst-means", 1, {}),
        ("hst-means", 5, {}),
        ("hst-means", 20, {}),
        ("evolution", 8, {}),
        ("grid-means", 1, {}),
        ("grid-means", 5, {}),
        ("radius-means", 2, {}),
        ("radius-means", 60, {}),
    ],
    ids=str,
)
def test_clear_clusters_are_found_in_any_number_of_columns(name: str, d: int, options: dict[str, float]) -> None:
    rows, truth = groups(6000, 6, d)
    found = min(nicv(rows, run(made(name, **options), rows, problem_of(d), s)[0].centers) for s in range(3))
    assert found < 3 * nicv(rows, truth) + 0.002 * d


def test_three_passes_ask_one_tree_each() -> None:
    assert len(forecast(made("tree-means", passes=3, margin=0.2), problem_of(2), SEED)) == 4


@pytest.mark.parametrize("name", ["hst-means", "grid-means"])
def test_pictures_get_the_cells_that_the_rows_are_in_and_a_curve_that_falls(name: str) -> None:
    rows, _ = groups(6000, 6, 2)
    details = run(made(name), rows, problem_of(2))[0].details
    cells, costs = np.asarray(details["cells"]), np.asarray(details.get("costs", [1.0, 0.0]))
    assert (np.diff(costs) <= 0).all()
    assert costs[0] > 10 * costs[-1]
    inside = ((cells[:, 0] <= rows[:50, None]) & (rows[:50, None] <= cells[:, 1])).all(axis=2)
    assert inside.any(axis=1).mean() > 0.9  # but for rows that stand between two lattice points


def test_the_largest_counts_are_kept_until_they_hold_the_rows() -> None:
    points = np.arange(8.0).reshape(4, 2)
    kept = fittest(points, Table(np.array([1.0, 7.0, -3.0, 5.0])), 10)
    assert kept.points.tolist() == [[2.0, 3.0], [6.0, 7.0]]
    assert kept.weights.tolist() == [7.0, 3.0]
    nothing = fittest(points, Table(np.array([-1.0, -1.0, -1.0, 0.0])), 10)
    assert len(nothing.points) == 4
    assert not nothing.weights.any()


def test_without_noise_centres_are_means_of_nodes() -> None:
    rows = cube(3).sample(np.random.default_rng(6), 2000, 0.0)
    method = KVariates(nodes=SimHash(depth=5), counts=Exact(), sums=Exact())
    problem = Problem(6, cube(3), 2000, Budget("exact", math.inf))
    found, _ = run(method, rows, problem)
    ids = method.nodes.open(problem, SEED.child("nodes")).locate(cube(3).snap(rows))[:, -1]
    means = np.array([rows[ids == i].mean(axis=0) for i in np.unique(ids)])
    assert np.linalg.norm(found.centers[:, None] - means, axis=2).min(axis=1).max() < 1e-5
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
        shares, masses = np.bincount(drawn[:, 1], minlength=4) / 4000, weights * points[:, 0] ** power
        wanted = masses / masses.sum()
        alarm.near(shares[1:], wanted[1:], np.sqrt(wanted[1:] * (1 - wanted[1:]) / 4000), of=2)


def test_more_nodes_than_can_be_listed_are_refused_before_anything_is_asked() -> None:
    with pytest.raises(InvalidInput, match="too many to draw from"):
        forecast(made("k-variates", **{"nodes.depth": 20}), Problem(3, cube(3), 1000, Budget("gaussian", 1.0)), SEED)


RUNS = 10
"""Of each method, with seeded noise. Their means vary by 0.05 of the middle's cost."""

NOT_K_MEANS = {
    "hst-median",
    "tree-median",
    "tree-coreset-median",
    "private-lloyd-median",
    "weighted-centers-median",
    "k-variates",
    "auto-median",
    "grid-median",
}
BASELINE = "naive-noise"
"""Documented as what does not work: rows noised one by one, whose noise no centre is told."""

METHODS = sorted({spec.name for spec in registry().specs("Method") if spec.private} - NOT_K_MEANS - {BASELINE})
CASES = [(method, d) for method in METHODS for d in (2, 8) if method != "grid-means" or d <= MAX_COLUMNS]


@pytest.mark.thorough
@pytest.mark.parametrize(("method", "d"), CASES)
def test_two_hundred_rows_at_a_tiny_budget_cost_no_more_than_one_centre_in_the_middle(method: str, d: int) -> None:
    (rows, _), ratios = groups(200, 4, d, spread=0.15), list[float]()
    for seed in range(RUNS):
        found = fitted(method, rows, 4, noise=seed, epsilon=0.02, delta=1e-4, bounds=(-1.0, 1.0), seed=seed)
        ratios.append(cost(rows, found.centers) / cost(rows, np.zeros((1, d))))
    assert np.mean(ratios) < 1.1

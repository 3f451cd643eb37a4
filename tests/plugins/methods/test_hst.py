"""HST clustering on rows: clusters found in few and many columns, passes, spared rows, the curve, the composed
methods."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.nearest import NearestCenter
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import built_in
from cloister.core.session import Session, forecast
from cloister.core.types import Floats
from cloister.metrics import nicv
from cloister.plugins.methods.hst import Spared
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.trees.quadtree import ShiftedQuadtree

SEED = PublicRng.from_seed(70)


def clumps(d: int, k: int = 6, n: int = 6000) -> tuple[Floats, Floats]:
    g = np.random.default_rng(d)
    centers = g.uniform(-0.8, 0.8, (k, d))
    return np.clip(centers[g.integers(0, k, n)] + g.normal(0, 0.03, (n, d)), -1, 1), centers


def solved(
    name: str, rows: Floats, k: int, mu2: float = 1.0, seed: int = 1, **options: object
) -> tuple[Floats, dict[str, object]]:
    domain = Box((-1.0,) * rows.shape[1], (1.0,) * rows.shape[1])
    problem = Problem(k, domain, len(rows), Budget("gaussian", mu2))
    method = compose(built_in(), "Method", name, {}, options).value
    session = Session(problem, SEED.child(seed), Arrays(rows), noise=NoiseRng.for_tests(seed))
    found = method.cluster(problem, session, SEED.child("method", seed))
    return found.centers, found.details


@pytest.mark.parametrize("d", [1, 2, 5, 20])
@pytest.mark.parametrize("name", ["tree-means", "hst-means"])
def test_clear_clusters_are_found_in_any_number_of_columns(d: int, name: str) -> None:
    rows, truth = clumps(d)
    best = nicv(rows, truth)
    found = min(nicv(rows, solved(name, rows, 6, seed=s)[0]) for s in range(3))
    assert found < 3 * best + 0.002 * d


def test_two_passes_ask_one_tree_each_and_find_the_clusters_too() -> None:
    rows, truth = clumps(2)
    domain = Box((-1.0,) * 2, (1.0,) * 2)
    problem = Problem(6, domain, len(rows), Budget("gaussian", 1.0))
    method = compose(built_in(), "Method", "tree-means", {}, {"passes": 3, "margin": 0.2}).value
    assert len(forecast(method, problem, SEED)) == 4
    found = min(nicv(rows, solved("tree-means", rows, 6, seed=s, passes=3, margin=0.2)[0]) for s in range(3))
    assert found < 3 * nicv(rows, truth) + 0.004


def test_rows_nearest_to_a_badly_cut_centre_fall_in_no_cell() -> None:
    rows, _ = clumps(2, n=500)
    domain = Box((-1.0,) * 2, (1.0,) * 2)
    problem = Problem(6, domain, 500, Budget("gaussian", 1.0))
    tree = ShiftedQuadtree(depth=5).open(problem, SEED)
    lattice = domain.snap(rows)
    near, bad = NearestCenter(lattice[:4], domain.max_norm), np.array([True, False, False, True])
    ids = Spared(tree, near, bad).locate(lattice)
    spared = np.isin(near.locate(lattice)[:, 0], [0, 3])
    assert spared.any()
    assert (ids[spared] == -1).all()
    assert np.array_equal(ids[~spared], tree.locate(lattice)[~spared])


def test_the_curve_of_costs_falls_and_the_cells_cover_the_rows() -> None:
    rows, _ = clumps(2)
    _, details = solved("hst-means", rows, 6)
    costs, cells = np.asarray(details["costs"]), np.asarray(details["cells"])
    assert (np.diff(costs) <= 0).all()
    assert costs[0] > 10 * costs[11]
    inside = ((cells[:, 0] <= rows[:50, None]) & (rows[:50, None] <= cells[:, 1])).all(axis=2)
    assert inside.any(axis=1).mean() > 0.9  # but for rows that stand between two lattice points


def test_tree_coreset_is_the_one_round_method_on_central_oracles() -> None:
    central = compose(built_in(), "Method", "tree-coreset", {}, {})
    components = {"counts": "discrete-gaussian", "sums": "discrete-gaussian"}
    assert central.value == compose(built_in(), "Method", "one-round", components, {}).value
    assert central.trust == "Central"

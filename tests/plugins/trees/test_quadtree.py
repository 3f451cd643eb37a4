"""The shifted quadtree: cuts in the middle third, ids against a recursion over rows, boxes, options, badly cut
centres.

Grown trees: splitting, and weights that agree against a general least-squares solver.

Searching by a table gives what bisection gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Ball, Box, Domain
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.types import Ints
from cloister.plugins.trees.cut_table import CutTable
from cloister.plugins.trees.quadtree import Nodes, Quadtree, ShiftedQuadtree
from tests.alarms import Alarm
from tests.plugins.tables import Counted, Table

SEED = PublicRng.from_seed(51)
BOX = Box((-1.0, 0.0, 5.0), (1.0, 10.0, 5.5))


def opened(domain: Domain = BOX, seed: PublicRng = SEED, **options: Any) -> Quadtree:
    return ShiftedQuadtree(**options).open(Problem(5, domain, 1000, Budget("gaussian", 0.1)), seed)


def rows_of(domain: Domain, n: int = 500) -> Ints:
    return domain.snap(domain.sample(np.random.default_rng(52), n, 0.0))


@pytest.mark.parametrize("domain", [BOX, Ball((0.5, -0.5), 2.0), Ball((0.0,) * 12, 1.0)])
def test_every_row_is_in_the_box_of_its_cell_and_children_are_inside_their_parents(domain: Domain) -> None:
    tree = opened(domain, depth=12, top=0)
    rows = rows_of(domain)
    ids, images = tree.locate(rows), tree.reduced.of(rows)
    before = tree.boxes(np.zeros(len(rows), np.int64), ids[:, 0])
    for level in range(1, 13):
        boxes = tree.boxes(np.full(len(rows), level), ids[:, level])
        assert ((boxes[:, 0] <= images) & (images <= boxes[:, 1])).all()
        assert ((before[:, 0] <= boxes[:, 0]) & (boxes[:, 1] <= before[:, 1])).all()
        before = boxes


@pytest.mark.alarm(1e-9)
def test_an_interval_is_cut_in_its_middle_third_and_its_cuts_are_spread_over_it(alarm: Alarm) -> None:
    places = []
    for seed in range(40):
        tree = opened(Box((0.0,), (1.0,)), PublicRng.from_seed(seed), depth=8, top=0)
        for coarse, fine in zip(tree.borders[0][:-1], tree.borders[0][1:], strict=True):
            low, high, cuts = coarse[:-1], coarse[1:], fine[1::2]
            assert (3 * (cuts - low) >= high - low - 3).all()
            assert (3 * (high - cuts) >= high - low - 3).all()
            places.append((cuts - low) / (high - low))
    found = np.concatenate(places)  # 10,200 places, uniform over [1/3, 2/3]
    quarter = len(found) / 4
    alarm.near(np.histogram(found, 4, (1 / 3, 2 / 3))[0], quarter, np.sqrt(quarter * 3 / 4))


def test_a_long_column_is_split_before_a_short_one() -> None:
    tree = opened(Box((0.0, 0.0), (1.0, 4.0)), depth=6, top=0)
    assert tree.order == (1, 1, 0, 1, 0, 1)


def test_exact_counts_grow_leaves_that_hold_every_row_once() -> None:
    tree, rows = opened(depth=12, top=2), rows_of(BOX, 400)
    ids = tree.locate(rows)
    grown = tree.grow(Counted(ids, 2.0))
    leaves = zip(grown.leaves.levels.tolist(), grown.leaves.ids.tolist(), strict=True)
    held = np.array([(ids[:, level] == cell).sum() for level, cell in leaves])
    assert held.sum() == 400
    assert np.allclose(grown.weights, held)
    assert (held[grown.leaves.levels < 10] <= 3 * 2.0).all()  # a heavier cell is split, down to the last level


def test_the_tree_metric_knows_every_leaf_and_shrinks_downwards() -> None:
    tree, rows = opened(depth=12), rows_of(BOX, 400)
    grown = tree.grow(Counted(tree.locate(rows), 2.0))
    parents, diameters = grown.tree.parents, grown.tree.diameters
    inner = np.arange(len(parents)) >= len(grown.points)
    assert (parents[~inner] >= len(grown.points)).all()
    assert (parents < 0).sum() == 1
    below = parents >= 0
    assert (diameters[below] <= diameters[parents[below]]).all()
    assert diameters.max() == pytest.approx(BOX.diameter, rel=1e-5)
    assert set(parents[below]) == set(np.flatnonzero(inner))


def test_a_projected_tree_lifts_its_points_into_the_domain_and_its_boxes_are_over_a_frame() -> None:
    domain = Ball((1.0,) * 12, 3.0)
    tree, rows = opened(domain, dimensions=3, depth=9), rows_of(domain)
    grown = tree.grow(Counted(tree.locate(rows), 2.0))
    assert np.allclose(grown.frame.T @ grown.frame, np.eye(3), atol=1e-5)
    middles = grown.cells.mean(axis=1)
    inside = np.linalg.norm(middles, axis=1) < 2.99  # others are moved to the border of the ball
    assert inside.any()
    assert np.allclose(((grown.points - 1.0) @ grown.frame)[inside], middles[inside], atol=1e-4)
    assert (np.linalg.norm(grown.points - 1.0, axis=1) <= 3.0 + 1e-9).all()


def test_a_centre_is_badly_cut_iff_a_cut_is_within_the_margin() -> None:
    domain = Box((0.0,), (1.0,))
    tree = opened(domain, depth=1, top=0)
    cut = domain.middle[0] + tree.borders[0][1][1] * domain.unit
    around = cut + np.array([[0.009], [0.011], [-0.009], [-0.011]])
    assert tree.badly_cut(around, 0.01).tolist() == [True, False, True, False]
    assert not opened(depth=6).badly_cut(np.empty((0, 3)), 0.3).any()


def test_trees_too_deep_for_the_lattice_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at most 20"):
        opened(Box((0.0,), (1.0,)), depth=21)


@pytest.mark.parametrize(("seed", "top"), [(0, 0), (1, 0), (2, 2), (3, 2)])
def test_weights_are_the_generalised_least_squares_where_none_is_negative(seed: int, top: int) -> None:
    g, shares = np.random.default_rng(seed), [np.ones(1)]
    for _ in range(7):
        shares.append(np.outer(shares[-1], [0.4, 0.6]).ravel())
    counts = [1e4 * of_cells + g.normal(0, 5, len(of_cells)) for of_cells in shares[top:]]
    nodes = Nodes.grown(Table(counts, [5.0 + level for level in range(len(counts))]), top, 7, 100.0)
    weights, errors = nodes.consistent()
    leaves = np.flatnonzero(~nodes.split)
    holds = np.zeros((len(nodes.levels), len(leaves)))
    for column, leaf in enumerate(leaves):
        node = leaf
        while node >= 0:
            holds[node, column] = 1
            node = nodes.parents[node]
    asked = np.isfinite(nodes.variances)
    scale = 1 / np.sqrt(nodes.variances[asked])
    scaled = holds[asked] * scale[:, None]
    best = np.linalg.lstsq(scaled, nodes.counts[asked] * scale, rcond=None)[0]
    covariance = np.linalg.inv(scaled.T @ scaled)
    assert (holds @ best > 0).all()
    assert errors[0] ** 2 == pytest.approx(covariance.sum())
    assert np.allclose(weights, holds @ best)


@given(
    side=st.one_of(st.integers(1, 40), st.just(2**20)),
    many=st.integers(0, 300),
    spread=st.floats(0.001, 1.0),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=100)
def test_every_integer_is_between_the_same_cuts_as_by_bisection(side: int, many: int, spread: float, seed: int) -> None:
    rng, wide = np.random.default_rng(seed), max(1, int(side * spread))
    cuts = np.sort(rng.integers(-wide, wide + 2, many))
    x = np.unique(np.concatenate([[-side, 0, side], cuts, cuts - 1, rng.integers(-side, side + 1, 100)])).clip(
        -side, side
    )
    assert CutTable.of(cuts, side).below(x).tolist() == np.searchsorted(cuts, x, side="right").tolist()

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
from cloister.core.types import Floats, Ints
from cloister.plugins.trees.quadtree import Nodes, Quadtree, ShiftedQuadtree
from cloister.plugins.trees.reduction import Steps
from tests.alarms import Alarm
from tests.plugins.tables import Counted

SEED = PublicRng.from_seed(51)
BOX = Box((-1.0, 0.0, 5.0), (1.0, 10.0, 5.5))
DOMAINS: tuple[Domain, ...] = (Box((0.0,), (1.0,)), BOX, Ball((0.5, -0.5), 2.0), Ball((0.0,) * 12, 1.0))


def opened(domain: Domain = BOX, k: int = 5, rows: int = 1000, **options: Any) -> Quadtree:
    return ShiftedQuadtree(**options).open(Problem(k, domain, rows, Budget("gaussian", 0.1)), SEED)


def rows_of(domain: Domain, n: int = 500) -> Ints:
    return domain.snap(domain.sample(np.random.default_rng(52), n, 0.0))


@pytest.mark.parametrize("domain", DOMAINS)
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
        tree = ShiftedQuadtree(depth=8, top=0).open(
            Problem(3, Box((0.0,), (1.0,)), 1000, Budget("gaussian", 0.1)), PublicRng.from_seed(seed)
        )
        for coarse, fine in zip(tree.borders[0][:-1], tree.borders[0][1:], strict=True):
            low, high, cuts = coarse[:-1], coarse[1:], fine[1::2]
            assert (3 * (cuts - low) >= high - low - 3).all()
            assert (3 * (high - cuts) >= high - low - 3).all()
            places.append((cuts - low) / (high - low))
    found = np.concatenate(places)  # 10,200 places, uniform over [1/3, 2/3]
    alarm.near(found.mean(), 0.5, (1 / 3) / np.sqrt(12 * len(found)), of=5)
    quarter = len(found) / 4
    alarm.near(np.histogram(found, 4, (1 / 3, 2 / 3))[0], quarter, np.sqrt(quarter * 3 / 4), of=2)


def test_a_long_column_is_split_before_a_short_one() -> None:
    tree = opened(Box((0.0, 0.0), (1.0, 4.0)), depth=6, top=0)
    assert tree.order == (1, 1, 0, 1, 0, 1)


def test_exact_counts_grow_leaves_that_hold_every_row_once() -> None:
    tree, rows = opened(depth=12, top=2), rows_of(BOX, 400)
    ids = tree.locate(rows)
    grown = tree.grow(Counted(ids, 2.0))
    leaf_of = {
        leaf: i for i, leaf in enumerate(zip(grown.leaves.levels.tolist(), grown.leaves.ids.tolist(), strict=True))
    }
    held = np.zeros(len(leaf_of))
    for row in ids:
        (mine,) = [leaf_of[level, cell] for level, cell in enumerate(row.tolist()) if (level, cell) in leaf_of]
        held[mine] += 1
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
    assert grown.points.shape[1] == 12
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


@pytest.mark.parametrize(("options", "words"), [({"depth": 21}, "too many"), ({"depth": 61}, "60")])
def test_trees_too_deep_for_the_lattice_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        opened(Box((0.0,), (1.0,)), **options)


def test_the_defaults_depend_on_public_figures_only() -> None:
    tree = opened(Ball((0.0,) * 30, 1.0), k=16, rows=10_000)
    assert (tree.reduced.dimension, tree.depth, tree.top) == (4, 28, 3)


def share(level: int, cell: int) -> float:
    """Of the rows: 0.4 of a cell's are in its left child."""
    return float(np.prod([0.6 if cell >> i & 1 else 0.4 for i in range(level)]))


class Random:
    """Noisy counts of cells that split their rows unevenly, remembered."""

    def __init__(self, seed: int, rows: float) -> None:
        self._g, self._rows, self._known = np.random.default_rng(seed), rows, dict[tuple[int, int], float]()

    def at(self, ids: Ints, level: int = 0) -> Floats:
        for i in ids.tolist():
            self._known.setdefault((level, i), self._rows * share(level, i) + self._g.normal(0, 5))
        return np.array([self._known[level, i] for i in ids.tolist()])

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), 5.0 + level)


@pytest.mark.parametrize(("seed", "top"), [(0, 0), (1, 0), (2, 2), (3, 2)])
def test_weights_are_the_generalised_least_squares_where_none_is_negative(seed: int, top: int) -> None:
    nodes = Nodes.grown(Random(seed, 1e6), top, 7, 3.0)
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
    best = np.linalg.lstsq(holds[asked] * scale[:, None], nodes.counts[asked] * scale, rcond=None)[0]
    covariance = np.linalg.inv((holds[asked] * scale[:, None]).T @ (holds[asked] * scale[:, None]))
    assert (holds @ best > 0).all()
    assert np.allclose(weights[leaves], best)
    assert errors[0] ** 2 == pytest.approx(covariance.sum())
    below = nodes.parents >= 0
    sums = np.bincount(nodes.parents[below], weights[below], len(weights))
    assert np.allclose(sums[nodes.split], weights[nodes.split])
    assert (weights >= 0).all()


def test_a_negative_root_gives_weights_of_zero() -> None:
    nodes = Nodes.grown(Random(1, -100.0), 0, 5, 3.0)
    assert not nodes.consistent()[0].any()
    assert nodes.split.tolist() == [False]


def test_the_frontier_is_looked_at_once_per_level_and_no_further() -> None:
    looks = list[tuple[int, list[int]]]()

    class Told(Random):
        def at(self, ids: Ints, level: int = 0) -> Floats:
            looks.append((level, ids.tolist()))
            return np.where(ids == 0, 100.0, 0.0)

    nodes = Nodes.grown(Told(0, 1.0), 1, 4, 3.0)
    assert looks == [(0, [0, 1]), (1, [0, 1]), (2, [0, 1]), (3, [0, 1])]
    assert nodes.levels.tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert nodes.parents.tolist() == [-1, 0, 0, 1, 1, 3, 3, 5, 5]


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
    assert Steps.of(cuts, side).below(x).tolist() == np.searchsorted(cuts, x, side="right").tolist()


@pytest.mark.parametrize("crowd", [1, 5, 200])
def test_cuts_that_crowd_in_one_cell_are_found_too(crowd: int) -> None:
    steps = Steps.of(np.arange(1, crowd + 1), 2**20)
    assert steps.crowd == min(crowd, 1 << steps.shift)
    assert steps.below(np.array([-(2**20), 0, 1, crowd, 2**20])).tolist() == [0, 0, 1, crowd, crowd]

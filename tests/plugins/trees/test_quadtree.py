"""The shifted quadtree: cuts in the middle third, grown leaves, badly cut centres, and weights that agree, against a
general least-squares solver."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Ball, Box, Domain
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats, Ints
from cloister.plugins.trees.quadtree import Nodes, Quadtree, ShiftedQuadtree
from tests.plugins.tables import Counted

SEED = PublicRng.from_seed(51)
BOX = Box((-1.0, 0.0, 5.0), (1.0, 10.0, 5.5))


def opened(domain: Domain = BOX, k: int = 5, rows: int = 1000, **options: Any) -> Quadtree:
    return ShiftedQuadtree(**options).open(Problem(k, domain, rows, Budget("gaussian", 0.1)), SEED)


def rows_of(domain: Domain, n: int = 500) -> Ints:
    return domain.snap(domain.sample(np.random.default_rng(52), n, 0.0))


def test_an_interval_is_cut_in_its_middle_third() -> None:
    """Rounded to integers."""
    tree = opened(Box((0.0,), (1.0,)), depth=8, top=0)
    for coarse, fine in itertools.pairwise(tree.borders[0]):
        low, high, cuts = coarse[:-1], coarse[1:], fine[1::2]
        assert (3 * (cuts - low) >= high - low - 3).all()
        assert (3 * (high - cuts) >= high - low - 3).all()


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


DOMAINS: tuple[Domain, ...] = (Box((0.0,), (1.0,)), BOX, Ball((0.5, -0.5), 2.0), Ball((0.0,) * 12, 1.0))


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

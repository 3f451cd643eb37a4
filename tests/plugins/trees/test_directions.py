"""Public directions: lengths, spread, exactness, and how many may be asked for. Trees of them: the cells of the nearest
direction, found by a filter in float32, and a binary tree of sign bits, grown as its paper does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import REACH, Ball
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats
from cloister.plugins.trees.directions import MAX_REPELLED, NORM, directions
from cloister.plugins.trees.simhash import SimHash, SimHashTree
from cloister.plugins.trees.spread_cells import SpreadCells, number_of_cells
from tests.plugins.tables import Table
from tests.reference_client.comparing import check_cells

SEED = PublicRng.from_seed(31)


@pytest.mark.parametrize("kind", ["repelled", "orthogonal", "unit"])
@pytest.mark.parametrize(("number", "d"), [(1, 1), (3, 1), (1, 4), (2, 2), (65, 3)])
def test_any_number_of_directions_in_any_dimension_has_unit_length(number: int, d: int, kind: Any) -> None:
    found = directions(SEED, number, d, kind)
    lengths = np.linalg.norm(found / NORM, axis=1)
    assert found.shape == (number, d)
    assert np.abs(lengths - 1).max() < 1e-8


@pytest.mark.parametrize("d", [1, 30, 100, 1000])
def test_every_partial_sum_of_a_product_is_an_integer_that_float64_holds(d: int) -> None:
    """The worst row for any order of adding: parallel to |g|, of the largest norm of a lattice point."""
    around = directions(SEED, 4, d, "unit")
    for g in around.tolist():
        length = sum(v * v for v in g) ** 0.5
        worst = [int(abs(v) * REACH / length) for v in g]
        assert sum(abs(v) * x for v, x in zip(g, worst, strict=True)) < 2**51


def test_spreading_makes_less_of_what_it_descends_on() -> None:
    spread, unit = (directions(SEED, 128, 8, kind) / NORM for kind in ("repelled", "unit"))
    energies = [((g @ g.T - np.eye(128)) ** 16).sum() for g in (spread, unit)]
    assert energies[0] < 0.1 * energies[1]


def test_too_many_directions_are_not_spread() -> None:
    """Pairs of 2^15 directions are 8 GB: a plan must open on a phone."""
    many = MAX_REPELLED + 1
    with pytest.raises(InvalidInput, match="'orthogonal'"):
        directions(SEED, many, 4, "repelled")
    assert np.array_equal(directions(SEED, many, 4, "auto"), directions(SEED, many, 4, "orthogonal"))


def test_directions_of_a_block_are_orthogonal() -> None:
    found = directions(SEED, 64, 32, "orthogonal") / NORM
    for block in (found[:32], found[32:]):
        assert np.abs(block @ block.T - np.eye(32)).max() < 1e-7


def opened(builder: Any, d: int, k: int = 4, rows: int = 1000) -> Any:
    return builder.open(Problem(k, Ball((0.0,) * d, 1.0), rows, Budget("pure", 1.0)), SEED)


# The nearest direction


@pytest.mark.parametrize(("d", "cells"), [(3, 2), (3, 64), (33, 64), (100, 32), (1500, 8)])
def test_the_filter_changes_no_cell(d: int, cells: int) -> None:
    """Rows of every length, down to single lattice steps, and lattice neighbours of the borders between the two nearest
    cells, by a device's integers."""
    g, tree = np.random.default_rng(d), opened(SpreadCells(cells=cells), d)
    along = g.standard_normal((250, d))
    lengths = np.exp(g.uniform(0, np.log(REACH * 0.99), 250))
    rows = np.rint(along * (lengths / np.linalg.norm(along, axis=1))[:, None]).astype(np.int64)
    near, first = (tree.around / NORM) @ (tree.around.T / NORM) - np.eye(cells // 2), g.integers(0, cells // 2, 250)
    second = abs(near).argmax(axis=1)[first]
    sums = tree.around[first] + np.sign(near[first, second])[:, None] * tree.around[second]
    border = np.rint(sums / NORM * 2**18).astype(np.int64) + g.integers(-1, 2, (250, d))
    check_cells(tree, np.concatenate([rows, border, g.integers(-1, 2, (100, d))]))


def test_the_number_of_cells_is_a_power_of_two_near_8_k_squared_and_two_in_one_column() -> None:
    assert [number_of_cells(k) for k in (1, 4, 8, 16, 32, 100)] == [256, 256, 512, 2048, 4096, 4096]
    assert opened(SpreadCells(cells=64), 1).space.sizes == (2,)
    with pytest.raises(InvalidInput, match="power of two"):
        SpreadCells(cells=48)


@pytest.mark.parametrize(("less", "kept"), [(0, [4, 5, 9, 12]), (47, [5, 9, 12, 13])])
def test_cells_are_kept_by_their_own_errors_or_the_largest(less: int, kept: list[int]) -> None:
    """Where fewer than four are significant the four largest are kept instead."""
    tree, counts, errors = opened(SpreadCells(cells=16, fewest=2), 6, k=2), np.zeros(16), np.ones(16)
    counts[[1, 4, 5, 9, 12, 13]], errors[13] = [2.9, 3.1, 50.0, 4.0, 3.5, 9.0], 4.0
    grown = tree.grow(Table(counts - less, errors))
    assert grown.leaves.ids.tolist() == kept
    assert grown.errors.weights.tolist() == errors[kept].tolist()
    assert np.linalg.norm(grown.points, axis=1) == pytest.approx(np.full(4, 0.5), abs=1e-3)
    assert tree.locate(tree.domain.snap(grown.points))[:, 0].tolist() == kept


# Sign bits


def leaves_by_recursion(tree: SimHashTree, counts: list[Floats], level: int, node: int) -> list[tuple[int, int]]:
    """Algorithm as printed: a node of at least the threshold has two children, down to the last level."""
    last = level + 1 == tree.space.levels
    if last or not counts[level][node] >= tree.threshold:
        return [(level, node)]
    return [leaf for bit in (0, 1) for leaf in leaves_by_recursion(tree, counts, level + 1, 2 * node + bit)]


@pytest.mark.parametrize("seed", range(4))
def test_growth_is_the_paper_s_recursion(seed: int) -> None:
    g, tree = np.random.default_rng(seed), opened(SimHash(depth=6), 6)
    counts = [g.normal(tree.threshold, 200, size) for size in tree.space.sizes]
    grown = tree.grow(Table(counts, [np.arange(size) / 100 for size in tree.space.sizes]))
    found = list(zip(grown.leaves.levels.tolist(), grown.leaves.ids.tolist(), strict=True))
    assert sorted(found) == sorted(leaves_by_recursion(tree, counts, 0, 0) + leaves_by_recursion(tree, counts, 0, 1))
    assert grown.weights.tolist() == [counts[level][node] for level, node in found]
    assert grown.errors.weights.tolist() == [node / 100 for _, node in found]


def test_the_default_depth_and_the_threshold_are_the_paper_s() -> None:
    assert [opened(SimHash(), 6, k).space.levels for k in (1, 2, 8, 9)] == [3, 4, 6, 7]
    assert [opened(SimHash(branch=branch), 6, 3).threshold for branch in (1.5, 2.0)] == [1.5 * 333, 2.0 * 333]

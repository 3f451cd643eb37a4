"""Public trees of the one-round methods: spread cells, sign bits, grids."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Ball, Box, Domain
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats, Ints
from cloister.plugins.trees.directions import NORM, directions
from cloister.plugins.trees.grid import Grid
from cloister.plugins.trees.simhash import SimHash
from cloister.plugins.trees.spread_cells import SpreadCells, number_of_cells
from cloister.testing import parametrize

SEED = PublicRng.from_seed(4)


@attrs.frozen
class Told:
    """Counts as given per level, all with one standard error."""

    digest_tag = "tests.test_flat_trees.Told"

    levels: tuple[Floats, ...]
    error: float = 1.0

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return self.levels[level][ids]

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), self.error)


def ball(d: int) -> Ball:
    return Ball((0.0,) * d, 1.0)


def problem(domain: Domain, k: int = 3, rows: int = 1000, epsilon: float = 1.0) -> Problem:
    return Problem(k, domain, rows, Budget("pure", epsilon))


def lattice_rows(domain: Domain, n: int, seed: int) -> Ints:
    g = np.random.default_rng(seed)
    coarse = domain.real(g.integers(-3, 4, (n // 2, domain.dimension)) * (domain.sides // 8))
    return domain.snap(np.concatenate([domain.sample(g, n - n // 2, 0.0), coarse]))


@parametrize(
    SpreadCells(cells=16),
    SpreadCells(cells=64, directions="unit"),
    SpreadCells(directions="orthogonal"),
    SimHash(depth=3),
    Grid(side=5),
)
def test_trees_conform(component: Any, check: Any) -> None:
    check(component)


@pytest.mark.parametrize(("d", "kind"), [(2, "repelled"), (7, "auto"), (40, "auto"), (12, "orthogonal"), (9, "unit")])
def test_directions_are_integers_of_one_length(d: int, kind: Any) -> None:
    found = directions(SEED, 40, d, kind)
    assert found.dtype == np.int64
    assert found.shape == (40, d)
    lengths = np.sqrt((found.astype(object) ** 2).sum(axis=1).astype(float))
    assert np.abs(lengths / NORM - 1).max() < 1e-7
    assert NORM * (1 + 1e-7) * 2**20 < 2**53  # so that products with rows are exact


def test_directions_of_a_block_are_orthogonal() -> None:
    found = directions(SEED, 64, 32, "orthogonal") / NORM
    for block in (found[:32], found[32:]):
        assert np.abs(block @ block.T - np.eye(32)).max() < 1e-7


@pytest.mark.parametrize(("d", "number"), [(4, 32), (10, 128), (20, 256)])
def test_repelled_directions_are_farther_apart_than_independent_ones(d: int, number: int) -> None:
    def nearest(kind: Any) -> float:
        g = directions(SEED, number, d, kind) / NORM
        products = np.abs(g @ g.T)
        np.fill_diagonal(products, 0)
        return float(products.max())

    assert nearest("repelled") < nearest("unit") - 0.1


@pytest.mark.parametrize(("d", "cells"), [(2, 8), (5, 64), (40, 128), (100, 256)])
def test_a_row_s_cell_is_the_one_of_the_largest_product_in_exact_integers(d: int, cells: int) -> None:
    """Also where directions tie: rows on a coarse grid and near the border of two cells."""
    tree = SpreadCells(cells=cells).open(problem(ball(d)), SEED)
    rows = lattice_rows(ball(d), 400, d)
    first, second = tree.around[0].astype(float), tree.around[1].astype(float)
    between = np.rint(np.outer(np.linspace(-1, 1, 21) * 1e-6 + 1, first + second) / NORM * 2**18).astype(np.int64)
    rows = np.concatenate([rows, between, np.zeros((1, d), np.int64)])
    products = rows.astype(object) @ tree.around.T.astype(object)
    best = np.array([max(range(cells // 2), key=lambda j: (abs(p[j]), -j)) for p in products])
    wanted = 2 * best + np.array([int(p[j] < 0) for p, j in zip(products, best, strict=True)])
    assert np.array_equal(tree.locate(rows)[:, 0], wanted)


def test_near_ties_are_done_again_exactly() -> None:
    """Two directions that float32 cannot tell apart: the float32 filter alone would misplace about half of the rows."""
    d = 50
    tree = SpreadCells(cells=4, directions="unit").open(problem(ball(d)), SEED)
    twins = np.array([tree.around[0], tree.around[0]])
    twins[1, :10] += 3
    close = attrs.evolve(tree, around=twins)
    rows = lattice_rows(ball(d), 300, 9)
    products = rows.astype(object) @ twins.T.astype(object)
    best = np.array([0 if abs(p[0]) >= abs(p[1]) else 1 for p in products])
    assert 0.2 < best.mean() < 0.8
    assert np.array_equal(close.locate(rows)[:, 0] >> 1, best)


def test_cells_are_kept_by_significance_or_the_largest() -> None:
    tree = SpreadCells(cells=16, fewest=2).open(problem(ball(6), k=2), SEED)
    counts = np.zeros(16)
    counts[[1, 4, 5, 9, 12]] = [2.9, 3.1, 50.0, 4.0, 3.5]
    grown = tree.grow(Told((counts,)))
    assert grown.leaves is not None
    assert grown.leaves.ids.tolist() == [4, 5, 9, 12]
    assert grown.weights.tolist() == [3.1, 50.0, 4.0, 3.5]
    grown = tree.grow(Told((counts - 47,)))  # one significant cell: the four largest instead
    assert grown.leaves is not None
    assert grown.leaves.ids.tolist() == [4, 5, 9, 12]
    assert np.linalg.norm(grown.points, axis=1) == pytest.approx(np.full(4, 0.5), abs=1e-3)
    assert tree.locate(ball(6).snap(grown.points))[:, 0].tolist() == [4, 5, 9, 12]


def test_the_default_number_of_cells_grows_with_the_square_of_k() -> None:
    assert [number_of_cells(k) for k in (1, 4, 8, 16, 32, 100)] == [256, 256, 512, 2048, 4096, 4096]


def test_sign_bits_are_prefixes_of_each_other() -> None:
    tree = SimHash().open(problem(ball(5), k=5), SEED)
    assert tree.space.sizes == (2, 4, 8, 16, 32, 64)  # ceil(log2 5) + 3 levels
    rows = lattice_rows(ball(5), 500, 2)
    ids = tree.locate(rows)
    bits = (rows.astype(object) @ tree.around.T.astype(object)) < 0
    wanted = [int("".join(str(int(b)) for b in row), 2) for row in bits]
    assert ids[:, -1].tolist() == wanted
    assert np.array_equal(ids[:, 1:] >> 1, ids[:, :-1])


def test_a_node_branches_at_one_and_a_half_times_its_fair_share() -> None:
    """Appendix D: 1.5 floor(n / k) = 499.5 with n = 1000 declared rows and k = 3."""
    tree = SimHash(depth=3).open(problem(ball(4)), SEED)
    counts = (np.array([499.5, 499.4]), np.array([100.0, 600.0, 0, 0]), np.arange(8.0))
    grown = tree.grow(Told(counts))
    assert grown.leaves is not None
    leaves = list(zip(grown.leaves.levels.tolist(), grown.leaves.ids.tolist(), grown.weights.tolist(), strict=True))
    assert leaves == [(0, 1, 499.4), (1, 0, 100.0), (2, 2, 2.0), (2, 3, 3.0)]


def test_without_rows_the_root_alone_branches() -> None:
    grown = SimHash(depth=4).open(problem(ball(4)), SEED).grow(Told(tuple(np.zeros(2**i) for i in range(1, 5))))
    assert grown.leaves is not None
    assert grown.leaves.ids.tolist() == [0, 1]
    assert np.isfinite(grown.points).all()


@pytest.mark.parametrize("domain", [Box((0.0,), (4.0,)), Box((0.0, -1.0), (1.0, 3.0)), ball(3)], ids=str)
def test_a_grid_s_cells_are_equal_boxes_around_their_middles(domain: Domain) -> None:
    side = 4
    tree = Grid(side=side).open(problem(domain), SEED)
    rows = lattice_rows(domain, 400, 3)
    cell = np.floor((rows + domain.sides) * side / (2 * domain.sides + 1)).astype(int)
    wanted = sum(cell[:, j] * side ** (domain.dimension - 1 - j) for j in range(domain.dimension))
    assert np.array_equal(tree.locate(rows)[:, 0], wanted)
    grown = tree.grow(Told((np.full(side**domain.dimension, 9.0),)))
    inside = domain.snap(grown.points)
    assert grown.leaves is not None
    assert np.array_equal(tree.locate(inside)[:, 0], grown.leaves.ids)


def test_cells_outside_a_ball_hold_no_row() -> None:
    domain = ball(2)
    tree = Grid(side=16).open(problem(domain), SEED)
    grown = tree.grow(Told((np.full(256, 9.0),)))
    assert grown.leaves is not None
    held = np.unique(tree.locate(domain.snap(domain.sample(np.random.default_rng(1), 50_000, 0.0))))
    assert set(held.tolist()) <= set(grown.leaves.ids.tolist())
    assert len(grown.leaves.ids) < 256


def test_a_grid_has_more_cells_where_more_rows_rise_above_the_noise() -> None:
    sizes = [
        Grid().open(problem(ball(d), rows=rows), SEED).space.sizes[0] for d in (1, 2, 3) for rows in (10**5, 10**7)
    ]
    assert sizes == [256, 1024, 256, 1024, 343, 1331]


def test_grids_are_refused_where_they_have_too_many_cells() -> None:
    with pytest.raises(InvalidInput, match="spread-cells"):
        Grid(side=16).open(problem(ball(5)), SEED)
    with pytest.raises(InvalidInput, match="power of two"):
        SpreadCells(cells=100)


def test_one_column_has_two_cells() -> None:
    tree = SpreadCells(cells=64).open(problem(ball(1)), SEED)
    sides = tree.locate(np.array([[5], [-5], [0]]))[:, 0]
    assert sides[0] != sides[1]
    assert math.prod(tree.space.sizes) == 2

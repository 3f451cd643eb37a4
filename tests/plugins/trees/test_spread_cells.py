"""Spread cells: the filter in float32 against Python integers, ties, blocks, odd counts, options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import REACH, Ball
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.types import Ints
from cloister.plugins.trees.directions import NORM
from cloister.plugins.trees.spread_cells import SpreadCells, SpreadTree, number_of_cells
from tests.plugins.tables import Table

SEED = PublicRng.from_seed(32)


def ball(d: int) -> Ball:
    return Ball((0.0,) * d, 1.0)


def opened(d: int, cells: int, k: int = 3, **options: Any) -> SpreadTree:
    return SpreadCells(cells=cells, **options).open(Problem(k, ball(d), 1000, Budget("pure", 1.0)), SEED)


def in_integers(around: Ints, rows: Ints) -> list[int]:
    """The definition, in Python integers."""
    ids = list[int]()
    for row in rows.tolist():
        products = [sum(a * b for a, b in zip(g, row, strict=True)) for g in around.tolist()]
        j = max(range(len(products)), key=lambda i: (abs(products[i]), -i))
        ids.append(2 * j + (products[j] < 0))
    return ids


@pytest.mark.parametrize(("d", "cells"), [(3, 2), (3, 64), (33, 64), (100, 32)])
def test_the_filter_changes_no_cell(d: int, cells: int) -> None:
    """Rows of every length, down to single lattice steps, and lattice neighbours of the borders between the two nearest
    cells."""
    g, tree = np.random.default_rng(d), opened(d, cells)
    directions = g.standard_normal((250, d))
    lengths = np.exp(g.uniform(0, np.log(REACH * 0.99), 250))
    rows = np.rint(directions * (lengths / np.linalg.norm(directions, axis=1))[:, None]).astype(np.int64)
    pairs = g.integers(0, cells // 2, (250, 2))
    sums = tree.around[pairs[:, 0]] * g.choice([-1, 1], 250)[:, None] + tree.around[pairs[:, 1]]
    border = np.rint(sums / NORM * 2**18).astype(np.int64) + g.integers(-1, 2, (250, d))
    rows = np.concatenate([rows, border, g.integers(-1, 2, (100, d))])
    assert tree.locate(rows)[:, 0].tolist() == in_integers(tree.around, rows)


@pytest.mark.parametrize("d", [1, 7, 100, 1500])
def test_float32_products_err_by_less_than_the_filter_allows(d: int) -> None:
    """Rows that make sums grow (parallel to |g|, one sign) or cancel; the bound of ``_nearest`` is for the difference
    of two."""
    tree, g = opened(d, 2, directions="unit"), np.random.default_rng(3)
    along = np.abs(tree.around[0]) / NORM
    signs = np.where(np.arange(d) % 2, 1, -1)
    rows = np.rint(np.stack([along, along * signs, *(along * g.choice([-1, 1], (50, d)))]) * REACH * 0.999).astype(
        np.int64
    )
    found = (tree._cells._rounded @ rows.astype(np.float32).T)[0].astype(float)
    exact = (rows.astype(object) @ tree.around[0].astype(object)).astype(float) / NORM
    lengths = np.linalg.norm(rows, axis=1)
    assert (np.abs(found - exact) <= 1.05 * (d + 2) * 2.0**-24 * lengths).all()


def test_the_number_of_cells_is_a_power_of_two_near_8_k_squared_and_two_in_one_column() -> None:
    assert [number_of_cells(k) for k in (1, 4, 8, 16, 32, 100)] == [256, 256, 512, 2048, 4096, 4096]
    assert opened(1, 64).space.sizes == (2,)
    with pytest.raises(InvalidInput, match="power of two"):
        SpreadCells(cells=48)


@pytest.mark.parametrize(("less", "kept"), [(0, [4, 5, 9, 12]), (47, [5, 9, 12, 13])])
def test_cells_are_kept_by_their_own_errors_or_the_largest(less: int, kept: list[int]) -> None:
    """Where fewer than four are significant the four largest are kept instead."""
    tree, counts, errors = opened(6, 16, k=2, fewest=2), np.zeros(16), np.ones(16)
    counts[[1, 4, 5, 9, 12, 13]], errors[13] = [2.9, 3.1, 50.0, 4.0, 3.5, 9.0], 4.0
    grown: Any = tree.grow(Table(counts - less, errors))
    assert grown.leaves.ids.tolist() == kept
    assert grown.weights == pytest.approx(counts[kept] - less)
    assert grown.errors.weights.tolist() == errors[kept].tolist()
    assert not grown.errors.sums.any()
    assert np.linalg.norm(grown.points, axis=1) == pytest.approx(np.full(4, 0.5), abs=1e-3)
    assert tree.locate(ball(6).snap(grown.points))[:, 0].tolist() == kept

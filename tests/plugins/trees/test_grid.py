"""Grids: cells that are nearly square and never too many, those of a ball, the significance rule, options."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Ball, Box, Domain
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.plugins.trees.grid import Grid, GridTree
from cloister.plugins.trees.grid_cells import MAX_CELLS, GridCells
from tests.plugins.tables import Table

SEED = PublicRng.from_seed(34)


def opened(domain: Domain, k: int = 2, rows: int = 1000, budget: Budget | None = None, **options: Any) -> GridTree:
    return Grid(**options).open(Problem(k, domain, rows, budget or Budget("pure", 1.0)), SEED)


def first_of(cell: int, side: int, reach: int) -> int:
    """The lowest coordinate x of a cell: floor((x + s) G / (2 s + 1)) = cell, in Python integers."""
    return -((-cell * (2 * reach + 1)) // side) - reach


@pytest.mark.parametrize(("d", "side"), [(1, 5), (2, 3), (2, 16), (3, 7)])
def test_cells_of_a_ball_are_kept_exactly_if_a_row_can_be_in_them(d: int, side: int) -> None:
    """The lattice point of each cell that is nearest to the middle, in integers, against what ``grow`` looks at."""
    domain = Ball((0.5,) * d, 2.0)
    tree, reach = opened(domain, side=side), domain.max_norm
    spans = [(first_of(c, side, reach), first_of(c + 1, side, reach) - 1) for c in range(side)]
    nearest = [0 if low <= 0 <= high else min(abs(low), abs(high)) for low, high in spans]
    held = [i for i, xs in enumerate(itertools.product(nearest, repeat=d)) if sum(x * x for x in xs) <= reach**2]
    grown = tree.grow(Table(np.full(side**d, 9.0), np.ones(side**d)))
    assert grown.leaves.ids.tolist() == held
    assert np.abs(domain.truncate(grown.points) - grown.points).max() < 1e-9


def test_cells_between_lattice_steps_are_left_out() -> None:
    """A column 1e-7 as wide as the other one has a single lattice step: all of its rows are in one of four cells."""
    tree = opened(Box((0.0, 0.0), (1.0, 1e-7)), side=4)
    grown = tree.grow(Table(np.full(16, 9.0), np.ones(16)))
    assert tree.domain.sides[1] == 0
    assert grown.leaves.ids.tolist() == [0, 4, 8, 12]


def test_cells_are_kept_by_significance_or_the_largest() -> None:
    """Two are significant: where three or fifty are wanted, the largest are kept instead."""
    domain = Box((0.0,), (1.0,))
    values, errors = np.array([0.0, 2.5, 2.6, 5.0, -9.0, 100.0]), np.array([1.0, 1.0, 1.0, 2.0, 1.0, 39.0])
    for k, kept in ((1, [2, 5]), (3, [2, 3, 5]), (50, [0, 1, 2, 3, 4, 5])):
        grown = opened(domain, side=6, k=k).grow(Table(values, errors))
        assert grown.leaves.ids.tolist() == kept
        assert grown.errors.weights.tolist() == errors[kept].tolist()


@pytest.mark.parametrize(
    ("budget", "rows", "cells"),
    [
        (Budget("pure", 2.0), 30_000, 256),
        (Budget("pure", 2.0), 500_000, 1024),
        (Budget("pure", 2.0), 8_000_000, 4096),
        (Budget("gaussian", 4.0), 30_000, 256),
        (Budget("gaussian", 4.0), 8_000_000, 4096),
        (Budget("exact", 1.0), 1000, 256),
    ],
    ids=str,
)
def test_the_default_grid_grows_with_the_square_root_of_rows_times_epsilon_squared_in_every_measure(
    budget: Budget, rows: int, cells: int
) -> None:
    assert opened(Box((0.0, 0.0), (1.0, 1.0)), rows=rows, budget=budget).space.sizes == (cells,)


def test_a_grid_in_many_columns_is_refused_with_a_way_out() -> None:
    with pytest.raises(InvalidInput, match="spread-cells"):
        opened(Ball((0.0,) * 100, 1.0))


@pytest.mark.parametrize(
    ("widths", "cells", "parts"),
    [
        ((1.0, 1.0), 100, (10, 10)),
        ((100.0, 1.0), 400, (200, 2)),
        ((1000.0, 10.0, 1e-3), 400, (200, 2, 1)),
        ((5.0,), 7, (7,)),
        ((1.0, 1.0), 0.0, (1, 1)),
        ((1.0, 1.0), math.inf, (256, 256)),
    ],
    ids=str,
)
def test_cells_are_nearly_square_whatever_the_columns_widths(
    widths: tuple[float, ...], cells: float, parts: tuple[int, ...]
) -> None:
    assert GridCells.nearly_square(Box((0.0,) * len(widths), widths), cells).parts == parts


@pytest.mark.parametrize("d", [1, 2, 6])
def test_there_are_never_more_cells_than_may_be_looked_at(d: int) -> None:
    for cells in (2.0**d, 1000.0, 50_000.0, 65_536.0, math.inf):
        for domain in (Ball((0.0,) * d, 1.0), Box((0.0,) * d, tuple(1.0 + j / 3 for j in range(d)))):
            assert 1 <= GridCells.nearly_square(domain, cells).space.sizes[0] <= MAX_CELLS


def test_a_row_lies_between_the_corners_of_its_cell_and_the_middle_is_half_way() -> None:
    domain = Box((0.0, -1.0, 7.0), (10.0, 1.0, 8.0))
    grid = GridCells.nearly_square(domain, 300.0)
    rows = domain.snap(domain.sample(np.random.default_rng(1), 500, 0.0))
    ids, real = grid.locate(rows)[:, 0], domain.real(rows)
    corners = grid.corners(ids)
    assert ((corners[:, 0] <= real + domain.unit) & (real - domain.unit <= corners[:, 1])).all()
    assert np.allclose(grid.middles(ids), corners.mean(axis=1), atol=domain.unit)
    assert np.allclose(corners[:, 1] - corners[:, 0], grid.widths)

"""Cells of a grid: nearly square in boxes of any shape, never too many, and a bucketing in exact integers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.core.domains import Ball, Box
from cloister.plugins.trees.grid_cells import MAX_CELLS, GridCells


@pytest.mark.parametrize(
    ("widths", "cells", "parts"),
    [
        ((1.0, 1.0), 100, (10, 10)),
        ((100.0, 1.0), 400, (200, 2)),
        ((100.0, 1.0), 100, (100, 1)),
        ((8.0, 4.0, 2.0), 64, (8, 4, 2)),
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

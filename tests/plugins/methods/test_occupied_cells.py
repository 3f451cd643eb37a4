"""Which cells are kept: those that noise does not explain, as many as hold the rows, weighed as they were released."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from cloister.core.clustering import Coreset
from cloister.core.domains import Ball, Box
from cloister.core.types import Floats, Ints
from cloister.plugins.methods.grid_means import occupied
from cloister.plugins.trees.grid_cells import GridCells

SQUARE = GridCells(Box((0.0, 0.0), (1.0, 1.0)), (20, 20))


@attrs.frozen
class Given:
    """A table with these values, all with one standard error."""

    values: Floats
    error: float

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return self.values[ids]

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), self.error)


def kept(values: Floats, error: float, k: int, rows: int, grid: GridCells = SQUARE) -> Coreset:
    return occupied(grid, Given(values.ravel().astype(float), error), k, rows)


def ids(cells: Coreset) -> list[int]:
    assert cells.leaves is not None
    return cells.leaves.ids.tolist()


def test_without_noise_occupied_cells_are_kept_and_no_more_than_hold_the_rows() -> None:
    values = np.zeros((20, 20))
    values[3, 4], values[10, 10], values[17, 2] = 60, 30, 10
    found = kept(values, 0.0, 1, 100)
    assert {3 * 20 + 4, 10 * 20 + 10, 17 * 20 + 2} <= set(ids(found))
    assert found.weights.sum() == 100
    assert len(kept(np.full((20, 20), 10.0), 0.0, 1, 1000).weights) == 100


def test_weights_are_the_counts_as_released_and_points_the_middles() -> None:
    values = np.zeros((20, 20))
    values[5, 5] = 100
    found = kept(values, 1.0, 1, 100)
    at = ids(found).index(5 * 20 + 5)
    assert found.weights[at] == 100
    assert found.points[at] == pytest.approx([0.275, 0.275], abs=1e-5)
    assert found.errors is not None
    assert (found.errors.weights == 1).all()


def test_noise_alone_leaves_about_k_false_cells_beside_the_rows() -> None:
    """400 cells, k = 4: beyond the 1,000 standard errors in one cell and what these spill on 8 neighbours, 4 by chance
    (false alarms: Poisson, above 16 with a chance of 1e-6 in a trial)."""
    g = np.random.default_rng(1)
    for _ in range(20):
        values = g.standard_normal((20, 20))
        values[8, 8] += 1000
        assert 1 <= len(kept(values, 1.0, 4, 1000).weights) <= 1 + 8 + 16


def test_a_group_that_each_cell_hides_shows_in_its_neighbours() -> None:
    """Nine cells of 2.5 standard errors each: of single noisy cells as many stand out by chance alone."""
    g, hits = np.random.default_rng(2), 0
    group = {i * 20 + j for i in (14, 15, 16) for j in (3, 4, 5)}
    for _ in range(50):
        values = g.standard_normal((20, 20))
        values[2, 2] += 200
        values[14:17, 3:6] += 2.5
        found = kept(values, 1.0, 2, 222)
        hits += len(group & set(ids(found)))
    assert hits > 50 * 5


@pytest.mark.parametrize("value", [0.0, -1e12, 1e300, -1e300])
@pytest.mark.parametrize("k", [1, 4, 1000])
def test_at_least_k_cells_or_all_are_kept_whatever_was_released(value: float, k: int) -> None:
    for grid in (SQUARE, GridCells(Ball((1.0, 2.0), 0.5), (7, 7)), GridCells(Box((0.0, 0.0), (1.0, 1e-7)), (5, 5))):
        found = kept(np.full(grid.space.sizes[0], value), 3.0, k, 50, grid)
        assert len(found.points) >= min(k, len(grid.possible))
        assert np.isfinite(found.points).all()


def test_cells_of_a_ball_that_no_row_can_be_in_are_never_kept() -> None:
    grid = GridCells(Ball((0.0, 0.0), 1.0), (20, 20))
    found = kept(np.full(400, 5.0), 1.0, 3, 10**6, grid)
    assert ids(found) == grid.possible.tolist()
    assert 300 < len(grid.possible) < 400

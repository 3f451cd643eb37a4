"""A grid of equal cells in up to three dimensions, whose middles stand for their rows: counts are enough.

The domain's bounding box is cut into G parts per column. Cells of the box that miss a ball hold no row and give no
point. Growing keeps the cells whose counts exceed ``significance`` standard errors, or the k largest.

Source: grids under differential privacy go back to Su, Cao, Li, Bertino, Jin 2016 (EUGkM); the figures are from
cloister's own study of the local model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, final

import attrs
import numpy as np

from cloister.core.reproducible_math import root
from cloister.plugin import (
    BundleArrays,
    Coreset,
    Counts,
    Domain,
    Errors,
    Ints,
    InvalidInput,
    Leaves,
    Problem,
    PublicRng,
    Space,
    component,
    option,
)
from cloister.plugins.trees.grid_cells import MAX_CELLS, GridCells

DIMENSIONS = 3
"""Limit of columns: with more, most occupied cells hold too few rows to rise above the noise."""

FEW, MANY, ENOUGH = 256, 1024, 2e6
"""Smallest number of cells, and their number at rows * eps^2 = 2e6 (measured at k = 15). It grows with the square root
of that product. A group within one cell is placed at its middle, which costs n times the cell's squared width; in two
columns that grows as sqrt(n), as in Theorem 1 of Chang et al. 2021. The count of a group's cell stays the same number
of standard errors."""


MAX_SIDES = {1: MAX_CELLS, 2: 256, 3: 40}
"""Limit of cells along a column, by the number of columns."""


@component
class Grid:
    """Equal cells over the domain's bounding box, in up to three dimensions."""

    side: int | None = option(
        default=None,
        low=1,
        high=2**16,
        unit="cells",
        help="cells along each column; none: 0.72 sqrt(rows) eps cells in total, at least 256",
    )
    significance: float = option(
        default=2.5, low=0.0, unit="standard errors", help="smallest count of a cell that is kept"
    )

    def open(self, problem: Problem, seed: PublicRng) -> GridTree:
        d = problem.domain.dimension
        if d > DIMENSIONS:
            raise InvalidInput(f"a grid is for at most {DIMENSIONS} columns, not {d}: use 'spread-cells'")
        side = self._side(problem, d)
        if side**d > MAX_CELLS:
            raise InvalidInput(
                f"a grid of {side} cells along each of {d} columns is too large, at most {MAX_CELLS} cells in total: "
                "use 'spread-cells', or fewer cells"
            )
        return GridTree(problem.domain, side, self.significance, problem.k)

    def _side(self, problem: Problem, d: int) -> int:
        if self.side is not None:
            return self.side
        budget = problem.budget
        strength = problem.rows * (budget.amount if budget.measure == "gaussian" else budget.epsilon * budget.epsilon)
        cells = min(max(FEW, MANY * root(strength / ENOUGH, 2)), MAX_CELLS)
        return max(2, min(math.ceil(root(cells, d) - 1e-9), MAX_SIDES[d]))


@final
@attrs.frozen
class GridTree:
    """Opened grid.

    Args:
        domain: of the rows.
        side: cells along each column.
        significance: smallest count of a cell that is kept, in standard errors.
        fewest: minimum number of cells that are kept.
    """

    domain: Domain
    side: int
    significance: float
    fewest: int

    nested = False

    @cached_property
    def cells(self) -> GridCells:
        return GridCells(self.domain, (self.side,) * self.domain.dimension)

    @property
    def space(self) -> Space:
        return self.cells.space

    def locate(self, rows: Ints) -> Ints:
        return self.cells.locate(rows)

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return self.cells.bundled(arrays)

    def grow(self, counts: Counts) -> Coreset:
        possible = self.cells.possible
        values, errors = counts.at(possible), counts.standard_error(possible)
        chosen = np.flatnonzero(values > self.significance * errors)
        if len(chosen) < self.fewest:
            chosen = np.sort(np.argsort(-values, kind="stable")[: self.fewest])
        ids = possible[chosen]
        return Coreset(
            self.cells.middles(ids),
            values[chosen],
            leaves=Leaves(np.zeros(len(ids), np.int64), ids),
            errors=Errors(errors[chosen], np.zeros(len(ids))),
        )

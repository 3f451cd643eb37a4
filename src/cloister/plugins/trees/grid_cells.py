"""Equal cells over a domain's bounding box: the cell of each row, and each cell's place.

Exact (law 5): a row's step along a column of lattice coordinates -s .. s is floor((x + s) G / (2 s + 1)), in integers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self, final

import attrs
import numpy as np

from cloister.core.reproducible_math import exp, log
from cloister.plugin import Ball, Bools, BundleArrays, Domain, Floats, Ints, Space, json_integers

MAX_CELLS = 2**16
"""Limit of a grid's cells, all of which are looked up."""


@final
@attrs.frozen
class GridCells:
    """Bucketing by equal cells.

    Args:
        domain: of the rows.
        parts: cells along each column (d,).
    """

    domain: Domain
    parts: tuple[int, ...]

    @classmethod
    def nearly_square(cls, domain: Domain, cells: float) -> Self:
        """Return about ``cells`` cells, at most ``MAX_CELLS``, with sides as equal as integer parts allow.

        A column that is narrower than the others' cells is not cut.
        """
        widths = 2.0 * domain.sides + 1
        free, cells = np.ones(len(widths), bool), min(max(cells, 1.0), float(MAX_CELLS))
        side = widths.max()
        while free.any():
            side = exp((sum(map(log, widths[free].tolist())) - log(cells)) / int(free.sum()))
            narrow = free & (widths < side)
            if not narrow.any():
                break
            free &= ~narrow
        parts = np.where(free, np.maximum(1, np.rint(widths / side)), 1).astype(np.int64)
        while math.prod(parts.tolist()) > MAX_CELLS:
            parts[np.argmax(parts)] -= 1
        return cls(domain, tuple(parts.tolist()))

    @property
    def space(self) -> Space:
        return Space((math.prod(self.parts),))

    def locate(self, rows: Ints) -> Ints:
        sides = self.domain.sides
        steps = (rows + sides) * self.parts // (2 * sides + 1)
        return (steps @ self._strides)[:, None]

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        sizes, sides = json_integers(self.space.sizes), self.domain.sides.tolist()
        return {"kind": "grid", "sizes": sizes, "sides": sides, "parts": self.parts}

    def middles(self, ids: Ints) -> Floats:
        """Return the middles of cells (m, d), in the caller's units, moved into the domain."""
        sides = self.domain.sides
        middles = (self._steps(ids) + 0.5) * (2 * sides + 1) / self.parts - sides - 0.5
        return self.domain.truncate(self.domain.middle + middles * self.domain.unit)

    def corners(self, ids: Ints) -> Floats:
        """Return the lower and upper corners of cells (m, 2, d), in the caller's units."""
        sides, steps = self.domain.sides, self._steps(ids)
        ends = np.stack([steps, steps + 1], axis=1) * ((2 * sides + 1) / np.array(self.parts)) - sides - 0.5
        return np.asarray(self.domain.middle + ends * self.domain.unit, np.float64)

    @property
    def widths(self) -> Floats:
        """Widths of a cell along each column (d,), in the caller's units."""
        return np.asarray((2 * self.domain.sides + 1) * self.domain.unit / self.parts, np.float64)

    @cached_property
    def possible(self) -> Ints:
        """Ids, ascending, of the cells that hold lattice points of the domain.

        Some cells of a ball's box miss the ball; a very narrow column has fewer lattice steps than cells.
        """
        ids = np.arange(self.space.sizes[0])
        return ids[self._may_hold_rows(self._steps(ids))]

    def _may_hold_rows(self, steps: Ints) -> Bools:
        low, high = self._lowest(steps), self._lowest(steps + 1) - 1
        occupied: Bools = np.logical_and.reduce(low <= high, axis=1)
        if isinstance(self.domain, Ball):
            nearest = np.maximum(np.maximum(low, -high), 0)
            occupied = occupied & ((nearest**2).sum(axis=1) <= self.domain.max_norm**2)
        return occupied

    @property
    def _strides(self) -> Ints:
        after = [math.prod(self.parts[j + 1 :]) for j in range(len(self.parts))]
        return np.array(after, np.int64)

    def _steps(self, ids: Ints) -> Ints:
        """Return the cells' steps along each column (m, d)."""
        steps: Ints = ids[:, None] // self._strides % np.array(self.parts)
        return steps

    def _lowest(self, steps: Ints) -> Ints:
        """Return the lowest lattice coordinate of steps (m, d), the inverse of the floor in ``locate``."""
        sides = self.domain.sides
        lowest: Ints = -((-steps * (2 * sides + 1)) // self.parts) - sides
        return lowest

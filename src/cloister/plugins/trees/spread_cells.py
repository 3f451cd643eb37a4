"""A flat partition of the domain by direction: K antipodal cells around K / 2 well-spread public directions.

A row x relative to the domain's middle falls in the cell

    b(x) = 2 j + [<g_j, x> < 0],     j the direction with the largest |<g_j, x>|, ties to the lowest.

Cells depend on directions and not on lengths: they do not separate rows at the middle, nor clusters behind each other.
In up to three dimensions a grid is better. Two of k clusters share a cell with probability about k^2 / 2K; more cells
cost no noise (every sum and count has the same) but split wide clusters.

Growing keeps the cells whose count exceeds ``significance`` standard errors or, so that wide clusters are not lost, the
``fewest`` * k largest; no threshold depends on n / k. Empty cells among them (K / 740 on average at 3 standard errors)
do little harm: a solver that knows the standard errors leaves them out.

Source: cross-polytope hashing of Andoni, Indyk, Laarhoven, Razenshteyn, Schmidt 2015; the figures are from cloister's
own study.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, final

import attrs
import numpy as np

from cloister.plugin import (
    BundleArrays,
    Coreset,
    Counts,
    Domain,
    Errors,
    Floats,
    Ints,
    InvalidInput,
    Leaves,
    Problem,
    PublicRng,
    Space,
    component,
    option,
)
from cloister.plugins.trees.directions import NORM, Kind, directions
from cloister.plugins.trees.nearest_direction import NearestDirection


@component
class SpreadCells:
    """Cells around well-spread public directions, in any number of dimensions."""

    cells: int | None = option(
        default=None, low=2, high=2**16, help="number of cells, a power of two; none: near 8 k^2, from 256 to 4096"
    )
    directions: Kind = option(
        default="auto",
        choices=("auto", "repelled", "orthogonal", "unit"),
        help="repelled: pushed apart; orthogonal: in orthonormal blocks; unit: independent; auto: repelled up to 32 "
        "dimensions",
    )
    significance: float = option(
        default=3.0, low=0.0, unit="standard errors", help="smallest count of a cell that is kept"
    )
    fewest: int = option(default=2, low=1, unit="k", help="minimum of cells that are kept, significant or not")

    def __attrs_post_init__(self) -> None:
        if self.cells is not None and self.cells & (self.cells - 1):
            raise InvalidInput(f"cells is {self.cells}: give a power of two")

    def open(self, problem: Problem, seed: PublicRng) -> SpreadTree:
        d, cells = problem.domain.dimension, self.cells or number_of_cells(problem.k)
        if d == 1:
            cells = 2
        around = directions(seed.child("directions"), cells // 2, d, self.directions)
        return SpreadTree(problem.domain, around, self.significance, self.fewest * problem.k)


def number_of_cells(k: int) -> int:
    """Return the power of two nearest to 8 k^2, from 256 to 4096: with two partitions, 16 k^2 cells in total."""
    return min(4096, max(256, 1 << round(math.log2(8 * k**2))))


@final
@attrs.frozen(eq=False)
class SpreadTree:
    """Opened partition.

    Args:
        domain: of the rows.
        around: directions (K / 2, d), integers.
        significance: smallest count of a cell that is kept, in standard errors.
        fewest: minimum number of cells that are kept.
    """

    domain: Domain
    around: Ints
    significance: float
    fewest: int

    nested = False

    @property
    def space(self) -> Space:
        return Space((2 * len(self.around),))

    def locate(self, rows: Ints) -> Ints:
        return self._cells.locate(rows)

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return self._cells.bundled(arrays)

    @cached_property
    def _cells(self) -> NearestDirection:
        return NearestDirection(self.around)

    def grow(self, counts: Counts) -> Coreset:
        ids = np.arange(self.space.sizes[0])
        values, errors = counts.at(ids), counts.standard_error(ids)
        chosen = np.flatnonzero(values > self.significance * errors)
        if len(chosen) < self.fewest:
            chosen = np.sort(np.argsort(-values, kind="stable")[: self.fewest])
        return Coreset(
            self._middles(chosen),
            values[chosen],
            leaves=Leaves(np.zeros(len(chosen), np.int64), chosen),
            errors=Errors(errors[chosen], np.zeros(len(chosen))),
        )

    def _middles(self, ids: Ints) -> Floats:
        """Return a point (m, d) in each cell, half way to the border."""
        signed = self.around[ids >> 1] * (1 - 2 * (ids & 1))[:, None] / NORM
        return self.domain.truncate(self.domain.middle + signed * (self.domain.max_norm * self.domain.unit / 2))

"""Rows by their nearest centre, and the means and spreads of each group, in one pass. NOT private."""

from __future__ import annotations

from functools import partial
from typing import Any, Self, final

import attrs
import numpy as np

from cloister.commands.evaluating import CentersInUnits, Clipped, added_fields, by_label
from cloister.core.types import Floats, Ints
from cloister.rows.options import Missing
from cloister.rows.reading import Chunk, TableRows, refuse_none
from cloister.run.result import Result


@final
@attrs.frozen(eq=False)
class GroupsOfRows:
    """Rows that are nearest to each of k centres. NOT private.

    Args:
        rows: number of rows used.
        left_out: number of rows with a missing or infinite cell.
        clipped: number of used rows outside the bounds.
        sizes: number of rows of each group, (k,).
        means: of the clipped rows, (k, d) in the caller's units; nan for an empty group.
        spreads: standard deviations of the clipped rows, (k, d); nan for an empty group.
        unclipped: means of the same rows as they are, (k, d).
    """

    rows: int
    left_out: int
    clipped: int
    sizes: Ints
    means: Floats
    spreads: Floats
    unclipped: Floats

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, with the unclipped means only if some row was clipped."""
        tables = {"means": self.means, "spreads": self.spreads}
        tables |= {"unclipped_means": self.unclipped} if self.clipped else {}
        groups = [
            {"rows": int(n), **{name: row[i].tolist() if n else None for name, row in tables.items()}}
            for i, n in enumerate(self.sizes)
        ]
        counts = {"rows": self.rows, "left_out": self.left_out, "clipped": self.clipped}
        return {"private": False, **counts, "groups": groups}


@final
@attrs.frozen(eq=False)
class SpreadSums:
    """Sums over some rows of their offsets from the nearest of k centres.

    Args:
        left_out, clipped: numbers of rows.
        sizes: of the groups, (k,).
        offsets: sums for the clipped rows, (k, d).
        squares: sums of the squares of those offsets, (k, d).
        unclipped: sums for the rows as they are, (k, d).
    """

    left_out: int
    clipped: int
    sizes: Ints
    offsets: Floats
    squares: Floats
    unclipped: Floats

    def merge(self, other: Self) -> Self:
        """Return the totals of both."""
        added: Self = added_fields(self, other)
        return added


def _sums(chunk: Chunk, result: Result, missing: Missing, scale: CentersInUnits) -> SpreadSums:
    clipped, centers = Clipped.of(chunk, result, missing), scale.centers
    sizes = np.zeros(len(centers), np.int64)
    totals, squares, unclipped = (np.zeros_like(centers) for _ in range(3))
    for k, members in by_label(scale.labels(clipped.moved)):
        offsets = clipped.moved[members] - centers[k]  # sums about the centres lose no digits
        sizes[k] = len(members)
        totals[k], squares[k] = offsets.sum(axis=0), np.square(offsets).sum(axis=0)
        unclipped[k] = (clipped.rows[members] - centers[k]).sum(axis=0)
    return SpreadSums(clipped.left_out, int(clipped.outside.sum()), sizes, totals, squares, unclipped)


def _about(centers: Floats, offsets: Floats) -> Floats:
    """Return means from their offsets about centres."""
    means = centers + offsets
    # what is left of a mean of 0 after rounding is 0
    return np.where(np.abs(means) <= 2.0**-40 * np.abs(centers), 0.0, means)


def grouped(result: Result, population: TableRows, missing: Missing) -> GroupsOfRows:
    """Assign rows to their nearest centres, in the run's units, and summarise each group, in one pass.

    Args and Raises: as for ``evaluating.evaluated``.
    """
    scale = CentersInUnits(result.centers, np.ones(len(result.columns)) if result.units is None else result.units)
    sums = population.aggregate(partial(_sums, result=result, missing=missing, scale=scale), SpreadSums.merge)
    if not sums.sizes.sum():
        refuse_none()
    with np.errstate(invalid="ignore", over="ignore"):
        counts = np.where(sums.sizes > 0, sums.sizes, np.nan)[:, None]
        mean = sums.offsets / counts
        spreads = np.sqrt(np.maximum(sums.squares / counts - mean**2, 0.0))
        means, unclipped = (_about(result.centers, offset) for offset in (mean, sums.unclipped / counts))
    return GroupsOfRows(int(sums.sizes.sum()), sums.left_out, sums.clipped, sums.sizes, means, spreads, unclipped)

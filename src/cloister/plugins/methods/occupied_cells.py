"""Which cells of a grid hold rows, as far as noise lets see: the released points that few-column methods cluster.

Cells are ranked by counts that are blurred with their neighbours', since rows that noise hides in one cell show in
several; these shares are a normal blur of half a cell. From the top, cells are kept that noise alone would exceed in
fewer than k cells of the grid, until they hold the public number of rows and a standard error of their sum, and at
least k. Weights are the counts as they came: blurred ones would draw centres to the borders of groups.

All of it is post-processing of released counts.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from cloister.core.clustering import Coreset, Errors, Leaves
from cloister.core.fixed_order import few_bits
from cloister.core.roles import Counts
from cloister.core.types import Floats
from cloister.plugins.trees.grid_cells import GridCells

SIDE, OWN = 1 / 9, 7 / 9
"""A cell's share in its neighbour's blurred count, and in its own: along each column."""


def occupied(grid: GridCells, counts: Counts, k: int, rows: int) -> Coreset:
    """The kept cells, as points at their middles. Args: rows, the public number."""
    ids = grid.possible
    values, errors = counts.at(ids), counts.standard_error(ids)
    blurred, error = _blurred(grid, values, 1), np.sqrt(_blurred(grid, errors**2, 2))
    falling = np.argsort(-blurred, kind="stable")
    held = np.maximum(values[falling], 0.0).cumsum() - np.sqrt((errors[falling] ** 2).cumsum())
    chance = min(0.5, k / len(ids))
    clear = int((blurred > -few_bits(NormalDist().inv_cdf(chance)) * error).sum())
    enough = int(np.searchsorted(np.maximum.accumulate(held), rows)) + 1
    kept = np.sort(falling[: max(k, min(clear, enough))])
    return Coreset(
        grid.middles(ids[kept]),
        values[kept],
        leaves=Leaves(np.zeros(len(kept), np.int64), ids[kept]),
        errors=Errors(errors[kept], np.zeros(len(kept))),
        cells=grid.corners(ids[kept]),
    )


def _blurred(grid: GridCells, values: Floats, power: int) -> Floats:
    """Values of the possible cells, blurred along each column with borders that reflect. Args: power, of the shares: 2
    for variances."""
    whole = np.zeros(grid.space.sizes[0])
    whole[grid.possible] = values
    whole = whole.reshape(grid.parts)
    for axis, parts in enumerate(grid.parts):
        if parts > 1:
            along = np.moveaxis(whole, axis, 0)
            padded = np.concatenate([along[:1], along, along[-1:]])
            near = SIDE**power * (padded[:-2] + padded[2:]) + OWN**power * padded[1:-1]
            whole = np.moveaxis(near, 0, axis)
    found: Floats = whole.ravel()[grid.possible]
    return found

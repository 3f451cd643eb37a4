"""Synthetic rows from a result's released values alone (post-processing, so they cost no budget).

1. The group of each row is drawn by the groups' sizes.
2. A described column is drawn from the group's histogram: a category's value, or 'other' for unlisted ones; true or
   false; a number, uniformly within its bin.
3. Of the clustered columns that are not described, categories are drawn by the centre's shares, and numbers jointly
   around the centre, at the distances that the result's model of the rows has (``showing.quality``).

Within a group the columns of 2 are independent, of one another and of those of 3. The seed is public.
"""

from __future__ import annotations

import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.types import AnyArray, Ints
from cloister.lab.tables import NamedTable, refuse_huge
from cloister.rows.categories import BOOLEAN
from cloister.rows.selection import table_columns
from cloister.run.layers.histograms import FALSE, OTHER, descriptions_of
from cloister.run.result import Result
from cloister.showing.quality import model_of, squares_to

MARK, GROUP = "synthetic", "group"
"""Column that marks all rows as synthetic; column of the groups' names."""

POINTS = 2**14
"""Number of distinct offsets from the centres."""


def sample(result: Result, rows: int, seed: int = 0, group_names: bool = False) -> tuple[NamedTable, list[str]]:
    """Draw a table of rows, in the columns' own units, from released values alone.

    Args:
        result: of any method that releases sizes.
        rows: number of rows.
        seed: the same arguments give the same table on one machine.
        group_names: add a column ``group`` with the groups' names.

    Returns:
        The table, labelled by group, with a last column ``synthetic`` that is true; and the names of columns left out
        because too little was released.

    Raises:
        InvalidInput: fewer than 1 row, or too many cells; the result has no sizes, no column that can be drawn, or a
            column ``synthetic`` (or ``group``, with ``group_names``).
        Damaged: the result's histograms are inconsistent.
    """
    descriptions, listed = descriptions_of(result), result.problem.get("categories", {})
    columns = dict.fromkeys([*table_columns(result.columns, listed), *result.problem.get("described", {})])
    sizes = result.weights if descriptions is None else descriptions.sizes
    refuse_huge(rows, len(columns))
    if rows < 1:
        raise InvalidInput(f"{rows} rows cannot be drawn: give 1 or more")
    if group_names and GROUP in columns:
        raise InvalidInput(f"the result has a column '{GROUP}', the name of the groups' column: leave out --names")
    if MARK in columns:
        raise InvalidInput(f"the result has a column '{MARK}', the name of the mark: rename it, and fit again")
    if sizes is None or sizes.max() <= 0:
        raise InvalidInput("the result has no sizes of groups: fit with --describe")
    g = np.random.default_rng(seed)
    groups = _drawn(sizes[None], np.zeros(rows, np.int64), g)
    cells = _around(result, groups, g)
    for name, values in listed.items():
        shares = result.centers[:, [result.columns.index(f"{name}={value}") for value in values]].clip(0)
        shares = np.column_stack([shares, 1 - shares.sum(axis=1)])
        cells[name] = _values(*values, OTHER)[_drawn(shares, groups, g)]
    for column in () if descriptions is None else descriptions.columns:
        codes = _drawn(column.counts, groups, g)
        if column.edges is None:
            cells[column.name] = _values(*column.labels)[codes]
        else:
            cells[column.name] = column.edges[codes] + np.diff(column.edges)[codes] * g.random(rows)
    if not cells:
        raise InvalidInput("the result has no distribution of any column: fit with --describe")
    if group_names:
        cells[GROUP] = np.array(result.group_names)[groups]
    cells[MARK] = np.ones(rows, bool)
    return NamedTable(cells, {}, groups), [name for name in columns if name not in cells]


def _drawn(weights: AnyArray, groups: Ints, g: np.random.Generator) -> Ints:
    """Draw an index (n,) for each group (n,), by the group's weights (k, m)."""
    ends = weights.clip(0).cumsum(axis=1)
    ends = ends / ends[:, -1:] + np.arange(len(ends))[:, None]
    # float32 has 24 bits: the sum stays exactly below the next group's
    places = groups + g.random(len(groups), np.float32)
    codes: Ints = np.searchsorted(ends.ravel(), places, "right") - groups * weights.shape[1]
    return codes


def _values(*labels: str) -> AnyArray:
    """Return values by code; the last one, for unlisted values, differs from all listed ones."""
    *listed, last = labels
    return np.array([True, False] if labels == (BOOLEAN, FALSE) else [*listed, last + "_" * (last in listed)])


def _around(result: Result, groups: Ints, g: np.random.Generator) -> dict[str, AnyArray]:
    """Draw numbers (n,) around the centres of groups (n,), within the bounds, by column.

    Return no column if the distances from the centres are unknown.
    """
    model = model_of(result)
    if model is None:
        return {}
    points = model.points(POINTS)
    nearest = squares_to(points, model.centers).argmin(axis=1)
    away = (points - model.centers[nearest]) * result.details.get("units", 1.0)
    weights = (nearest == np.arange(len(model.centers))[:, None]) + 1e-9  # any point for a centre without its own
    places, _ = result.clipped(result.centers[groups] + away[_drawn(weights, groups, g)])
    return {name: places[:, j] for j, name in enumerate(result.columns) if name not in result.one_hot}

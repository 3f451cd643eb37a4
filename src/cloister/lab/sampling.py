"""Synthetic rows: drawn from a result's released values alone, so that they cost nothing and are as private as it is.

1. The group of each row by the groups' sizes.
2. A described column by its counts within the group: a category's value, or 'other' for those that were not listed;
   true or false; a number, evenly within its part of the range.
3. Of the clustered columns that are not described, categories by the shares that the centre states, and numbers
   together around the centre, as far away as the result says that rows are (``showing.quality``).

Within a group the columns of 2 are independent, of one another and of those of 3. The draw is public: its seed is no
secret.
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
"""The column that says what the rows are: true in all of them."""

POINTS = 2**14
"""Different places that rows have around all centres together."""


def sample(result: Result, rows: int, seed: int = 0, group_names: bool = False) -> tuple[NamedTable, list[str]]:
    """Draw a table of rows, in the columns' own units, from released values alone. Its labels are the groups.

    Args: seed (the same arguments give the same table on one machine), group_names (whether the table has a column
    ``group`` with the groups' names).
    Returns: the table, whose last column ``synthetic`` is true, and the names of columns that the result says too
        little of to draw them.
    Raises: InvalidInput: fewer than 1 row, too many cells, a result without sizes or any column that can be drawn, or
        one that has a column ``synthetic`` (or ``group``, with their names). Damaged: the description does not fit
        together.
    """
    descriptions, listed = descriptions_of(result), result.problem.get("categories", {})
    columns = dict.fromkeys([*table_columns(result.columns, listed), *result.problem.get("described", {})])
    sizes = result.weights if descriptions is None else descriptions.sizes
    refuse_huge(rows, len(columns))
    if rows < 1:
        raise InvalidInput(f"{rows} rows cannot be drawn: ask for 1 or more")
    if group_names and GROUP in columns:
        raise InvalidInput(f"the result has a column '{GROUP}', which is where names of groups go: leave out --names")
    if MARK in columns:
        raise InvalidInput(f"the result has a column '{MARK}', which is how drawn rows are marked: rename it, and fit")
    if sizes is None or sizes.max() <= 0:
        raise InvalidInput("the result states no sizes of its groups to draw rows by: fit with --describe")
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
        raise InvalidInput("the result says of no column how its groups spread in it: fit with --describe")
    if group_names:
        cells[GROUP] = np.array(result.group_names)[groups]
    cells[MARK] = np.ones(rows, bool)
    return NamedTable(cells, {}, groups), [name for name in columns if name not in cells]


def _drawn(weights: AnyArray, groups: Ints, g: np.random.Generator) -> Ints:
    """A column's number (n,) for each group (n,), by the group's weights (k, m)."""
    ends = weights.clip(0).cumsum(axis=1)
    ends = ends / ends[:, -1:] + np.arange(len(ends))[:, None]
    places = groups + g.random(len(groups), np.float32)  # of 24 bits: exactly below the next group's
    codes: Ints = np.searchsorted(ends.ravel(), places, "right") - groups * weights.shape[1]
    return codes


def _values(*labels: str) -> AnyArray:
    """Values by their code: those that are not listed are told from one that is called so."""
    *listed, last = labels
    return np.array([True, False] if labels == (BOOLEAN, FALSE) else [*listed, last + "_" * (last in listed)])


def _around(result: Result, groups: Ints, g: np.random.Generator) -> dict[str, AnyArray]:
    """Numbers (n,) of groups (n,), by column: around the centres, within the bounds. Empty: nothing says how far
    away."""
    model = model_of(result)
    if model is None:
        return {}
    points = model.points(POINTS)
    nearest = squares_to(points, model.centers).argmin(axis=1)
    away = (points - model.centers[nearest]) * result.details.get("units", 1.0)
    weights = (nearest == np.arange(len(model.centers))[:, None]) + 1e-9  # any point, where none is nearest
    places, _ = result.clipped(result.centers[groups] + away[_drawn(weights, groups, g)])
    return {name: places[:, j] for j, name in enumerate(result.columns) if name not in result.one_hot}

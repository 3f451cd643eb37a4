"""Columns of a table as features: doubles, and NULL where a cell is missing or not finite.

What a cell is as a number follows from its declared type: integers, floats, decimals and booleans (0, 1), with one
correct rounding. Values of a category become features of 0 and 1 by ``sql.categories``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ibis.expr.operations as ops

from cloister.core.columns import Kind, Selection, TableColumn
from cloister.sql.arithmetic import Expr, every, finite
from cloister.sql.categories import one_hot
from cloister.sql.dialect import Dialect
from cloister.sql.stage import Fence, Stage

FINITE = "finite"
"""The column that says whether all floats of a row are finite, of engines that have ``Dialect.finite``."""

DIGITS = 15
"""Decimals of so many digits are quotients of two whole doubles, and engines divide those. Of longer ones some round
twice, DuckDB where there is no fraction (as in HUGEINT)."""


def table_columns(table: Any) -> list[TableColumn]:
    """The columns of a table, by their declared types."""
    return [TableColumn(name, _kind(kind)) for name, kind in table.schema().items()]


def table_name(table: Any) -> str:
    """What the engine calls a table; empty for the answer to a query."""
    found = table.op()
    return str(found.name) if isinstance(found, ops.DatabaseTable) else ""


def _kind(kind: Any) -> Kind:
    if kind.is_null():
        return "untyped"
    if kind.is_boolean():
        return "booleans"
    if kind.is_numeric():
        return "numbers"
    if kind.is_temporal() or kind.is_interval():
        return "dates"
    return "text" if kind.is_string() else "other"


def featured(
    table: Any, chosen: Selection, dialect: Dialect, beside: Mapping[str, Expr] | None = None
) -> tuple[Any, tuple[str, ...]]:
    """The features of all rows, as doubles or NULL, and the names of their columns.

    Args: beside, more columns of the answer, by names that are no feature's.
    """
    features = features_of(table, chosen, dialect)
    floats = [table[name] for name in chosen.used if table[name].type().is_floating()]
    finite = {FINITE: every([dialect.finite(column) for column in floats])} if dialect.finite and floats else {}
    return dialect.fence(table.select(**features, **finite, **(beside or {}))), tuple(features)


def features_of(table: Any, chosen: Selection, dialect: Dialect) -> dict[str, Expr]:
    """The features of a row, called c0, c1, ..., as doubles or NULL."""
    found = list[Expr]()
    for name in chosen.used:
        category = chosen.category(name)
        found += [_number(table[name], dialect)] if category is None else one_hot(table[name], category, dialect)
    return {f"c{j}": feature for j, feature in enumerate(found)}


def _number(column: Expr, dialect: Dialect) -> Expr:
    """A column as doubles."""
    kind = column.type()
    if kind.is_decimal() and (kind.precision or 0) > DIGITS:
        column = column.cast("string")
    return dialect.double(column)


def usable(table: Any, features: tuple[str, ...]) -> Any:
    """Whether a row can be used: no cell is missing or infinite."""
    cells = [finite(table[name]) for name in features]
    return every([table[FINITE].fill_null(False), *cells] if FINITE in table.columns else cells)


def used(table: Any, features: tuple[str, ...], fence: Fence) -> Stage:
    """The rows that can be used."""
    return Stage(table.filter(usable(table, features)), features, fence)

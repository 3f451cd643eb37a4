"""Table columns as features: doubles, with NULL where a cell is missing or not finite.

Integers, floats, decimals and booleans (0, 1) are converted by their declared type, with one correct rounding. Columns
of public categories become features of 0 and 1, by the equality of ``rows.categories``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import ibis
import ibis.expr.operations as ops

from cloister.rows.categories import LONGEST, Category, canonical
from cloister.rows.columns import Kind, TableColumn
from cloister.rows.databases.dialect import Dialect, same
from cloister.rows.databases.stage import Expr, Fence, Stage, every, finite, number
from cloister.rows.selection import Selection

WHOLE = re.compile("0|-?[1-9][0-9]*")
"""Whole number in the form of ``canonical``."""


def one_hot(column: Expr, category: Category, dialect: Dialect) -> list[Expr]:
    """Return the features of a category, all NULL if the cell is missing."""
    there, equal = _compared(column, dialect)
    return [
        ibis.ifelse(there, ibis.ifelse(equal(value), number(1), number(0)), ibis.null("float64"))
        for value in category.values
    ]


def _compared(column: Expr, dialect: Dialect) -> tuple[Expr, Callable[[str], Any]]:
    """Return whether a cell is present, and a test of whether it equals a value; a number has one spelling."""
    kind = column.type()
    if kind.is_boolean():
        return column.notnull(), lambda value: {"true": column, "false": ~column}.get(value, False)
    if kind.is_integer():
        return column.notnull(), lambda value: _whole(column, value)
    if kind.is_floating():
        double = column.cast("float64")
        return finite(double), lambda value: _float(double, value)
    cells = dialect.text(column)
    there = cells.notnull()
    if kind.is_decimal():  # PostgreSQL's decimals may be NaN or infinite
        for none in ("NaN", "Infinity", "-Infinity"):
            there = there & ~same(cells, none, dialect)
    return there, lambda value: _spelled(cells, value, dialect)


def _whole(column: Expr, value: str) -> Any:
    kind = column.type()
    if not WHOLE.fullmatch(value) or len(value) > LONGEST or not kind.bounds.lower <= int(value) <= kind.bounds.upper:
        return False
    return column == ibis.literal(int(value), kind)


def _float(column: Expr, value: str) -> Any:
    try:
        meant = float(value)
    except ValueError:
        return False
    return canonical(meant) == value and column == number(meant)


def _spelled(text: Expr, value: str, dialect: Dialect) -> Any:
    """Return whether ``canonical`` maps a text to this value: 3 is also '3.' and '3.00'."""
    if value in ("true", "false"):
        return same(text.lower(), value, dialect)
    equal = same(text, value, dialect)
    if WHOLE.fullmatch(value):
        for stem in (f"{value}.", "-0.")[: 2 if value == "0" else 1]:
            zeros_alone = same(text.replace("0", ""), stem.replace("0", ""), dialect)
            equal = equal | (same(text.left(len(stem)), stem, dialect) & zeros_alone)
    return equal


FINITE = "finite"
"""Column that says whether all floats of a row are finite, for engines with ``Dialect.finite``."""

DIGITS = 15
"""Decimals of so many digits are quotients of two whole doubles, which engines divide correctly.

Some longer ones are rounded twice; in DuckDB those without a fraction (as in HUGEINT).
"""


def table_columns(table: Any) -> list[TableColumn]:
    """Return the columns of a table, with the kinds of their declared types."""
    return [TableColumn(name, _kind(kind)) for name, kind in table.schema().items()]


def table_name(table: Any) -> str:
    """Return the engine's name of a table; empty for a query."""
    operation = table.op()
    return str(operation.name) if isinstance(operation, ops.DatabaseTable) else ""


def with_actual_types(table: Any, dialect: Dialect) -> Any:
    """Return the table with its actual column types (``Dialect.table``); other expressions are unchanged."""
    operation = table.op()
    if dialect.table is None or not isinstance(operation, ops.DatabaseTable):
        return table
    place = operation.namespace.database, operation.namespace.catalog
    with suppress(Exception):  # a broken connection fails again when rows are read, with a message
        return dialect.table(table.get_backend(), operation.name, place[0] if place[1] is None else place[::-1])
    return table


def table_names(table: Any) -> list[str]:
    """Return the names of all tables and views that an expression reads."""
    return sorted({str(operation.name) for operation in table.op().find(ops.DatabaseTable)})


def _kind(kind: Any) -> Kind:
    if kind.is_null():
        return "untyped"
    if kind.is_boolean():
        return "booleans"
    if kind.is_numeric():
        return "numbers"
    if kind.is_interval():
        return "spans"
    if kind.is_temporal():
        return "dates"
    return "text" if kind.is_string() else "other"


def feature_table(
    table: Any, chosen: Selection, dialect: Dialect, beside: Mapping[str, Expr] | None = None
) -> tuple[Any, tuple[str, ...]]:
    """Return a table of the features as doubles or NULL, and the names of their columns.

    ``beside`` holds additional columns, by names that no feature has.
    """
    features = features_of(table, chosen, dialect)
    floats = [table[name] for name in chosen.used if table[name].type().is_floating()]
    finite = {FINITE: every([dialect.finite(column) for column in floats])} if dialect.finite and floats else {}
    return dialect.fence(table.select(**features, **finite, **(beside or {}))), tuple(features)


def features_of(table: Any, chosen: Selection, dialect: Dialect) -> dict[str, Expr]:
    """Return the features, named c0, c1, ..., as doubles or NULL."""
    columns = list[Expr]()
    for name in chosen.used:
        category = chosen.category(name)
        columns += [_number(table[name], dialect)] if category is None else one_hot(table[name], category, dialect)
    return {f"c{j}": feature for j, feature in enumerate(columns)}


def _number(column: Expr, dialect: Dialect) -> Expr:
    """Convert a column to doubles."""
    kind = column.type()
    if kind.is_decimal() and (kind.precision or 0) > DIGITS:
        column = column.cast("string")
    return dialect.double(column)


def usable(table: Any, features: tuple[str, ...]) -> Any:
    """Return whether a row is usable: no cell is missing or infinite."""
    cells = [finite(table[name]) for name in features]
    return every([table[FINITE].fill_null(False), *cells] if FINITE in table.columns else cells)


def usable_rows(table: Any, features: tuple[str, ...], fence: Fence) -> Stage:
    """Return the usable rows."""
    return Stage(table.filter(usable(table, features)), features, fence)

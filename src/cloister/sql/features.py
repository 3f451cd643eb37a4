"""Columns of a table as features: doubles, and NULL where a cell is missing or not finite."""

from __future__ import annotations

import sys
from typing import Any

import ibis.expr.operations as ops

from cloister.core.columns import Kind, Selection, TableColumn
from cloister.sql.arithmetic import number
from cloister.sql.stage import Fence, Stage

LARGEST = sys.float_info.max


def table_columns(table: Any) -> list[TableColumn]:
    """The columns of a table, by their declared types."""
    return [TableColumn(name, _kind(kind)) for name, kind in table.schema().items()]


def table_name(table: Any) -> str:
    """What the engine calls a table; empty for the answer to a query."""
    found = table.op()
    return str(found.name) if isinstance(found, ops.DatabaseTable) else ""


def _kind(kind: Any) -> Kind:
    if kind.is_boolean():
        return "booleans"
    if kind.is_numeric():
        return "numbers"
    if kind.is_temporal():
        return "dates"
    return "text" if kind.is_string() else "other"


def featured(table: Any, chosen: Selection, fence: Fence) -> tuple[Any, tuple[str, ...]]:
    """The features of all rows, as doubles or NULL, and the names of their columns."""
    features = {f"c{j}": table[name].cast("float64") for j, name in enumerate(chosen.used)}
    return fence(table.select(**features)), tuple(features)


def usable(table: Any, features: tuple[str, ...]) -> Any:
    """Whether a row can be used: no cell is missing or infinite."""
    first, *others = (table[name].between(number(-LARGEST), number(LARGEST)).fill_null(False) for name in features)
    for each in others:
        first = first & each
    return first


def used(table: Any, features: tuple[str, ...], fence: Fence) -> Stage:
    """The rows that can be used."""
    return Stage(table.filter(usable(table, features)), features, fence)

"""Parquet files as a table of DuckDB, which runs in this process and keeps nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, final

import ibis

from cloister.core.errors import InvalidInput
from cloister.sql.duckdb import settings

Group: TypeAlias = tuple[Sequence[str], Mapping[str, str | None]]
"""Absolute paths of files that have the same columns of the same types, in any order, and the names of those that are
used: each with how it becomes a double, one of ``DOUBLE``, or None if it stays what it is."""

DOUBLE = {
    "float": "CASE WHEN isfinite({0}) THEN CAST({0} AS DOUBLE) END",  # before anything that hides NaN
    "decimal": "CAST(CAST({0} AS VARCHAR) AS DOUBLE)",  # which rounds once
    "other": "CAST({0} AS DOUBLE)",
}
"""Columns whose types differ between files, as doubles."""


@final
class ParquetTable:
    """A connection to a DuckDB of our own, in memory, and Parquet files as a view in it.

    Args:
        groups: the files.
        threads: how many work on a query.

    Attributes: table: of Ibis.

    Raises: InvalidInput: DuckDB has no way to be told the name of some file.
    """

    def __init__(self, groups: Sequence[Group], threads: int) -> None:
        self._backend = ibis.duckdb.connect(**settings(threads), enable_external_file_cache=False)
        self._backend.raw_sql(f"CREATE TEMP VIEW rows AS {' UNION ALL '.join(_read(*group) for group in groups)}")
        self.table: Any = self._backend.table("rows")

    def close(self) -> None:
        self._backend.disconnect()


def _read(paths: Sequence[str], columns: Mapping[str, str | None]) -> str:
    chosen = ", ".join(
        _name(name) if kind is None else f"{DOUBLE[kind].format(_name(name))} AS {_name(name)}"
        for name, kind in columns.items()
    )
    files = ", ".join(f"'{_pattern(path)}'" for path in paths)
    return f"SELECT {chosen} FROM read_parquet([{files}], hive_partitioning = false)"


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _pattern(path: str) -> str:
    """The pattern that this file alone has: DuckDB takes every path for one."""
    special = any(sign in path for sign in "*?[")
    if special and os.sep == "/" and "\\" in path:
        raise InvalidInput(
            f"'{path}': engine 'duckdb' cannot read files of such names: rename it, or leave --engine out"
        )
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in path).replace("'", "''")

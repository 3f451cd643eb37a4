"""Rows in a database: how callers name them, and what does not go with them."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from cloister.core.errors import InvalidInput, MissingExtra
from cloister.core.registry.registry import registry

KINDS = {
    **dict.fromkeys(("postgres", "postgresql"), "postgres://user@host:5432/database"),
    "duckdb": "duckdb:///lake.db",
    "pyspark": "pyspark://",
}
"""Looks of addresses, by their beginnings."""


def is_address(rows: Any) -> bool:
    """Whether a text is a database's address, such as duckdb:///lake.db, and not a file's path."""
    return isinstance(rows, str) and "://" in rows


def refuse_half_address(rows: Any) -> None:
    """Raises: InvalidInput: a text is a database's address without its slashes, such as duckdb:lake.db."""
    for each in rows if isinstance(rows, (list, tuple)) else [rows]:
        kind = each.partition(":")[0] if isinstance(each, str) and ":" in each else None
        if kind in KINDS and not is_address(each):
            raise InvalidInput(f"'{kind}:' begins a database's address: write it as {KINDS[kind]}, with --table NAME")


def is_ibis_table(rows: Any) -> bool:
    """Whether rows are a table of Ibis, or an expression that is one. Imports nothing."""
    return type(rows).__module__.partition(".")[0] == "ibis" and hasattr(rows, "get_backend")


def in_database(rows: Any) -> bool:
    """Whether rows are an address, several things of which one is, or a table of Ibis."""
    several = rows if isinstance(rows, (list, tuple)) else [rows]
    return any(is_address(each) for each in several) or is_ibis_table(rows)


def refuse_relation(rows: Any) -> None:
    """Raises: InvalidInput: rows are a relation of DuckDB's own, which has no snapshot and no connection to ask."""
    if type(rows).__name__ == "DuckDBPyRelation":
        raise InvalidInput(
            "rows are a relation of DuckDB: give a table of Ibis on the same connection, "
            "ibis.duckdb.from_connection(con).table('NAME'), or the file's address with table='NAME'"
        )


def refuse_lazy(rows: Any) -> None:
    """Raises: InvalidInput: rows are a lazy frame of polars or Dask, whose cells are nowhere yet. Imports nothing."""
    module, kind = type(rows).__module__.partition(".")[0], type(rows).__name__
    how = {
        ("polars", "LazyFrame"): "collect",
        ("dask", "DataFrame"): "compute",
        ("dask_expr", "DataFrame"): "compute",
        ("dask", "Array"): "compute",
    }.get((module, kind))
    if how is not None:
        raise InvalidInput(
            f"rows are a lazy {kind} of {module.partition('_')[0]}: fetch them first, as in rows.{how}(), or save them "
            f"as Parquet and give the files to the command line (cloister fit)"
        )


def refuse_path(rows: Any) -> None:
    """Raises: InvalidInput: rows are a path or an address, where a table is meant."""
    if isinstance(rows, (str, PathLike)):
        how = (
            "give ibis.connect(address).table('NAME'), a table of Ibis"
            if is_address(rows)
            else "read it first, as in pandas.read_parquet(path) or pandas.read_csv(path)"
        )
        raise InvalidInput(
            f"rows are a text or a path, and an estimator takes tables: {how}, or run 'cloister fit', which takes "
            f"paths and addresses and streams them"
        )


def refuse_unordered(rows: Any) -> None:
    """Raises: InvalidInput: rows are a table of Ibis, whose rows have no order that answers could be given in."""
    if is_ibis_table(rows):
        raise InvalidInput(
            "rows of a table of Ibis have no order: fetch them, as in table.to_pandas(), or have the engine label them "
            "(cloister predict --sql)"
        )


def table_population(
    rows: Any, table: str | None, threads: int | None, others: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Any:
    """The population of a table in a database.

    Args:
        rows: an address, or a list of one, with the name of its ``table``; or a table of Ibis.
        others: options of files by name: none may be given.
        arguments: of the population.

    Raises: CloisterError: it cannot be connected to, or something does not go with it.
    """
    if named := [name for name, value in others.items() if value is not None]:
        raise InvalidInput(f"these rows are in a database: leave out {', '.join(named)}, for files alone")
    users = arguments.get("users")
    if users is not None and not isinstance(users, str):
        raise InvalidInput("users of rows in a database are named by one of the table's columns: give its name")
    kind = registry().load(registry().spec("Population", "sql"))
    if is_ibis_table(rows):
        if table is not None:
            raise InvalidInput("rows are a table of Ibis already: leave table out")
        return kind(rows, **arguments)
    if isinstance(rows, (list, tuple)):
        if len(rows) > 1:
            raise InvalidInput("rows in a database are one table: give one address, and nothing beside it")
        rows = next(iter(rows))
    if not table:
        raise InvalidInput("the rows are in a database: say in which table, --table NAME (table=)")
    try:
        from cloister.rows.databases.connecting import opened
    except ImportError as error:
        raise MissingExtra("ibis", "sql", "reading databases") from error
    found = opened(rows, table, threads)
    try:
        return kind(found, owned=True, **arguments)
    except BaseException:
        found.get_backend().disconnect()
        raise

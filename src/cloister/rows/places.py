"""Places of rows (memory, files or a database) and the populations that read them, by ``Spec.reads``."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from cloister.core.errors import InvalidInput, MissingExtra
from cloister.core.registry.registry import registry
from cloister.rows.options import Reading, Where, options_of_rows

IN_WORDS: dict[Where, str] = {"memory": "memory", "files": "files", "databases": "a database"}

LOOKS = {
    **dict.fromkeys(("postgres", "postgresql"), "postgres://user@host:5432/database"),
    "duckdb": "duckdb:///lake.db",
    "pyspark": "pyspark://",
}
"""Correct forms of database addresses that are often written without slashes, by their scheme."""


def is_address(rows: Any) -> bool:
    """Return True if a text is an address, such as duckdb:///lake.db, and not a file's path."""
    return isinstance(rows, str) and "://" in rows


STORES = frozenset(
    ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "hdfs", "hf", "http", "https", "ftp", "ftps", "sftp")
)
"""Schemes of remote files, which no database has."""


def refuse_foreign_address(rows: Any) -> None:
    """Raise InvalidInput for addresses of remote files (s3://), and of databases without slashes (duckdb:lake.db)."""
    for source in rows if isinstance(rows, (list, tuple)) else [rows]:
        scheme = source.lstrip().partition("://")[0].lower() if is_address(source) else None
        if scheme == "file":
            raise InvalidInput("'file://' begins the address of a file: give its path alone")
        if scheme in STORES:
            raise InvalidInput(
                f"'{scheme}://' begins the address of a file elsewhere: fetch it first, and give its path"
            )
        kind = source.partition(":")[0] if isinstance(source, str) and ":" in source else None
        if kind in LOOKS and not is_address(source):
            raise InvalidInput(f"'{kind}:' begins a database's address: write it as {LOOKS[kind]}, with --table NAME")


def is_ibis_table(rows: Any) -> bool:
    """Return True if rows are an Ibis table or table expression. Imports nothing."""
    return type(rows).__module__.partition(".")[0] == "ibis" and hasattr(rows, "get_backend")


def in_database(rows: Any) -> bool:
    """Return True if rows are an address, a list with an address, or an Ibis table."""
    several = rows if isinstance(rows, (list, tuple)) else [rows]
    return any(is_address(source) for source in several) or is_ibis_table(rows)


def _is_relation(rows: Any) -> bool:
    return type(rows).__name__ == "DuckDBPyRelation"


def refuse_relation(rows: Any) -> None:
    """Raise InvalidInput for a DuckDB relation, which has no snapshot and no connection to ask."""
    if _is_relation(rows):
        raise InvalidInput(
            "rows are a relation of DuckDB: give a table of Ibis on the same connection, "
            "ibis.duckdb.from_connection(con).table('NAME'), or the file's address with table='NAME'"
        )


def refuse_lazy(rows: Any) -> None:
    """Raise InvalidInput for a lazy frame of polars or Dask, whose cells are not computed yet. Imports nothing."""
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
    """Raise InvalidInput for a path or an address where a table is expected."""
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
    """Raise InvalidInput for rows in a database, which have no order for answers per row."""
    if is_ibis_table(rows) or _is_relation(rows):
        kind, how = ("relation of DuckDB", "df") if _is_relation(rows) else ("table of Ibis", "to_pandas")
        raise InvalidInput(
            f"rows of a {kind} have no order: fetch them, as in rows.{how}(), or have the engine label them "
            f"(cloister predict --sql)"
        )


def place_of(rows: Any) -> Where:
    """Return where rows are."""
    if in_database(rows):
        return "databases"
    several = rows if isinstance(rows, (list, tuple)) else [rows]
    paths = bool(several) and all(isinstance(path, (str, Path)) for path in several)
    return "files" if paths else "memory"


def reader(reads: str) -> Any:
    """Return the class of the population that reads these. Raises: InvalidInput: none is installed."""
    return registry().load(registry().reader(reads))


def population_of(rows: Any, reading: Reading) -> Any:
    """Return the population that reads rows, wherever they are. Raises CloisterError as ``run.fit.source`` does."""
    for refuse in (refuse_relation, refuse_lazy, refuse_foreign_address):
        refuse(rows)
    place = place_of(rows)
    refuse_elsewhere(reading, place)
    if place == "databases":
        return _of_table(rows, reading)
    return reader(place)([rows] if isinstance(rows, (str, Path)) else rows, reading)


def refuse_elsewhere(reading: Reading, place: Where) -> None:
    """Raise InvalidInput for an option that applies to rows of another place only."""
    if misplaced := reading.elsewhere(place):
        names, only = ", ".join(misplaced), {options_of_rows()[name].only for name in misplaced}
        if "databases" in only:
            raise InvalidInput(
                f"{names} go with a database's address: give that, such as duckdb:///lake.db, or leave them out"
            )
        raise InvalidInput(f"these rows are in {IN_WORDS[place]}: leave out {names}, for files alone")
    if reading.users is not None and place != "memory":
        raise InvalidInput(
            f"users of rows in {IN_WORDS[place]} are named by one of their columns: give its name (user_column=)"
        )
    if reading.engine == "duckdb":
        raise InvalidInput(
            "there is no engine 'duckdb' for files: leave --engine out, or have DuckDB read them as a table: CREATE "
            "VIEW visits AS FROM 'rows/*.parquet' in lake.db, and give its address, duckdb:///lake.db --table visits"
        )


def _of_table(rows: Any, reading: Reading) -> Any:
    """Return the population of a table in a database, given as an address, a list of one, or an Ibis table.

    Raises:
        CloisterError: the database cannot be connected to, or an option does not apply.
    """
    kind = reader("databases")
    if is_ibis_table(rows):
        if reading.table is not None:
            raise InvalidInput("rows are a table of Ibis already: leave table out")
        return kind(rows, reading)
    if isinstance(rows, (list, tuple)):
        if len(rows) > 1:
            raise InvalidInput("rows in a database are one table: give one address, and nothing beside it")
        rows = next(iter(rows))
    if not reading.table:
        raise InvalidInput("the rows are in a database: say in which table, --table NAME (table=)")
    try:
        from cloister.rows.databases.connecting import open_table
    except ImportError as error:
        raise MissingExtra("ibis", "sql", "reading databases") from error
    table = open_table(rows, reading.table, reading.threads)
    try:
        return kind(table, reading, owned=True)
    except BaseException:
        table.get_backend().disconnect()
        raise

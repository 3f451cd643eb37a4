"""DuckDB: embedded, its transactions are snapshots."""

from __future__ import annotations

from typing import Any

from cloister.sql.dialect import Dialect


def _begun(backend: Any) -> bool:
    backend.raw_sql("BEGIN TRANSACTION")
    return True


def _ended(backend: Any) -> None:
    backend.raw_sql("ROLLBACK")


def _batches(expression: Any, size: int) -> Any:
    backend = expression.get_backend()
    return backend.con.sql(backend.compile(expression)).to_arrow_reader(size)


def _tables(backend: Any) -> list[str]:
    found = backend.con.sql("SELECT table_name FROM information_schema.tables").fetchall()
    return [name for (name,) in found]


def settings(threads: int | None) -> dict[str, Any]:
    """How a database's file is opened. Args: threads, of the engine; None: as many as it likes."""
    return {} if threads is None else {"threads": threads}


DUCKDB = Dialect(begin=_begun, end=_ended, stream=_batches, tables=_tables)

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


DUCKDB = Dialect(begin=_begun, end=_ended, stream=_batches)

"""DuckDB: embedded, its transactions are snapshots."""

from __future__ import annotations

from typing import Any

import ibis

from cloister.sql.arithmetic import Expr
from cloister.sql.dialect import Dialect, as_text


def _begun(backend: Any) -> bool:
    backend.raw_sql("BEGIN TRANSACTION")
    return True


def _ended(backend: Any) -> None:
    backend.raw_sql("ROLLBACK")


def _batches(expression: Any, size: int) -> Any:
    backend = expression.get_backend()
    return backend.con.sql(backend.compile(expression)).to_arrow_reader(size)


ENCODE: Any = ibis.udf.scalar.builtin(name="encode", signature=(("string",), "binary"))(lambda text: None)
DECODE: Any = ibis.udf.scalar.builtin(name="decode", signature=(("binary",), "string"))(lambda data: None)


def _text(column: Expr) -> Expr:
    return DECODE(ENCODE(as_text(column)))


DUCKDB = Dialect(begin=_begun, end=_ended, text=_text, stream=_batches)

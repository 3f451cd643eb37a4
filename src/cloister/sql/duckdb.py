"""DuckDB: embedded, its transactions are snapshots.

A row's hash adds 0.05 s to a round over 20 million rows of 8 columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cloister.sql.arithmetic import Expr
from cloister.sql.dialect import HASHES, Dialect, End, builtin


def _begun(backend: Any) -> End:
    if _transaction(backend) == _transaction(backend):
        return lambda: None  # its owner's
    backend.raw_sql("BEGIN TRANSACTION READ ONLY")

    def ended() -> None:
        backend.raw_sql("ROLLBACK")

    return ended


def _transaction(backend: Any) -> Any:
    """The number of the transaction that this statement is in: of its own, unless one was begun."""
    return backend.raw_sql("SELECT txid_current()").fetchone()


def _hashed(cells: Sequence[Expr]) -> Expr:
    return builtin("hash", cells, "uint64") & (HASHES - 1)


def _batches(expression: Any, size: int) -> Any:
    backend = expression.get_backend()
    return backend.con.sql(backend.compile(expression)).to_arrow_reader(size)


DUCKDB = Dialect(begin=_begun, hashed=_hashed, stream=_batches)

"""PostgreSQL: one transaction that only reads is the snapshot, and a session's settings are as they were after it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from typing import Any

import ibis
import pyarrow as pa
import sqlglot.expressions as sge
from ibis.util import gen_name

from cloister.core.errors import InvalidInput
from cloister.sql.arithmetic import Expr, number
from cloister.sql.dialect import Dialect, End, chained

SMALLEST = 1e-200
"""PostgreSQL fails where a product of two numbers is too small for a double. No domain's radius is below 1e-100, so
that smaller numbers than this are put on the lattice where 0 is."""

REPEATABLE = ("repeatable read", "serializable")
"""Levels of isolation at which all questions of a transaction see the same rows."""


def _begun(backend: Any) -> End:
    """Raises: InvalidInput: the connection is in a transaction that is no snapshot."""
    con = backend.con
    with ExitStack() as stack:
        theirs = con.info.transaction_status.name != "IDLE"
        stack.enter_context(con.transaction(force_rollback=True))
        if not theirs:
            con.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        elif con.execute("SHOW transaction_isolation").fetchone()[0] not in REPEATABLE:
            raise InvalidInput(
                "the connection is in a transaction that sees what others write: end it before the run, or begin it "
                "with ISOLATION LEVEL REPEATABLE READ"
            )
        con.execute("SET TRANSACTION READ ONLY")
        end: End = stack.pop_all().close
    return end


def _double(column: Expr) -> Expr:
    """NaN and infinity as NULL, as is what a double has no room for; numbers next to 0 as 0."""
    if column.type().is_boolean():
        return column.cast("int32").cast("float64")
    if not column.type().is_decimal():
        return _not_tiny(column.cast("float64"))
    most, least = (ibis.literal(Decimal(value)) for value in (sys.float_info.max, SMALLEST))
    return ibis.cases((column.between(-least, least), number(0)), (column.between(-most, most), column.cast("float64")))


def _not_tiny(x: Expr) -> Expr:
    return ibis.ifelse(x.between(number(-SMALLEST), number(SMALLEST)), number(0), x)


def _fenced(table: Any) -> Any:
    """Ibis keeps what is on both sides of a limit apart, and writes nothing for this one: see ``_statement``."""
    return table.limit(None)


def _statement(backend: Any, expression: Any) -> str:
    """In SQL. A subquery with an offset is computed by itself, each of its columns once."""
    query = backend.compiler.to_sqlglot(expression)
    for inner in list(query.find_all(sge.Subquery)):
        inner.this.offset(0, copy=False)
    return str(query.sql(dialect=backend.dialect, copy=False))


def _answer(expression: Any) -> pa.Table:
    """By a query, which PostgreSQL may spread over processes, unlike a cursor's."""
    return pa.Table.from_batches(_fetched(expression, ""), expression.schema().to_pyarrow())


def _batches(expression: Any, size: int) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(
        expression.schema().to_pyarrow(), _fetched(expression, gen_name("cloister"), size)
    )


def _fetched(expression: Any, cursor: str, size: int = 2**16) -> Iterator[pa.RecordBatch]:
    """Args: cursor, the name of one in the server, which holds the rows that were not fetched; empty for none."""
    con, schema = expression.get_backend().con, expression.schema().to_pyarrow()
    with con.transaction(), con.cursor(cursor, binary=True) as rows:
        rows.execute(_statement(expression.get_backend(), expression))
        while some := rows.fetchmany(size):
            columns = zip(zip(*some, strict=True), schema, strict=True)
            yield pa.RecordBatch.from_arrays([pa.array(column, field.type) for column, field in columns], schema=schema)


POSTGRES = Dialect(
    begin=_begun, hashed=chained, double=_double, fence=_fenced, statement=_statement, answer=_answer, stream=_batches
)

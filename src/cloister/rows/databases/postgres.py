"""PostgreSQL dialect: a read-only transaction is the snapshot; session settings are restored after it."""

from __future__ import annotations

import re
import sys
import timeit
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from decimal import Decimal
from itertools import islice
from typing import Any, cast

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import numpy as np
import pyarrow as pa
import sqlglot as sg
import sqlglot.expressions as sge
from ibis.util import gen_name

from cloister.core.errors import InvalidInput
from cloister.rows.databases.dialect import HASHES, Dialect, End, as_text, builtin, temporary_table
from cloister.rows.databases.stage import Expr, clipped, integer, number, product, rounded

LEAST = Decimal(2) ** -1075
"""Decimals up to this size round to 0 as doubles."""

LARGEST = Decimal(sys.float_info.max)
"""Largest finite double."""

REPEATABLE = ("repeatable read", "serializable")
"""Isolation levels at which all queries of a transaction see the same rows."""

FAILURES = {
    "08": "the connection is lost",
    "25P02": "the transaction that the connection is in has failed: roll it back",
    "25P03": "it closed the connection, which waited for longer than its idle_in_transaction_session_timeout",
    "25P04": "it closed the connection: the transaction exceeded its transaction_timeout",
    "40001": "it is a standby, and replicated changes conflict with this snapshot",
    "42501": "its role may not read it: GRANT SELECT on the table, and USAGE on its schema",
    "42703": "there is no such column",
    "42846": "a column's type does not convert to a number: use a view that casts it",
    "42P01": "there is no such table",
    "53100": "its disk is full",
    "53200": "it has not enough memory",
    "54": "the query is too long for it",
    "55P03": "somebody has locked the table for longer than its lock_timeout",
    "57014": "the query was cancelled, by somebody or by its statement_timeout",
    "57P": "the connection is lost: the server stopped, or somebody closed it",
}
"""Meaning of a failure, by prefix of its SQLSTATE; the server's own message may quote a row."""


def _why(error: Exception) -> str | None:
    code = getattr(error, "sqlstate", None)
    if code is None:
        return FAILURES["08"] if type(error).__name__ == "OperationalError" else None
    return next((meaning for start, meaning in FAILURES.items() if code.startswith(start)), None)


def _computed(error: Exception) -> bool:
    """Return True for errors of data, of routines, and errors raised by users."""
    return (getattr(error, "sqlstate", None) or "")[:2] in ("22", "2F", "38", "39", "P0")


def _begin(backend: Any, keeps: bool) -> End:
    """Begin a snapshot, read-only unless a (temporary) table will be made in it.

    Raises:
        InvalidInput: the connection is in a transaction that is not a snapshot.
    """
    con = backend.con
    with ExitStack() as stack:
        theirs = con.info.transaction_status.name != "IDLE"
        stack.enter_context(con.transaction(force_rollback=True))
        if not theirs:
            con.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        elif con.execute("SHOW transaction_isolation").fetchone()[0] not in REPEATABLE:
            raise InvalidInput(
                "the connection's open transaction sees concurrent writes: end it before the run, or begin it with "
                "ISOLATION LEVEL REPEATABLE READ"
            )
        if not keeps:
            con.execute("SET TRANSACTION READ ONLY")
        begun = stack.pop_all()

    def end() -> None:
        with suppress(Exception):
            con.execute("SELECT 1")  # fails on a lost connection, which has no transaction to end
        begun.close()

    return end


def _materialised(backend: Any, expression: Any) -> tuple[Any, End]:
    """Store rows in a temporary table; the snapshot survives if that fails."""
    with backend.con.transaction():
        return temporary_table(backend, expression)


def _double(column: Expr) -> Expr:
    """Convert to doubles, with NULL for NaN, infinity and overflow, where PostgreSQL raises."""
    kind = column.type()
    if kind.is_boolean():
        return column.cast("int32").cast("float64")
    if not (kind.is_decimal() or kind.is_string()):
        return column.cast("float64")
    exact = column.cast("decimal")
    size = exact.abs()
    return ibis.cases((size <= LEAST, number(0)), (size <= LARGEST, exact.cast("float64")))


def _hashed(cells: Sequence[Expr]) -> Expr:
    """Hash each cell with the hash of those before it as seed.

    NULL is hashed as a cell that no usable row has: NaN, or an empty name.
    """
    row_hash: Expr = integer(0)
    for cell in cells:
        if cell.type().is_floating():
            row_hash = builtin("hashfloat8extended", [cell.fill_null(float("nan")), row_hash], "int64")
            # the hash of 0 is the seed unchanged: mix again
            row_hash = builtin("hashint8extended", [row_hash, integer(1)], "int64")
        else:
            row_hash = builtin("hashtextextended", [as_text(cell).fill_null(""), row_hash], "int64")
    return row_hash & (HASHES // 2 - 1)


def _utf8(text: Expr) -> Expr:
    return builtin("convert_to", [text, ibis.literal("UTF8")], "binary")


def _text(column: Expr) -> Expr:
    """Decode a text from its bytes, which removes a collation that equates different texts."""
    return builtin("convert_from", [_utf8(as_text(column)), ibis.literal("UTF8")], "string")


COLUMNS = """
WITH RECURSIVE columns AS (
  SELECT a.attnum, a.attname, a.attnotnull, a.atttypid AS kind, a.atttypmod AS modifier
  FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
  WHERE c.oid = to_regclass(%s) AND c.relkind IN ('r', 'v', 'm', 'f', 'p') AND a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT c.attnum, c.attname, c.attnotnull, t.typbasetype, t.typtypmod
  FROM columns c JOIN pg_catalog.pg_type t ON t.oid = c.kind WHERE t.typtype = 'd'
)
SELECT c.attname, NOT c.attnotnull, CASE WHEN t.typtype = 'e' THEN 'enum' ELSE format_type(c.kind, c.modifier) END,
  t.typname
FROM columns c JOIN pg_catalog.pg_type t ON t.oid = c.kind WHERE t.typtype <> 'd' ORDER BY c.attnum
"""
"""Columns of a relation, with domains resolved to their base types."""

NO_NUMBERS = re.compile("money|oid|reg.*|xid|xid8|cid|tid|pg_lsn")
"""Types whose text depends on session settings, and identifiers of the server.

Ibis takes some of them for numbers, and cannot read all of those.
"""


def _table(backend: Any, name: str, place: Any) -> Any:
    """Return a table with domains as their base types, and types that Ibis cannot read as unknown."""
    schemas: list[Any] = [*place] if isinstance(place, tuple) else [place]
    parts = [sg.to_identifier(part, quoted=True).sql("postgres") for part in (schemas[-1], name) if part]
    schema = _schema(backend, ".".join(parts))
    if schema is None:
        return backend.table(name, database=place)
    catalog = schemas[0] if len(schemas) > 1 else None
    namespace = ops.Namespace(catalog=catalog, database=schemas[-1])
    return ops.DatabaseTable(name=name, schema=schema, source=backend, namespace=namespace).to_expr()


def _schema(backend: Any, relation: str) -> Any:
    with backend.con.transaction():
        rows = backend.con.execute(COLUMNS, [relation]).fetchall()
    columns = {name: _type(backend, written, kind, nullable) for name, nullable, written, kind in rows}
    return ibis.schema(columns) if columns else None


def _type(backend: Any, written: str, kind: str, nullable: bool) -> dt.DataType:
    if not NO_NUMBERS.fullmatch(kind):
        with suppress(Exception):  # Ibis does not know every type
            return cast(dt.DataType, backend.compiler.type_mapper.from_string(written, nullable=nullable))
    return dt.Unknown(nullable=nullable)


def _tables(backend: Any) -> list[str]:
    """Return all readable relations; those on the search path without their schema."""
    rows = backend.con.execute(
        "SELECT CASE WHEN pg_table_is_visible(c.oid) THEN '' ELSE nspname || '.' END || relname "
        "FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('r', 'v', 'm', 'f', 'p') "
        "AND nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema' AND has_schema_privilege(n.oid, 'USAGE')"
    )
    return [name for (name,) in rows.fetchall()]


def _fenced(table: Any) -> Any:
    """Keep steps apart by a limit without SQL, across which Ibis does not merge (see ``statement``)."""
    return table.limit(None)


def statement(backend: Any, expression: Any) -> str:
    """Return an expression in SQL; an offset makes PostgreSQL evaluate a subquery separately, each column once."""
    query = backend.compiler.to_sqlglot(expression)
    for inner in list(query.find_all(sge.Subquery)):
        if not inner.this.args.get("offset"):
            inner.this.offset(0, copy=False)
    return str(query.sql(dialect=backend.dialect, copy=False))


def _answer(expression: Any) -> pa.Table:
    """Fetch by a plain query, which PostgreSQL may run in parallel, unlike a cursor."""
    return pa.Table.from_batches(_fetched(expression, ""), expression.schema().to_pyarrow())


def _batches(expression: Any, size: int) -> pa.RecordBatchReader:
    schema = expression.schema().to_pyarrow()
    floats = all(kind == pa.float64() for kind in schema.types)
    batches = _copied(expression, size) if floats else _fetched(expression, gen_name("cloister"), size)
    return pa.RecordBatchReader.from_batches(schema, batches)


def _copied(expression: Any, size: int) -> Iterator[pa.RecordBatch]:
    """Read rows of doubles by binary COPY, with NaN for NULL so that all rows have one length.

    A row starts with its number of cells (two bytes), and each cell with its length (four); 19 bytes precede the first
    row, and two follow the last.
    """
    backend, names = expression.get_backend(), expression.columns
    filled = expression.select(**{name: expression[name].fill_null(float("nan")) for name in names})
    row = np.dtype([("many", ">i2"), ("cells", [("length", ">i4"), ("x", ">f8")], len(names))])
    copy_statement = f"COPY ({statement(backend, filled)}) TO STDOUT (FORMAT BINARY)"
    with backend.con.transaction(), backend.con.cursor() as cursor, cursor.copy(copy_statement) as copy:
        messages, start = map(bytes, copy), 19
        while data := b"".join(islice(messages, size)):
            cells = np.frombuffer(data, row, (len(data) - start) // row.itemsize, start)["cells"]
            if not (cells["length"] == 8).all():
                raise TypeError("cells of another length than a double's")
            start = 0
            columns = np.ascontiguousarray(cells["x"].T, np.float64)
            if len(cells):
                yield pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=list(names))


TRIED = 2**14
"""Generated rows per timing."""


def _streams(backend: Any, columns: int) -> tuple[bool, str]:
    """Compare the minimum times, of three runs each, of reading rows and of a query with eight centres."""
    from psycopg import pq  # installed, since there is a connection

    if pq.__impl__ == "python":
        return False, "psycopg without its C reads rows slowly: pip install 'psycopg[binary]' to have them streamed"
    names = [f"c{j}" for j in range(columns)]
    made = ", ".join(f"CAST(i % {j + 7} AS double precision) AS {name}" for j, name in enumerate(names))
    table = backend.sql(f"SELECT {made} FROM generate_series(1, {TRIED}) AS i", schema=dict.fromkeys(names, "float64"))
    snapped = _fenced(table.mutate(**{name: clipped(rounded(table[name]), -9, 9) for name in names}))
    row = [snapped[name] for name in names]
    scored = _fenced(snapped.mutate(near=ibis.least(*(product(range(i, i + columns), row) for i in range(1, 9)))))
    sums = {name: scored[name].cast("int32").sum() for name in names}
    query = scored.group_by(id=scored.near < number(9)).aggregate(rows=scored.count(), **sums)
    read = min(timeit.repeat(lambda: list(_batches(table, TRIED)), number=1, repeat=3))
    worked = min(timeit.repeat(lambda: _answer(query), number=1, repeat=3))
    return read < worked, f"the server sent rows in {read / worked:.1f} of the time in which it works on them"


def _fetched(expression: Any, cursor: str, size: int = 2**16) -> Iterator[pa.RecordBatch]:
    """Yield the answer in batches; a named server-side cursor holds the rows not yet fetched ("" for none)."""
    con, schema = expression.get_backend().con, expression.schema().to_pyarrow()
    with con.transaction(), con.cursor(cursor, binary=True) as rows:
        rows.execute(statement(expression.get_backend(), expression))
        while batch := rows.fetchmany(size):
            columns = zip(zip(*batch, strict=True), schema, strict=True)
            yield pa.RecordBatch.from_arrays([pa.array(column, field.type) for column, field in columns], schema=schema)


POSTGRES = Dialect(
    begin=_begin,
    hashed=_hashed,
    materialise=_materialised,
    double=_double,
    text=_text,
    utf8=_utf8,
    fence=_fenced,
    sets=True,
    statement=statement,
    answer=_answer,
    table=_table,
    tables=_tables,
    streams=_streams,
    stream=_batches,
    why=_why,
    computed=_computed,
    log="its own words, which may quote a row, are in the server's log: SELECT pg_current_logfile() or SHOW "
    "log_destination says where that is",
)

"""Differences between engines, beyond the SQL that Ibis writes for each."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any, TypeAlias, final

import attrs
import ibis
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import sqlglot as sg

from cloister.rows.databases.stage import TERMS, Expr, Fence, Steps, stepped

End: TypeAlias = Callable[[], None]
"""Function that ends a snapshot or drops a table."""

HASHES = 2**32
"""Exclusive upper bound of a row's hash: sums over 2^31 rows stay below 2^63."""


def temporary_table(backend: Any, expression: Any) -> tuple[Any, End]:
    """Store an expression's answer in a temporary table of the session; return it, and the function that drops it."""
    name = f"cloister_{secrets.token_hex(8)}"
    quoted = sg.to_identifier(name, quoted=True).sql(backend.dialect)
    backend.raw_sql(f"CREATE TEMPORARY TABLE {quoted} AS {backend.compile(expression)}")
    table = ops.DatabaseTable(name=name, schema=expression.schema(), source=backend, namespace=ops.Namespace())
    return table.to_expr(), lambda: backend.raw_sql(f"DROP TABLE {quoted}")


def builtin(name: str, arguments: Sequence[Expr], kind: str) -> Expr:
    """Call a function that the engine has and Ibis does not know, whose value has type ``kind``."""

    def function(*arguments: Any) -> Any: ...

    named = [Parameter(f"a{j}", Parameter.POSITIONAL_OR_KEYWORD) for j in range(len(arguments))]
    function.__signature__ = Signature(named)  # type: ignore[attr-defined]  # how Ibis is told of many arguments
    kinds = tuple(argument.type() for argument in arguments)
    return ibis.udf.scalar.builtin(name=name, signature=(kinds, kind))(function)(*arguments)


def same(text: Expr, other: str | Expr, dialect: Dialect) -> Expr:
    """Return whether two texts have the same characters."""
    return dialect.utf8(text) == dialect.utf8(ibis.literal(other) if isinstance(other, str) else other)


def as_text(column: Expr) -> Expr:
    """Cast a column to text, even one that Ibis takes for text: it may be an enumeration."""
    return column.cast(dt.String(nullable=False))


@final
@attrs.frozen(eq=False)
class Dialect:
    """Adapter of one engine; the defaults serve engines that are not tested.

    Args:
        begin: starts a snapshot through Ibis' backend: from its first query on, all see the same rows, whoever writes.
            Its second argument says whether a temporary table will be made in it. Returns the function that ends it,
            None if the engine has none. If the connection's owner has opened a transaction, that one is used, and stays
            open.
        hashed: hash of a row's cells (doubles, perhaps a user's name), int64 from 0 to ``HASHES`` - 1, which detects
            changed rows. Equal cells have equal hashes. It is mixed after every cell, including the last: rows that
            exchange a cell must have another sum of hashes. None if the engine has none.
        materialise: stores the answer to an expression in a table that only this session sees and nobody changes;
            returns it, and the function that drops it.
        double: numbers, booleans or their texts as doubles, correctly rounded; NULL for what no double holds.
        text: a column's text, without the column's collation. Never compare it directly: see ``utf8``.
        utf8: a text's bytes, by which texts are compared and grouped. A collation may equate different texts, and a
            session, database or schema may apply one to every text.
        finite: whether a cell of a float column is neither NaN nor infinite, for engines whose comparisons cannot tell.
        fence: keeps the engine from inlining a computed column wherever it is used.
        steps: ``stage.stepped`` in the engine's fastest form.
        sets: whether it has GROUP BY GROUPING SETS, which counts all levels at once.
        statement: an expression in the engine's SQL, given Ibis' backend, connected or not.
        answer: the whole answer to an expression, as an Arrow table; None to read it from ``stream``.
        terms: maximum number of products per row in one query, beyond which reading the rows is faster.
        table: Ibis' table of a name, in a schema (or a catalog and a schema), with its actual column types. None if
            Ibis knows them.
        tables: names of the existing tables, with their schema where they need it.
        streams: whether reading rows of so many columns is faster than a query over them, and a reason to show;
            measured on generated rows, never on a table's.
        spread: caches the rows of an expression in the engine's Python workers. Returns the function that applies a
            packed function to their batches and returns its values (``rows.workers.batches``), counting each row once
            even if its task is retried; and the function that frees them. None if there are no such workers.
        stream: the answer to an expression, as Arrow's reader of batches of at most so many rows.
        why: meaning of a failure in our own words (a driver's may quote a row); None if unknown.
        computed: whether a failure comes from computing cells, as a view's division by zero does.
        log: where to read the engine's own message, which may quote a row.
    """

    begin: Callable[[Any, bool], End | None] = lambda backend, keeps: None
    hashed: Callable[[Sequence[Expr]], Expr] | None = None
    materialise: Callable[[Any, Any], tuple[Any, End]] = temporary_table
    double: Callable[[Expr], Expr] = lambda column: column.cast("float64")
    text: Callable[[Expr], Expr] = as_text
    utf8: Callable[[Expr], Expr] = lambda text: text
    finite: Callable[[Expr], Expr] | None = None
    fence: Fence = lambda table: table
    steps: Steps = stepped
    sets: bool = False
    statement: Callable[[Any, Any], str] = lambda backend, expression: str(backend.compile(expression))
    answer: Callable[[Any], Any] | None = None
    terms: Callable[[Any], int] = lambda backend: TERMS
    table: Callable[[Any, str, Any], Any] | None = None
    tables: Callable[[Any], Sequence[str]] = lambda backend: backend.list_tables()
    streams: Callable[[Any, int], tuple[bool, str]] = lambda backend, columns: (False, "")
    spread: Callable[[Any], tuple[Callable[[bytes], Sequence[bytes]], End]] | None = None
    stream: Callable[[Any, int], Any] = lambda expression, size: expression.to_pyarrow_batches(chunk_size=size)
    why: Callable[[Exception], str | None] = lambda error: None
    computed: Callable[[Exception], bool] = lambda error: False
    log: str = "select its rows in a program of the engine's own to read why"

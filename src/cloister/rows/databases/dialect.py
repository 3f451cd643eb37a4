"""Differences of engines, beyond the text that Ibis writes for each."""

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
"""Function that ends a snapshot, or drops a table."""

HASHES = 2**32
"""A row's hash is below: sums of them over 2^31 rows are below 2^63."""


def temporary_table(backend: Any, expression: Any) -> tuple[Any, End]:
    """The answer to an expression as a temporary table of the session, by one statement, and what drops it."""
    name = f"cloister_{secrets.token_hex(8)}"
    quoted = sg.to_identifier(name, quoted=True).sql(backend.dialect)
    backend.raw_sql(f"CREATE TEMPORARY TABLE {quoted} AS {backend.compile(expression)}")
    table = ops.DatabaseTable(name=name, schema=expression.schema(), source=backend, namespace=ops.Namespace())
    return table.to_expr(), lambda: backend.raw_sql(f"DROP TABLE {quoted}")


def builtin(name: str, arguments: Sequence[Expr], kind: str) -> Expr:
    """A function that the engine has and Ibis does not know, of any number of arguments. Args: kind, of its value."""

    def function(*arguments: Any) -> Any: ...

    named = [Parameter(f"a{j}", Parameter.POSITIONAL_OR_KEYWORD) for j in range(len(arguments))]
    function.__signature__ = Signature(named)  # type: ignore[attr-defined]  # how Ibis is told of many arguments
    kinds = tuple(argument.type() for argument in arguments)
    return ibis.udf.scalar.builtin(name=name, signature=(kinds, kind))(function)(*arguments)


def same(text: Expr, other: str | Expr, dialect: Dialect) -> Expr:
    """Whether two texts have the same characters."""
    return dialect.utf8(text) == dialect.utf8(ibis.literal(other) if isinstance(other, str) else other)


def as_text(column: Expr) -> Expr:
    """A column cast to text, also one of which Ibis says that it is text: it may be an enumeration."""
    return column.cast(dt.String(nullable=False))


@final
@attrs.frozen(eq=False)
class Dialect:
    """One engine. The members of an engine that nobody has tried are the defaults.

    Args:
        begin: starts a snapshot through Ibis' backend: from its first question on, all are answered of the same rows,
            whoever writes. It is told whether a temporary table is to be made in it, and returns what ends it, None
            where the engine has none. In a transaction of the connection's owner it is hers that is used, and she ends
            it.
        hashed: a hash of a row's cells (doubles, perhaps a user's name), int64 from 0 to ``HASHES`` - 1: by it rows
            that changed are found. Cells that are equal have one hash. It is mixed after every cell, the last one too:
            rows that exchange a cell must have another sum of hashes. None where the engine has none.
        materialise: the answer to an expression as a table that only this session sees and nobody changes, and what
            drops it.
        double: numbers, booleans or their texts as doubles, correctly rounded; NULL for what no double holds.
        text: a column's text, without the column's collation. It is never compared as it is: see ``utf8``.
        utf8: a text's bytes, by which texts are compared, grouped and told apart. A collation takes two texts for one,
            and a session, a database or a schema may give one to every text.
        finite: whether a cell of a column of floats is neither NaN nor infinite, where comparisons do not tell.
        fence: keeps a step a step where an engine would write a computed column out wherever it is used.
        steps: which of many steps a number is on, ``stage.stepped``, in the engine's fastest form.
        sets: whether it has GROUP BY GROUPING SETS: rows are then counted by all levels at once.
        statement: an expression in the engine's words, given Ibis' backend, connected or not.
        answer: the whole answer to an expression, as a table of Arrow; None where it is what ``stream`` gives.
        terms: most products of a row's numbers in one query, for the backend: beyond, reading the rows takes less time.
        table: Ibis' table of a name, in a schema (or a catalog and a schema), with the types that its columns have.
            None where Ibis knows them.
        tables: names of the tables that are there, as they may be given: with their schema where they need it.
        streams: whether rows of so many columns are read in less time than a query over them takes, and why, in words
            that are said; tried over rows that the engine makes up, never over a table's.
        spread: the rows of an expression in the hands of the engine's own Python workers: given a packed function of
            some batches, those of its values (``rows.workers.batches``), each row in one of them, however often it was
            worked on; and what ends it. None where there are no such workers.
        stream: the answer to an expression, as Arrow's reader of batches of at most so many rows.
        why: what a failure of the engine means, in words of our own (a driver's may quote a row); None if unknown.
        computed: whether a failure is one of what cells are computed from, as a view's division by zero is.
        log: where its own words on a failure are read, which may quote a row.
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

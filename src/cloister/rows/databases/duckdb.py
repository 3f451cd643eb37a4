"""DuckDB: embedded, its transactions are snapshots.

A row's hash adds 0.05 s to a round over 20 million rows of 8 columns.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

import ibis
import numpy as np

from cloister.core.lattice import EXACT
from cloister.core.types import Ints
from cloister.rows.databases.dialect import HASHES, Dialect, End, as_text, builtin
from cloister.rows.databases.stage import Expr, stepped

MEMORY = "512MB"
"""Memory of a database opened here: what DuckDB keeps of tables, groups and sorted rows; the rest goes to a file.
Rounds over 20 million rows of 8 columns then take 740 MB in all, sorted or not."""


SLICE = 0.1
"""Seconds after which a Ctrl-C is looked for."""


def settings(threads: int | None = None) -> dict[str, Any]:
    """Settings of a connection to a database that is opened here, for one run.

    It takes bounded memory, spills to a private folder that is removed with this process, and downloads nothing.

    Args: threads, by default one per core.
    """
    return {
        "memory_limit": MEMORY,
        "temp_directory": os.path.join(_folder().name, secrets.token_hex(8)),
        "autoinstall_known_extensions": False,
        "preserve_insertion_order": False,
    } | ({} if threads is None else {"threads": threads})


@cache
def _folder() -> TemporaryDirectory[str]:
    """A folder that nobody else can look into."""
    return TemporaryDirectory(prefix="cloister-")


def _begun(backend: Any, keeps: bool) -> End:
    if _transaction(backend) == _transaction(backend):
        return lambda: None  # its owner's
    backend.raw_sql("BEGIN TRANSACTION READ ONLY")

    def ended() -> None:
        backend.raw_sql("ROLLBACK")

    return ended


def _transaction(backend: Any) -> Any:
    """The number of the transaction that this statement is in: of its own, unless one was begun."""
    return backend.raw_sql("SELECT txid_current()").fetchall()


def _hashed(cells: Sequence[Expr]) -> Expr:
    row_hash = builtin("hash", cells, "uint64")
    if len(cells) > 1:  # the last one's hash is only XORed with what is mixed of the others
        row_hash = builtin("hash", [row_hash], "uint64")
    return (row_hash & (HASHES - 1)).cast("int64")  # sums and products of others take 128 bits


def _finite(column: Expr) -> Expr:
    """By a function of the column as it is stored: DuckDB leaves comparisons out where a Parquet file's statistics say
    how they end, and those say nothing of NaN. (A column that is cast it may even take for a constant.)"""
    return builtin("isfinite", [column], "boolean")


def _batches(expression: Any, size: int) -> Any:
    backend = expression.get_backend()
    query = backend.compile(expression)
    return _interruptible(backend.con, lambda: backend.con.sql(query).to_arrow_reader(size))


def _interruptible(con: Any, work: Callable[[], Any]) -> Any:
    """DuckDB's answer. In the main thread it loses about every second Ctrl-C, so it works in one of its own, which
    a Ctrl-C leaves to end by itself wherever it comes. It is waited for in slices: where a library handles signals too,
    as Polars does, the system takes an endless wait up again, and Python never learns of the Ctrl-C."""
    answer: Future[Any] = Future()

    def works() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:
            answer.set_exception(error)

    thread = threading.Thread(target=works, daemon=True)
    try:
        thread.start()
        while wait([answer], SLICE).not_done:
            pass
        return answer.result()
    except KeyboardInterrupt:
        while thread.is_alive():
            con.interrupt()
            thread.join(SLICE)
        raise


def _utf8(text: Expr) -> Expr:
    return builtin("encode", [text], "binary")


def _text(column: Expr) -> Expr:
    return builtin("decode", [_utf8(as_text(column))], "string")


def _terms(backend: Any) -> int:
    """A product takes a thread 2 ns a row; here, one thread reads a row in 0.2 us and has products almost for nothing.

    With so many products a query takes about twice as long as reading the rows does, and they stay where they are.
    """
    ((threads,),) = backend.raw_sql("SELECT current_setting('threads')").fetchall()
    return 256 * int(threads)


def _streams(backend: Any, columns: int) -> tuple[bool, str]:
    """Measured with two threads, on 1 and 4 million rows of 4 and 8 columns: a pass of our own over the stream takes
    0.7 to 1.0 of the query's time, and 0.4 to 1.0 where rows are held. A query gets faster with every thread. Nothing
    is said of it: rows are in this process either way."""
    ((threads,),) = backend.raw_sql("SELECT current_setting('threads')").fetchall()
    return int(threads) <= 2, ""


def _tables(backend: Any) -> list[str]:
    rows = backend.con.sql(
        "SELECT table_catalog IN (current_database(), 'temp'), table_schema = current_schema(), table_catalog, "
        "table_schema, table_name FROM information_schema.tables"
    ).fetchall()
    return [
        ".".join([*([] if in_catalog else [catalog]), *([] if in_catalog and in_schema else [schema]), name])
        for in_catalog, in_schema, catalog, schema, name in rows
    ]


COMPUTED = {"InvalidInputException", "ConversionException", "OutOfRangeException"}
"""DuckDB's errors of data, and those that somebody raises."""


FEW = 8
"""Cuts that are compared one after the other."""

LISTED = 2**14
"""Most cells of a list."""


def _stepped(x: Expr, cuts: Ints, values: Ints, reach: int) -> Expr:
    """By lists, of cells so narrow that none has two cuts: a tenth of the time of nested comparisons.

    A cell knows its cut, if it has any, and the values below and from there on.
    """
    ends, last = np.unique(cuts[::-1], return_index=True)
    shift = int(np.diff(ends).min(initial=2 * reach + 1)).bit_length() - 1
    starts = np.arange(-reach, reach + 1, 2**shift) if (2 * reach >> shift) < LISTED else np.array([])
    if len(ends) < FEW or not len(starts):
        return stepped(x, cuts, values, reach)
    after = len(cuts) - last
    first = np.searchsorted(ends, starts)
    there = np.append(ends, EXACT)[first]
    values_before = np.append(0, after)[first]
    then = np.where(there < starts + 2**shift, np.append(after, 0)[first], values_before)
    cell = (x.cast("int64") + reach) >> shift
    beyond = (x.cast("int64") >= _at(there, cell)).cast("int64")
    return _at(values[np.stack([values_before, then], axis=1).ravel()], 2 * cell + beyond)


def _at(values: Ints, place: Expr) -> Expr:
    """values[place]. The list is one text: many literals take long to read."""
    text: Expr = ibis.literal(str(values.tolist()))
    listed = text.cast("array<int64>")  # pyright: ignore[reportCallIssue, reportArgumentType]  # any type of Ibis' will do
    return builtin("list_extract", [listed, place + 1], "int64")


DUCKDB = Dialect(
    begin=_begun,
    hashed=_hashed,
    text=_text,
    utf8=_utf8,
    finite=_finite,
    steps=_stepped,
    sets=True,
    terms=_terms,
    tables=_tables,
    streams=_streams,
    stream=_batches,
    computed=lambda error: type(error).__name__ in COMPUTED,
)

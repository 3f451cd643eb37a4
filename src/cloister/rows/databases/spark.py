"""Apache Spark 4 dialect: rows in files, tables and lakes, which a session reads anew in every round.

Spark has no snapshot: changed rows are detected by their hashes, or a copy is made first, in blocks held by executors.
Losing a block of a copy is an error, since it would be recomputed from the current source.

Spark computes what Ibis writes: a column that is used twice is not inlined twice, sums of doubles are not reordered,
and expressions whose code exceeds a JVM method are interpreted.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any

import ibis
import ibis.expr.operations as ops
import pyarrow as pa

from cloister.rows.databases.dialect import HASHES, Dialect, End, as_text, builtin
from cloister.rows.databases.stage import Expr
from cloister.rows.workers.batches import CELL, apply_to_cells, as_cells

LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers to which PySpark writes the JVM's error messages, which may quote a row."""

TASKS = 512
"""Maximum number of tasks of a pass by workers."""


def _hashed(cells: Sequence[Expr]) -> Expr:
    """Hash with xxhash64, which skips NULL: so whether each cell is NULL is hashed too."""
    both = [part for cell in cells for part in (cell.isnull(), cell)]
    return builtin("xxhash64", both, "int64") & (HASHES - 1)


def _utf8(text: Expr) -> Expr:
    return builtin("encode", [text, ibis.literal("UTF-8")], "binary")


def _text(column: Expr) -> Expr:
    return builtin("decode", [_utf8(as_text(column)), ibis.literal("UTF-8")], "string")


def _materialised(backend: Any, expression: Any) -> tuple[Any, End]:
    """Copy the rows to a local checkpoint, a view with a unique name."""
    name = f"cloister_{secrets.token_hex(8)}"
    with _unlogged():
        copy = _frame(expression).localCheckpoint(eager=True)
        copy.createTempView(name)

    def dropped() -> None:
        nonlocal copy
        del copy  # its blocks are freed with the last reference
        backend.raw_sql(f"DROP VIEW IF EXISTS `{name}`")

    table = ops.DatabaseTable(name=name, schema=expression.schema(), source=backend, namespace=ops.Namespace())
    return table.to_expr(), dropped


def _answer(expression: Any) -> Any:
    with _unlogged():
        return _frame(expression).toArrow()


def _spread(expression: Any) -> tuple[Callable[[bytes], Sequence[bytes]], End]:
    """Cache the rows in executors' memory as far as there is room; the rest, or what is lost, is read again.

    With more than ``TASKS`` partitions a task takes several, without moving rows, so that the driver receives few
    values, however many partitions there are. (Merging them in Spark takes a second per round.)
    """
    pyspark, serializers = import_module("pyspark"), import_module("pyspark.serializers")
    with _unlogged():
        frame = _frame(expression).coalesce(TASKS).mapInArrow(as_cells, f"{CELL} binary")
        binary = frame.sparkSession._jvm.org.apache.spark.sql.Encoders.BINARY()
        java_rdd = getattr(frame._jdf, "as")(binary).javaRDD()  # PySpark's own conversion pickles every cell in the JVM
        cells = pyspark.RDD(java_rdd, frame.sparkSession.sparkContext, serializers.NoOpSerializer())
        cells.persist(pyspark.StorageLevel(False, True, False, True))  # in memory, not serialised again

    def asked(work: bytes) -> Sequence[bytes]:
        with _unlogged():
            return list(cells.mapPartitions(partial(apply_to_cells, work)).collect())

    return asked, cells.unpersist


def _batches(expression: Any, size: int) -> Any:
    """Stream one partition after the other, so that the driver holds only one; executors need no Python."""
    schema = expression.as_table().schema().to_pyarrow()
    with _unlogged():
        rows = _frame(expression).toLocalIterator()
    return pa.RecordBatchReader.from_batches(schema, _packed(rows, schema, size))


def _packed(rows: Iterator[Any], schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
    while batch := _next(rows, size):
        columns = zip(zip(*batch, strict=True), schema, strict=True)
        yield pa.RecordBatch.from_arrays([pa.array(column, field.type) for column, field in columns], schema=schema)


def _next(rows: Iterator[Any], size: int) -> list[Any]:
    with _unlogged():
        return list(islice(rows, size))


def _frame(expression: Any) -> Any:
    """Return Spark's data frame of an Ibis expression."""
    backend = expression.get_backend()
    return backend.raw_sql(backend.compile(expression))


@contextmanager
def _unlogged() -> Iterator[None]:
    """Silence PySpark's loggers; the caller reports errors without quoting rows."""
    kind = import_module("pyspark.logger").PySparkLogger  # PySpark requires its own logger class
    loggers: list[logging.Logger] = [kind.getLogger(name) for name in LOGGERS]
    were_disabled = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, were_disabled, strict=True):
            logger.disabled = disabled


SPARK = Dialect(
    hashed=_hashed,
    text=_text,
    utf8=_utf8,
    materialise=_materialised,
    answer=_answer,
    spread=_spread,
    stream=_batches,
)

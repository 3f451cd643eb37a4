"""Work that a table's engine spreads over Python workers of its own, as Spark does. It holds their rows as bytes, which
it hands them faster than rows. What travels is as for Dask: ``machine.packed`` there, ``machine.attempt``'s value back.

The workers need no Ibis.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from cloister.core.encoding import chunk_rows
from cloister.rows.workers.machine import attempt, settled

CELL = "cell"
ROWS = 2**16
"""Rows of a cell, and a batch at most."""


def bound(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: batches in cells of bytes, a row each."""
    sink, rows, writer = pa.BufferOutputStream(), 0, None
    for batch in batches:
        writer = writer or pa.ipc.new_stream(sink, batch.schema)
        writer.write_table(pa.Table.from_batches([batch]), chunk_rows(batch.num_columns))
        rows += batch.num_rows
        if rows >= ROWS:
            yield _cell(writer, sink)
            sink, rows, writer = pa.BufferOutputStream(), 0, None
    if writer is not None:
        yield _cell(writer, sink)


def _cell(writer: Any, sink: Any) -> pa.RecordBatch:
    writer.close()
    return pa.RecordBatch.from_pydict({CELL: pa.array([sink.getvalue().to_pybytes()], pa.binary())})


def worked(work: bytes, cells: Iterable[bytes]) -> Iterator[bytes]:
    """In a worker: the value of a packed function of all batches in a task's cells."""
    batches = (batch for cell in cells for batch in pa.ipc.open_stream(cell))
    yield pickle.dumps(attempt(work, batches), pickle.HIGHEST_PROTOCOL)


def values(found: Iterable[bytes]) -> Iterator[Any]:
    """What ``worked`` gave. Raises: InvalidInput: a worker failed."""
    return (settled(pickle.loads(value)) for value in found)

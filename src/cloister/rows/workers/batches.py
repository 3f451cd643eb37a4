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


def bound(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: batches in cells of bytes, a row each, of a sixteenth of a chunk: a JVM keeps larger objects apart,
    and soon has no room for them."""
    for batch in batches:
        size = max(1, chunk_rows(batch.num_columns) // 16)
        for start in range(0, batch.num_rows, size):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch.slice(start, size))
            yield pa.RecordBatch.from_pydict({CELL: pa.array([sink.getvalue().to_pybytes()], pa.binary())})


def worked(work: bytes, cells: Iterable[bytes]) -> Iterator[bytes]:
    """In a worker: the value of a packed function of all batches in a task's cells."""
    batches = (batch for cell in cells for batch in pa.ipc.open_stream(cell))
    yield pickle.dumps(attempt(work, batches), pickle.HIGHEST_PROTOCOL)


def values(found: Iterable[bytes]) -> Iterator[Any]:
    """What ``worked`` gave. Raises: InvalidInput: a worker failed."""
    return (settled(pickle.loads(value)) for value in found)

"""Work that a table's engine spreads over Python workers of its own, as Spark does.

The engine holds the rows as bytes, which it hands to workers faster than rows. What travels is as for Dask:
``work.packed`` there, ``work.attempt``'s value back. The workers need no Ibis.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from cloister.core.encoding import chunk_rows
from cloister.rows.workers.work import attempt, result_of

CELL = "cell"


def as_cells(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches as cells of bytes, a row each, of a sixteenth of a chunk; runs in a worker.

    A JVM keeps larger objects apart, and soon has no room for them.
    """
    for batch in batches:
        size = max(1, chunk_rows(batch.num_columns) // 16)
        for start in range(0, batch.num_rows, size):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch.slice(start, size))
            yield pa.RecordBatch.from_pydict({CELL: pa.array([sink.getvalue().to_pybytes()], pa.binary())})


def apply_to_cells(work: bytes, cells: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pickled value of a packed function of all batches in a task's cells; runs in a worker."""
    batches = (batch for cell in cells for batch in pa.ipc.open_stream(cell))
    yield pickle.dumps(attempt(work, batches), pickle.HIGHEST_PROTOCOL)


def unpickled(results: Iterable[bytes]) -> Iterator[Any]:
    """Return the values that ``apply_to_cells`` yielded. Raises: InvalidInput: a worker failed."""
    return (result_of(pickle.loads(value)) for value in results)

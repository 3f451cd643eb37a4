"""Work that a table's engine spreads over Python workers of its own, which get rows as Arrow batches: Spark's
``mapInArrow``. What travels is as for Dask: ``machine.packed`` there, ``machine.attempt``'s value back, pickled.

The workers need no Ibis.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from cloister.rows.workers.machine import attempt, settled

VALUE = "value"


def worked(work: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: the value of a packed function of all batches of a task, as one row."""
    yield pa.RecordBatch.from_pydict({VALUE: [pickle.dumps(attempt(work, batches), pickle.HIGHEST_PROTOCOL)]})


def values(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    """What ``worked`` gave. Raises: InvalidInput: a worker failed."""
    return (settled(pickle.loads(cell.as_py())) for batch in batches for cell in batch.column(VALUE))

"""Work that a table's engine spreads over Python workers of its own, which get rows as Arrow batches: Spark's
``mapInArrow``. What travels is as for Dask: ``machine.packed`` there, ``machine.attempt``'s value back, pickled.

The workers need no Ibis.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Generic, TypeVar, final

import attrs
import pyarrow as pa

from cloister.rows.workers.machine import attempt, settled

V = TypeVar("V")

VALUE = "value"


def worked(work: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: the value of a packed function of all batches of a partition, as one row; none for None."""
    value = attempt(work, batches)
    if value is not None:
        yield pa.RecordBatch.from_pydict({VALUE: [pickle.dumps(value, pickle.HIGHEST_PROTOCOL)]})


@final
@attrs.frozen
class Added(Generic[V]):
    """Values of partitions, one row each, to their sum; None where there are none. Args: merge (as of ``map_merge``).

    Raises: InvalidInput: a partition failed.
    """

    merge: Callable[[V, V], V]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> V | None:
        cells = (cell for batch in batches for cell in batch.column(VALUE))
        values = (settled(pickle.loads(cell.as_py())) for cell in cells)
        first = next(values, None)
        return None if first is None else reduce(self.merge, values, first)

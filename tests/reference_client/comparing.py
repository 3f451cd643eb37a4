"""Public objects against what a device makes of their descriptions."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from cloister.core.buckets import Bucketing, BundleArrays, Vectors, describe_part
from cloister.core.domains import Lattice
from cloister.core.lattice import shrink
from cloister.core.types import Floats, Ints
from tests.reference_client import buckets, snapping
from tests.reference_client.words import opened


def as_devices_read(part: object) -> Any:
    """What a device reads of a public object: its JSON, with the arrays in it opened."""
    arrays = BundleArrays()
    text = json.dumps(describe_part(part, arrays), sort_keys=True, allow_nan=False)
    return opened(json.loads(text), bytes(arrays.content))


def check_snapping(lattice: Lattice, rows: Floats) -> None:
    """A device puts these rows (n, d) where ``snap`` puts them."""
    read = as_devices_read(lattice)
    assert [snapping.snap(read, row) for row in rows.tolist()] == lattice.snap(rows).tolist()


def check_cells(cells: Bucketing, rows: Ints) -> None:
    """A device finds the buckets of these lattice rows (n, d) that ``locate`` finds."""
    read: Any = as_devices_read(cells)
    assert [int(size) for size in read["sizes"]] == list(cells.space.sizes)
    assert [buckets.locate(read, row) for row in rows.tolist()] == cells.locate(rows).tolist()


def check_vectors(found: Vectors, rows: Ints) -> None:
    """A device finds the vectors of those rows that are in a bucket, cut to the bound."""
    ids = found.cells.locate(rows)
    held = np.flatnonzero(ids[:, 0] >= 0)
    rows, ids = rows[held], ids[held]
    read: Any = as_devices_read(found)
    bound = found.bound
    assert (read["l2"], read["l1"], read["dimension"]) == (bound.l2, bound.l1, bound.dimension)
    cut = shrink(found.values(rows, ids), bound)
    assert [snapping.sent(read, row, id) for row, id in zip(rows.tolist(), ids[:, 0].tolist(), strict=True)] == (
        cut.tolist()
    )

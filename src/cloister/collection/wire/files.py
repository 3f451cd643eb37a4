"""Reads Parquet and Arrow files of reports and messages, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from cloister.collection.wire.arrow import record_batches
from cloister.collection.wire.columns import plan_of
from cloister.collection.wire.listing import Unusable, changed, identity
from cloister.core.errors import InvalidInput

BATCH = 2**17
"""Rows read at once."""

MAX_BATCH_BYTES = 2**28
"""Largest batch of an Arrow file in memory, in bytes; its writer chose the rows. Ours take a sixteenth of this."""

MAX_GROUP_BYTES = 2**29
"""Largest row group of a Parquet file in memory, in bytes, as the file states it: one page can be as large."""

HELD = 2**25
"""Bytes of a file that are kept in memory until its end is reached; larger files are read twice."""


def batches(path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield a file's rows, a bounded number at a time, once it was found readable to its end. Raises: Unusable: before
    the first batch. InvalidInput: the file changed while it was read."""
    stamp, held, size = identity(path), list[pa.RecordBatch](), 0
    try:
        for batch in _read(path, schema):
            size += batch.nbytes
            if size <= HELD:
                held.append(batch)
            else:
                held.clear()
    except Unusable:
        raise
    except Exception:  # a foreign decoder may raise anything: the file cannot be read
        raise Unusable("damaged") from None
    if size <= HELD:
        yield from held
        return
    try:
        yield from _read(path, schema)
    except (pa.ArrowException, OSError, Unusable):
        raise InvalidInput(changed(path)) from None
    if identity(path) != stamp:
        raise InvalidInput(changed(path))


def writer(file: BinaryIO, format: str, schema: pa.Schema) -> Any:
    """A writer of batches into an open file. Args: format (parquet or arrow)."""
    if format == "arrow":
        return pyarrow.ipc.new_file(file, schema, options=pyarrow.ipc.IpcWriteOptions(compression="zstd"))
    pages = {"compression": "zstd", "write_statistics": False, "write_page_checksum": True}
    return pyarrow.parquet.ParquetWriter(file, schema, **pages)


def _read(path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    lower = path.lower()
    if lower.endswith(".parquet"):
        return _parquet(path, schema)
    if lower.endswith(".arrow"):
        return _arrow(path, schema)
    raise Unusable("no reports")


def _parquet(path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read page by page, with checksums verified where there are any; refuse row groups that memory may not hold."""
    options = {"pre_buffer": False, "buffer_size": 2**18, "page_checksum_verification": True}
    with pyarrow.parquet.ParquetFile(path, **options) as file:
        _fits(file.schema_arrow, schema)
        groups = (file.metadata.row_group(i) for i in range(file.metadata.num_row_groups))
        # checks the group's total: reading the metadata of a damaged column could crash the process
        if any(group.total_byte_size > MAX_GROUP_BYTES for group in groups):
            raise Unusable("damaged")
        yield from _whole(file.iter_batches(batch_size=BATCH, use_threads=False), file.metadata.num_rows)


def _arrow(path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read without a memory map, as a file cut short by another program would crash the process, and refuse batches
    that memory may not hold."""
    with pa.OSFile(path) as file:
        reader = pyarrow.ipc.open_file(file, options=pyarrow.ipc.IpcReadOptions(use_threads=False))
        _fits(reader.schema, schema)
        whole, announced, found = reader.schema, reader.num_record_batches, 0
    for batch in record_batches(path, whole, MAX_BATCH_BYTES):
        yield from _whole((batch.slice(s, BATCH) for s in range(0, batch.num_rows, BATCH)), batch.num_rows)
        found += 1
    if found != announced:
        raise Unusable("damaged")


def _whole(pieces: Iterator[Any], rows: int) -> Iterator[pa.RecordBatch]:
    seen = 0
    for batch in pieces:
        batch.validate(full=True)
        seen += batch.num_rows
        yield batch
    if seen != rows:
        raise Unusable("damaged")


def _fits(found: pa.Schema, schema: pa.Schema) -> None:
    """Raises: Unusable: this is not the schema of the plan's files."""
    plan = plan_of(found)
    if plan is None:
        raise Unusable("no reports")
    if plan != plan_of(schema):
        raise Unusable("another plan", plan)
    if found.names != schema.names or found.types != schema.types:
        raise Unusable("no reports")

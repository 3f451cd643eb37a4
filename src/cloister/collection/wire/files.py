"""Reads Parquet and Arrow files of reports and messages, whole or not at all.

Reads record batches of an Arrow file, each after a check of its size in memory.

Zeros compress fifty thousand times: a file of a megabyte can ask for fifty gigabytes. The uncompressed size of a buffer
stands in its first eight bytes, and the positions of buffers in the message before them (a flatbuffer). pyarrow shows
neither, so both are parsed here, from the very message that is then decoded: the footer could point elsewhere.

Source: Arrow columnar format, "Encapsulated message format" and "Compression"; FlatBuffers internals, "Tables".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from cloister.collection.wire.columns import plan_of
from cloister.collection.wire.listing import Unusable, changed, identity
from cloister.core.errors import InvalidInput

MAGIC = b"ARROW1\0\0"

RECORD_BATCH = 3
"""Number of RecordBatch in the flatbuffer union of message types."""


class TooLarge(ValueError):
    """A batch that would take too much memory."""


def record_batches(path: str, schema: pa.Schema, most: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a file that ``pyarrow.ipc.open_file`` can open, in the order of the file.

    Args: schema (the file's, from its footer), most (bytes of a batch in memory).
    Raises: TooLarge: a batch exceeds ``most``. ValueError, ArrowException, struct.error: not such a file.
    """
    with pa.OSFile(path) as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError("not an Arrow file")
        reader = pyarrow.ipc.MessageReader.open_stream(file)
        reader.read_next_message()  # the schema, which the footer repeats
        for message in reader:
            if not _size(message) <= most:
                raise TooLarge(f"a batch has {_size(message)} bytes")
            yield pyarrow.ipc.read_record_batch(message, schema)


def _size(message: pa.Message) -> int:
    """Bytes that a batch's buffers take in memory."""
    data, body = memoryview(message.metadata), memoryview(message.body)
    root = _at("<I", data, 0)
    if _at("<B", data, _field(data, root, 1)) != RECORD_BATCH:
        raise ValueError("the message is not a record batch")
    batch = _to(data, _field(data, root, 2))
    buffers, compressed = _to(data, _field(data, batch, 2)), _field(data, batch, 3) != 0
    size = 0
    for number in range(_at("<I", data, buffers)):
        start, length = struct.unpack_from("<qq", data, buffers + 4 + 16 * number)
        became = _at("<q", body, start) if compressed and length else -1
        if not (0 <= start <= start + length <= len(body) and became >= -1):
            raise ValueError("a buffer reaches beyond its message")
        size += length if became == -1 else became
    return size


def _field(data: memoryview, table: int, number: int) -> int:
    """Position of a table's field; 0 if it is absent."""
    layout = table - _at("<i", data, table)
    if 4 + 2 * number >= _at("<H", data, layout):
        return 0
    offset = _at("<H", data, layout + 4 + 2 * number)
    return table + offset if offset else 0


def _to(data: memoryview, at: int) -> int:
    """Position that an offset points to."""
    if at == 0:
        raise ValueError("a field is missing")
    return at + _at("<I", data, at)


def _at(form: str, data: memoryview, at: int) -> int:
    if at < 0:
        raise ValueError("an offset points before the message")
    (value,) = struct.unpack_from(form, data, at)
    return int(value)


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

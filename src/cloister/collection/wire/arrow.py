"""Reads record batches of an Arrow file, each after a check of its size in memory.

Zeros compress fifty thousand times: a file of a megabyte can ask for fifty gigabytes. The uncompressed size of a buffer
stands in its first eight bytes, and the positions of buffers in the message before them (a flatbuffer). pyarrow shows
neither, so both are parsed here, from the very message that is then decoded: the footer could point elsewhere.

Source: Arrow columnar format, "Encapsulated message format" and "Compression"; FlatBuffers internals, "Tables".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.ipc

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

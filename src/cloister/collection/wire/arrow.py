"""Record batches of an Arrow file whose size in memory is known before it is taken.

A buffer of zeros is compressed fifty thousand times: a file of a megabyte can ask for fifty gigabytes. What each buffer
becomes stands in its first eight bytes, and where buffers are in the message that comes before them (a flatbuffer).
Both are read here, which the library does not offer, from the very message that is then decoded: the footer could point
elsewhere.

Source: Arrow columnar format, "Encapsulated message format" and "Compression"; FlatBuffers internals, "Tables".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.ipc

MAGIC = b"ARROW1\0\0"

RECORD_BATCH = 3
"""Of the union of messages."""


class TooLarge(ValueError):
    """A batch that would take more memory than it may."""


def record_batches(path: str, schema: pa.Schema, most: int) -> Iterator[pa.RecordBatch]:
    """The batches of a file that ``pyarrow.ipc.open_file`` can open, in the order in which they stand.

    Args:
        schema: of the file, from its footer.
        most: bytes of one in memory.

    Raises:
        TooLarge: one has more. ValueError, ArrowException, struct.error: this is no such file.
    """
    with pa.OSFile(path) as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError("no Arrow file")
        reader = pyarrow.ipc.MessageReader.open_stream(file)
        reader.read_next_message()  # the schema once more
        for message in reader:
            if not _size(message) <= most:
                raise TooLarge(f"a batch has {_size(message)} bytes")
            yield pyarrow.ipc.read_record_batch(message, schema)


def _size(message: pa.Message) -> int:
    """Bytes of a batch's buffers in memory."""
    data, body = memoryview(message.metadata), memoryview(message.body)
    root = _at("<I", data, 0)
    if _at("<B", data, _field(data, root, 1)) != RECORD_BATCH:
        raise ValueError("a message that is no record batch")
    batch = _to(data, _field(data, root, 2))
    buffers, compressed = _to(data, _field(data, batch, 2)), _field(data, batch, 3) != 0
    size = 0
    for number in range(_at("<I", data, buffers)):
        start, length = struct.unpack_from("<qq", data, buffers + 4 + 16 * number)
        became = _at("<q", body, start) if compressed and length else -1
        if not (0 <= start <= start + length <= len(body) and became >= -1):
            raise ValueError("a buffer beyond its message")
        size += length if became == -1 else became
    return size


def _field(data: memoryview, table: int, number: int) -> int:
    """Where a field of a table stands; 0 where it is left out."""
    layout = table - _at("<i", data, table)
    if 4 + 2 * number >= _at("<H", data, layout):
        return 0
    offset = _at("<H", data, layout + 4 + 2 * number)
    return table + offset if offset else 0


def _to(data: memoryview, at: int) -> int:
    """Where an offset points to."""
    if at == 0:
        raise ValueError("a field is missing")
    return at + _at("<I", data, at)


def _at(form: str, data: memoryview, at: int) -> int:
    if at < 0:
        raise ValueError("an offset before the message")
    (value,) = struct.unpack_from(form, data, at)
    return int(value)

"""Files that several were appended to, as by ``cat``: a footer describes the last of them alone, and a stream ends with
the first, so that a reader would leave out the rows of the others without a word."""

from __future__ import annotations

import mmap
import struct
from typing import Any, NoReturn

from cloister.core.errors import InvalidInput

MARK = b"ARROW1"
"""How an Arrow file begins and ends."""

BATCHES = 3
"""Number of the footer's field that lists the record batches."""


def check_parquet(path: str, metadata: Any, memory: mmap.mmap) -> None:
    """Check that a Parquet file is one file. Args: metadata (pyarrow's), memory (the file's bytes).

    Raises: InvalidInput: another one ends, and this one begins, behind the pages that the footer describes.
    """
    groups = metadata.num_row_groups
    last = metadata.row_group(groups - 1) if groups else None
    chunks = [] if last is None else [last.column(j) for j in range(last.num_columns)]
    ends = [chunk.total_compressed_size + (chunk.dictionary_page_offset or chunk.data_page_offset) for chunk in chunks]
    if memory.find(b"PAR1PAR1", max(ends, default=0)) >= 0:
        refuse(path)


def check_arrow(path: str, memory: mmap.mmap) -> None:
    """As ``check_parquet``, of an Arrow file."""
    if memory.find(2 * MARK, _end_of_batches(memory)) >= 0:
        refuse(path)


def _end_of_batches(memory: mmap.mmap) -> int:
    """Where an Arrow file's last record batch ends, as its footer says: a table of FlatBuffers, in which a batch has an
    offset and the lengths of its description and its body."""
    (length,) = struct.unpack_from("<i", memory, len(memory) - len(MARK) - 4)
    footer = len(memory) - len(MARK) - 4 - length
    root = footer + struct.unpack_from("<I", memory, footer)[0]
    fields = root - struct.unpack_from("<i", memory, root)[0]
    (place,) = struct.unpack_from("<H", memory, fields + 4 + 2 * BATCHES)
    if not place:
        return 0
    vector = root + place + struct.unpack_from("<I", memory, root + place)[0]
    (many,) = struct.unpack_from("<I", memory, vector)
    blocks = struct.iter_unpack("<qi4xq", memory[vector + 4 : vector + 4 + 24 * many])
    return max((sum(block) for block in blocks), default=0)


def refuse(path: str) -> NoReturn:
    """Raises: InvalidInput: the file is several."""
    raise InvalidInput(
        f"'{path}' is several files, one appended to another, and rows of all but one would be left out: give each as "
        f"a file of its own, or have them written as one"
    )


__all__ = ["check_arrow", "check_parquet", "refuse"]

"""Detection of Parquet and Arrow files that were concatenated (as by cat).

A footer describes only the last of them, and a stream ends with the first, so a reader would silently drop the rows of
the others.
"""

from __future__ import annotations

import mmap
import struct
from typing import Any, NoReturn

from cloister.core.errors import InvalidInput

MARK = b"ARROW1"
"""Magic bytes at both ends of an Arrow file."""

BLOCKS = 2, 3
"""Indices of the footer's fields that list the dictionary batches and the record batches."""

GAP = 64
"""Upper bound on the bytes between the last batch of an Arrow file and its footer: an end mark and padding."""


def check_parquet(path: str, metadata: Any, memory: mmap.mmap) -> None:
    """Check that a Parquet file is a single file, by pyarrow's metadata and the file's bytes.

    Raises:
        InvalidInput: another file ends, and this one starts, after the pages that the footer describes.
    """
    groups = metadata.num_row_groups
    last = metadata.row_group(groups - 1) if groups else None
    chunks = [] if last is None else [last.column(j) for j in range(last.num_columns)]
    ends = [chunk.total_compressed_size + (chunk.dictionary_page_offset or chunk.data_page_offset) for chunk in chunks]
    if memory.find(b"PAR1PAR1", max(ends, default=0)) >= 0:
        refuse(path)


def check_arrow(path: str, memory: mmap.mmap) -> None:
    """Check that an Arrow file is a single file, as ``check_parquet``.

    Offsets in the footer count from the start of its own file. If another file precedes it, the footer follows the last
    batch at a distance, also where the batches that it lists would end before the seam.
    """
    end, footer = _end_of_batches(memory)
    if memory.find(2 * MARK, 0 if footer - end > GAP else end) >= 0:
        refuse(path)


def _end_of_batches(memory: mmap.mmap) -> tuple[int, int]:
    """Return where the last batch of an Arrow file ends according to its footer, and where the footer begins.

    The footer is a FlatBuffers table; it lists the offset of each batch and the lengths of its metadata and its body.
    """
    (length,) = struct.unpack_from("<i", memory, len(memory) - len(MARK) - 4)
    footer = len(memory) - len(MARK) - 4 - length
    root = footer + struct.unpack_from("<I", memory, footer)[0]
    fields = root - struct.unpack_from("<i", memory, root)[0]
    (size,) = struct.unpack_from("<H", memory, fields)
    ends = [0]
    for field in BLOCKS:
        slot = 4 + 2 * field
        place = struct.unpack_from("<H", memory, fields + slot)[0] if slot < size else 0
        if place:
            vector = root + place + struct.unpack_from("<I", memory, root + place)[0]
            (n_batches,) = struct.unpack_from("<I", memory, vector)
            blocks = struct.iter_unpack("<qi4xq", memory[vector + 4 : vector + 4 + 24 * n_batches])
            ends += [sum(block) for block in blocks]
    return max(ends), footer


def refuse(path: str) -> NoReturn:
    """Raise InvalidInput for a file that is several files."""
    raise InvalidInput(
        f"'{path}' is several files, one appended to another, and rows of all but one would be left out: give each as "
        f"a file of its own, or have them written as one"
    )


__all__ = ["check_arrow", "check_parquet", "refuse"]

"""Reports as they are read from a file or a stream, a bounded number at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, final

import attrs
import numpy as np

from cloister.collection.wire.batches import PREFIX, BatchForm, Parsed
from cloister.collection.wire.packing import Packed
from cloister.core.types import Ids, Ints

CHUNK = 2**22
"""Bytes read at once."""


@final
@attrs.frozen(eq=False)
class Block:
    """Some reports. Args: users (n,), answers (n, A)."""

    users: Ids
    answers: Packed = attrs.field(repr=False)

    def __len__(self) -> int:
        return len(self.users)

    def of(self, rows: Ints) -> Block:
        """The reports at these positions, or this one if these are all."""
        if len(rows) == len(self):
            return self
        return Block(self.users[rows], self.answers[rows])

    @classmethod
    def joined(cls, some: list[Block]) -> Block:
        """Several blocks in one."""
        if len(some) == 1:
            return some[0]
        return cls(np.concatenate([one.users for one in some]), np.concatenate([one.answers for one in some]))


def parsed(file: BinaryIO, form: BatchForm, size: int | None = None, begun: bool = False) -> Iterator[Parsed]:
    """Read a file from where it stands, a bounded number of bytes at a time, to its end or the first bytes that are
    none of this round. ``Parsed.left`` of the last one is how many bytes at the end are not whole. Args: size (bytes to
    read; None: all), begun (whether reports stand before)."""
    held = b""
    while True:
        more = file.read(CHUNK if size is None else min(CHUNK, size))
        size = None if size is None else size - len(more)
        held += more
        found = form.parse(held, begun)
        yield found
        if not more or (found.wrong is not None and found.left >= PREFIX):  # whole enough to say whose it is
            return
        begun, held = begun or found.end > 0, held[found.end :]


def stretches(file: BinaryIO, form: BatchForm, size: int, most: int) -> Iterator[tuple[int, int]]:
    """Divide a file's first ``size`` bytes where batches begin: (start, stop) of about ``most`` bytes each. What begins
    no batch goes with the last one."""
    start = at = 0
    while at < size:
        file.seek(at)
        data, inside = file.read(min(CHUNK, size - at)), 0
        while (length := form.length(data, inside)) is not None:
            inside += length
            if most <= at + inside - start and at + inside < size:
                yield start, at + inside
                start = at + inside
        if not inside:
            break
        at += inside
    if start < size:
        yield start, size

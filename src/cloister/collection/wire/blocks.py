"""Reports as they were read, from a file of any form or from a stream: users, answers, and what is wrong already."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, final

import attrs
import numpy as np

from cloister.collection.wire.batches import PREFIX, BatchForm, Parsed
from cloister.collection.wire.columns import Packed
from cloister.core.types import AnyArray, Bools, Ids, Ints

FAULTS = ("out of range", "not as asked", "impossible")
"""What a row of a file can be refused for before its answer is looked at, in order."""

CHUNK = 2**22
"""Bytes read at once."""


@final
@attrs.frozen(eq=False)
class Block:
    """Some reports.

    Args:
        users: (n,), arbitrary where a report names none.
        answers: (n, A), arbitrary where something is wrong.
        faults: (n,), 0 or the position of a report's fault in ``FAULTS``, from 1; None: none has one.
    """

    users: Ids
    answers: Packed = attrs.field(repr=False)
    faults: AnyArray | None = attrs.field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.users)

    def of(self, rows: Ints) -> Block:
        """The reports at these positions, or this one if these are all."""
        if len(rows) == len(self):
            return self
        return Block(self.users[rows], self.answers[rows], None if self.faults is None else self.faults[rows])

    def without(self, fault: str) -> Bools:
        """Which reports (n,) do not have this fault."""
        if self.faults is None:
            return np.ones(len(self), bool)
        good: Bools = self.faults != FAULTS.index(fault) + 1
        return good

    @classmethod
    def joined(cls, some: list[Block]) -> Block:
        """Several blocks in one."""
        if len(some) == 1:
            return some[0]
        faults = [np.zeros(len(one), np.uint8) if one.faults is None else one.faults for one in some]
        return cls(
            np.concatenate([one.users for one in some]),
            np.concatenate([one.answers for one in some]),
            None if all(one.faults is None for one in some) else np.concatenate(faults),
        )


def faulty(*good: Bools) -> AnyArray | None:
    """The faults of reports (n,), given masks of those without each of ``FAULTS``."""
    if all(some.all() for some in good):
        return None
    return np.select([~some for some in good], np.arange(1, len(good) + 1), 0).astype(np.uint8)


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

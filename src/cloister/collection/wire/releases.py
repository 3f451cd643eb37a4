"""Files of shuffled messages: what a shuffler releases and a server reads. NumPy and attrs only; little-endian.

    file    0xC5 | stamp 8 | shuffle 16 | u32 number | u32 files | u64 messages | u32 CRC-32 of all this | batches
    batch   u32 count | u32 CRC-32 | count x (u16 question, body B)

A batch's CRC-32 is of the file's first 41 bytes, the batch's own number in it (u32, from 0) and the records, so that no
batch can stand in another one's place.
The stamp is the round's (``batches``). All files of one shuffle carry its name, 16 random bytes, and are numbered from
0. B is the length of the round's longest message; behind a shorter one stand zeros. A file counts as a whole or not at
all: its batches hold just as many messages as it says, and nothing follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any, BinaryIO, Literal, TypeAlias, final
from zlib import crc32

import attrs
import numpy as np

from cloister.collection.wire.answers import NUMBER, layout_of
from cloister.collection.wire.batches import BATCH, COUNTED, MAX_RECORDS, REPORT, STAMP, TICKETED
from cloister.collection.wire.messages import Messages, formed, widest
from cloister.collection.wire.packing import Packed
from cloister.core.questions import Round
from cloister.core.types import Bools

RELEASED = 0xC5
"""First byte of a file."""

HEAD, CHECK = Struct(f"<B{STAMP}s16sIIQ"), Struct("<I")
"""A file's head, and the CRC-32 behind it."""

Reason: TypeAlias = Literal["another plan", "no messages", "damaged", "unshuffled"]


@final
class Unusable(Exception):
    """A file that cannot count. Args: reason."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


@final
@attrs.frozen
class ReleasedFile:
    """What a file's head says. Args: shuffle (its name, 16 bytes), number, files, messages (in this file)."""

    shuffle: bytes
    number: int
    files: int
    messages: int


@final
@attrs.frozen
class ReleaseForm:
    """The form of a round's released files. Args: head (the round's name), round."""

    head: str
    round: Round[Any]

    @property
    def width(self) -> int:
        """Bytes of a record."""
        return NUMBER.itemsize + widest(self.round)

    @property
    def most(self) -> int:
        """Most records of a batch: a reader holds a whole one before it can trust it."""
        return max(1, MAX_RECORDS // self.width)

    @property
    def stamp(self) -> bytes:
        """What the round's files begin with, behind the first byte."""
        return bytes.fromhex(self.head)[:STAMP]

    def begin(self, place: ReleasedFile) -> bytes:
        """The head of a file."""
        head = HEAD.pack(RELEASED, self.stamp, place.shuffle, place.number, place.files, place.messages)
        return head + CHECK.pack(crc32(head))

    def batch(self, place: ReleasedFile, index: int, records: Packed) -> bytes:
        """Records (m, width), 1 to ``most``, as a batch. Args: index (its number in the file, from 0)."""
        data = records.tobytes()
        return COUNTED.pack(len(records), self._check(place, index, data)) + data

    def _check(self, place: ReleasedFile, index: int, data: bytes) -> int:
        return crc32(data, crc32(CHECK.pack(index), crc32(self.begin(place)[: HEAD.size])))

    def place(self, file: BinaryIO) -> ReleasedFile:
        """Read a file's head. Raises: Unusable."""
        data = file.read(HEAD.size + CHECK.size)
        if not data or data[0] != RELEASED:
            sent = data[:1] in {bytes([kind + more]) for kind in (REPORT, BATCH) for more in (0, TICKETED)}
            raise Unusable("unshuffled" if sent else "no messages")
        if len(data) < HEAD.size + CHECK.size or CHECK.unpack_from(data, HEAD.size)[0] != crc32(data[: HEAD.size]):
            raise Unusable("damaged")
        _, stamp, *place = HEAD.unpack_from(data)
        if stamp != self.stamp:
            raise Unusable("another plan")
        found = ReleasedFile(*place)
        if found.number >= found.files:
            raise Unusable("damaged")
        return found

    def batches(self, file: BinaryIO) -> Iterator[Packed]:
        """Yield a file's records, a batch at a time. Raises: Unusable: also after some of them; then none counts."""
        place = self.place(file)
        left, index = place.messages, 0
        while left:
            head = file.read(COUNTED.size)
            count, check = COUNTED.unpack(head) if len(head) == COUNTED.size else (0, 0)
            if not 0 < count <= min(left, self.most):
                raise Unusable("damaged")
            data = file.read(count * self.width)
            if len(data) != count * self.width or self._check(place, index, data) != check:
                raise Unusable("damaged")
            left, index = left - count, index + 1
            yield np.frombuffer(data, np.uint8).reshape(count, self.width)
        if file.read(1):
            raise Unusable("damaged")


def records_of(messages: Messages) -> Packed:
    """Messages as bytes (m, 2 + widest): the number of the question, then the body."""
    questions = messages.questions.astype(NUMBER).view(np.uint8).reshape(-1, NUMBER.itemsize)
    return np.concatenate([questions, messages.bodies], axis=1)


def messages_of(records: Packed) -> Messages:
    """The inverse of ``records_of``, without senders."""
    questions = np.ascontiguousarray(records[:, : NUMBER.itemsize]).view(NUMBER).reshape(-1).astype(np.uint16)
    return Messages(questions, records[:, NUMBER.itemsize :])


def well_formed(messages: Messages, round: Round[Any]) -> Bools:
    """Which messages (m,) have the form of one of this round (``messages.formed``)."""
    good = np.zeros(len(messages), bool)
    for j, body in enumerate(layout_of(round).bodies):
        mine = np.flatnonzero(messages.questions == j)
        good[mine] = formed(body, messages.bodies[mine])
    return good

"""Messages from users to a shuffler, and from there to a server: the number of a question, and a body of it.

What a user sends is an answer (``answers``), in which her messages stand together, beside her public number: the
envelope, which the shuffler removes. A message itself holds nothing public about her (``core.encoding``).

What a shuffler releases, and a server reads, are files; NumPy and attrs only, little-endian:

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

from cloister.collection.wire.answers import NOTHING, NUMBER, Body, Packed, layout_of
from cloister.collection.wire.batches import BATCH, COUNTED, MAX_RECORDS, REPORT, STAMP, TICKETED
from cloister.core.questions import Round
from cloister.core.types import AnyArray, Bools, Ids, Ints


@final
@attrs.frozen(eq=False)
class Messages:
    """A batch of messages.

    Args:
        questions: (m,) uint16.
        bodies: (m, ``widest``) contents, each one of a question's ``Body``, padded with zeros.
        senders: (m,), or None once they are shuffled.
    """

    questions: AnyArray = attrs.field(repr=False)
    bodies: Packed = attrs.field(repr=False)
    senders: Ids | None = attrs.field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.questions)

    def of(self, rows: Ints | Bools | slice) -> Messages:
        """The messages at these positions, or of this mask."""
        senders = None if self.senders is None else self.senders[rows]
        return Messages(self.questions[rows], self.bodies[rows], senders)

    @classmethod
    def joined(cls, some: list[Messages]) -> Messages:
        """Concatenate messages. Either all have senders or none."""
        if len(some) == 1:
            return some[0]
        senders = [one.senders for one in some if one.senders is not None]
        return cls(
            np.concatenate([one.questions for one in some]),
            np.concatenate([one.bodies for one in some]),
            np.concatenate(senders) if senders else None,
        )

    def report(self, question: int, round: Round[Any]) -> Any:
        """The report of one question, as its channel absorbs it."""
        kind, mine = layout_of(round).bodies[question].kind, self.bodies[self.questions == question]
        said = kind.body.unpacked(mine[:, : kind.body.bytes])
        return kind.load({**said, **kind.stamps(len(mine))})


def widest(round: Round[Any]) -> int:
    """Bytes of the longest message."""
    return max(body.kind.body.bytes for body in layout_of(round).bodies)


def formed(body: Body, bodies: Packed) -> Bools:
    """Which messages (m, ``widest``) have the form of a question's: nothing but zeros behind the body, and a private
    number, if there is one, that is asked this question. Whether the answer is possible, ``absorb`` checks."""
    kind = body.kind.body
    clear: Bools = ~np.asarray(bodies[:, kind.bytes :].any(axis=1), bool)
    if body.share is None or not any(column.name == "users" for column in kind.columns):
        return clear
    return clear & body.share.holds(kind.unpacked(bodies[:, : kind.bytes])["users"])


def from_answers(users: Ids, answers: Packed, round: Round[Any]) -> tuple[Messages, Bools, Ints]:
    """Answers (n, A) of senders (n,) as messages, those of each answer together; a mask (m,) of those that have the
    form of one; and the positions (m,) of the answers that they are from. A slot without that form becomes one message,
    which has not."""
    layout, sent = layout_of(round), list[tuple[Messages, Bools, Ints]]()
    for slot in layout.slots:
        mine = np.ascontiguousarray(answers[:, slot.place])
        said, left = mine[:, : NUMBER.itemsize].copy().view(NUMBER)[:, 0], mine[:, NUMBER.itemsize :]
        for j in slot.questions:
            rows, body = np.flatnonzero(said == j), layout.bodies[j]
            bodies = np.zeros((len(rows) * body.many, widest(round)), np.uint8)
            bodies[:, : body.kind.body.bytes] = left[rows, : body.bytes].reshape(len(bodies), body.kind.body.bytes)
            good = ~left[rows, body.bytes :].any(axis=1).repeat(body.many) & formed(body, bodies)
            sent.append((_sent(j, bodies, users, rows, body.many), good, rows.repeat(body.many)))
        none = (said == NOTHING) & ~left.any(axis=1)
        rows = np.flatnonzero(~(np.isin(said, slot.questions) | none))
        empty = np.zeros((len(rows), widest(round)), np.uint8)
        sent.append((_sent(NOTHING, empty, users, rows, 1), np.zeros(len(rows), bool), rows))
    owners = np.concatenate([rows for _, _, rows in sent])
    order = np.argsort(owners, kind="stable")
    messages, good = Messages.joined([one for one, _, _ in sent]), np.concatenate([good for _, good, _ in sent])
    return messages.of(order), good[order], owners[order]


def _sent(question: int, bodies: Packed, users: Ids, rows: Ints, many: int) -> Messages:
    return Messages(np.full(len(bodies), question, np.uint16), bodies, users[rows].repeat(many))


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

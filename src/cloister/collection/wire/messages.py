"""Messages from users to a shuffler and from there to a server: the number of a question, and a body.

A user sends an answer (``answers``) that holds all her messages, beside her public number: the envelope, which the
shuffler removes. A message itself holds nothing public about her (``core.encoding``).

A shuffler releases files, which the server reads (NumPy and attrs only; little-endian):

    file    0xC5 | stamp 8 | shuffle 16 | u32 number | u32 files | u64 messages | u32 CRC-32 of all this | batches
    batch   u32 count | u32 CRC-32 | count x (u16 question, body B)

A batch's CRC-32 covers the file's first 41 bytes, the batch's number in the file (u32, from 0) and the records, so that
no batch can take another one's place. The stamp is the round's (``batches``). All files of a shuffle carry its name, 16
random bytes, and are numbered from 0. B is the length of the round's longest message; shorter ones are padded with
zeros. A file counts as a whole or not at all: its batches hold exactly the stated number of messages, and nothing
follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any, BinaryIO, Literal, TypeAlias, final
from zlib import crc32

import attrs
import numpy as np

from cloister.collection.wire.answers import NOTHING, NUMBER, Body, Packed, layout_of
from cloister.collection.wire.batches import BATCH, BATCH_HEAD, MAX_RECORDS, REPORT, STAMP, TICKETED
from cloister.core.questions import Round
from cloister.core.types import AnyArray, Bools, Ids, Ints


@final
@attrs.frozen(eq=False)
class Messages:
    """Batch of messages.

    Attributes:
        questions: (m,) uint16.
        bodies: (m, ``widest``) contents, each of a question's ``Body``, padded with zeros.
        senders: (m,), or None once shuffled.
    """

    questions: AnyArray = attrs.field(repr=False)
    bodies: Packed = attrs.field(repr=False)
    senders: Ids | None = attrs.field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.questions)

    def take(self, rows: Ints | Bools | slice) -> Messages:
        """Return the messages at these positions, or of a mask."""
        senders = None if self.senders is None else self.senders[rows]
        return Messages(self.questions[rows], self.bodies[rows], senders)

    @classmethod
    def concatenate(cls, batches: list[Messages]) -> Messages:
        """Concatenate messages, either all with senders or all without."""
        if len(batches) == 1:
            return batches[0]
        senders = [batch.senders for batch in batches if batch.senders is not None]
        return cls(
            np.concatenate([batch.questions for batch in batches]),
            np.concatenate([batch.bodies for batch in batches]),
            np.concatenate(senders) if senders else None,
        )

    def report(self, question: int, round: Round[Any]) -> Any:
        """Return the report of one question, as its channel absorbs it."""
        kind, bodies = layout_of(round).bodies[question].kind, self.bodies[self.questions == question]
        columns = kind.body.unpack(bodies[:, : kind.body.bytes])
        return kind.load({**columns, **kind.stamps(len(bodies))})


def widest(round: Round[Any]) -> int:
    """Return the length of the longest message, in bytes."""
    return max(body.kind.body.bytes for body in layout_of(round).bodies)


def matches_form(body: Body, bodies: Packed) -> Bools:
    """Return which messages (m, ``widest``) have the form of a question's; ``absorb`` checks their answers.

    Zeros follow the body, and a private number, if there is one, is asked this question.
    """
    kind = body.kind.body
    clear: Bools = ~np.asarray(bodies[:, kind.bytes :].any(axis=1), bool)
    if body.share is None or not any(column.name == "users" for column in kind.columns):
        return clear
    return clear & body.share.holds(kind.unpack(bodies[:, : kind.bytes])["users"])


def from_answers(users: Ids, answers: Packed, round: Round[Any]) -> tuple[Messages, Bools, Ints]:
    """Split the answers (n, A) of senders (n,) into messages, those of each answer together.

    Returns:
        The messages, a mask (m,) of the well-formed ones, and the positions (m,) of their answers. A malformed slot
        becomes one malformed message.
    """
    layout, parts = layout_of(round), list[tuple[Messages, Bools, Ints]]()
    for slot in layout.slots:
        slots = np.ascontiguousarray(answers[:, slot.place])
        numbers, contents = slots[:, : NUMBER.itemsize].copy().view(NUMBER)[:, 0], slots[:, NUMBER.itemsize :]
        for j in slot.questions:
            rows, body = np.flatnonzero(numbers == j), layout.bodies[j]
            bodies = np.zeros((len(rows) * body.messages, widest(round)), np.uint8)
            bodies[:, : body.kind.body.bytes] = contents[rows, : body.bytes].reshape(len(bodies), body.kind.body.bytes)
            good = ~contents[rows, body.bytes :].any(axis=1).repeat(body.messages) & matches_form(body, bodies)
            parts.append((_sent_by(j, bodies, users, rows, body.messages), good, rows.repeat(body.messages)))
        unasked = (numbers == NOTHING) & ~contents.any(axis=1)
        rows = np.flatnonzero(~(np.isin(numbers, slot.questions) | unasked))
        empty = np.zeros((len(rows), widest(round)), np.uint8)
        parts.append((_sent_by(NOTHING, empty, users, rows, 1), np.zeros(len(rows), bool), rows))
    owners = np.concatenate([rows for _, _, rows in parts])
    order = np.argsort(owners, kind="stable")
    messages, good = (
        Messages.concatenate([part for part, _, _ in parts]),
        np.concatenate([good for _, good, _ in parts]),
    )
    return messages.take(order), good[order], owners[order]


def _sent_by(question: int, bodies: Packed, users: Ids, rows: Ints, count: int) -> Messages:
    return Messages(np.full(len(bodies), question, np.uint16), bodies, users[rows].repeat(count))


RELEASED = 0xC5
"""First byte of a released file."""

HEAD, CHECK = Struct(f"<B{STAMP}s16sIIQ"), Struct("<I")
"""Head of a released file, and the CRC-32 that follows it."""

Reason: TypeAlias = Literal["another plan", "no messages", "damaged", "unshuffled"]


@final
class Unusable(Exception):
    """File that cannot be used, with a reason."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


@final
@attrs.frozen
class ReleasedFile:
    """Head of a released file.

    Attributes:
        shuffle: name of the shuffle, 16 bytes.
        number: number of the file, from 0.
        files: number of files in the shuffle.
        messages: number of messages in this file.
    """

    shuffle: bytes
    number: int
    files: int
    messages: int


@final
@attrs.frozen
class ReleaseForm:
    """Binary form of a round's released files; ``head`` is the round's name."""

    head: str
    round: Round[Any]

    @property
    def width(self) -> int:
        """Bytes of a record."""
        return NUMBER.itemsize + widest(self.round)

    @property
    def max_records(self) -> int:
        """Maximum number of records in a batch: a reader must hold all of them before it can check the CRC."""
        return max(1, MAX_RECORDS // self.width)

    @property
    def stamp(self) -> bytes:
        """First bytes of the round's name, which follow the first byte of its files."""
        return bytes.fromhex(self.head)[:STAMP]

    def begin(self, place: ReleasedFile) -> bytes:
        """Return the head of a file."""
        head = HEAD.pack(RELEASED, self.stamp, place.shuffle, place.number, place.files, place.messages)
        return head + CHECK.pack(crc32(head))

    def batch(self, place: ReleasedFile, index: int, records: Packed) -> bytes:
        """Return records (m, width), 1 to ``max_records`` of them, as the file's batch number ``index`` (from 0)."""
        data = records.tobytes()
        return BATCH_HEAD.pack(len(records), self._check(place, index, data)) + data

    def _check(self, place: ReleasedFile, index: int, data: bytes) -> int:
        return crc32(data, crc32(CHECK.pack(index), crc32(self.begin(place)[: HEAD.size])))

    def place(self, file: BinaryIO) -> ReleasedFile:
        """Read a file's head. Raises: Unusable."""
        data = file.read(HEAD.size + CHECK.size)
        if not data or data[0] != RELEASED:
            unshuffled = data[:1] in {bytes([kind + tickets]) for kind in (REPORT, BATCH) for tickets in (0, TICKETED)}
            raise Unusable("unshuffled" if unshuffled else "no messages")
        if len(data) < HEAD.size + CHECK.size or CHECK.unpack_from(data, HEAD.size)[0] != crc32(data[: HEAD.size]):
            raise Unusable("damaged")
        _, stamp, *place = HEAD.unpack_from(data)
        if stamp != self.stamp:
            raise Unusable("another plan")
        header = ReleasedFile(*place)
        if header.number >= header.files:
            raise Unusable("damaged")
        return header

    def batches(self, file: BinaryIO) -> Iterator[Packed]:
        """Yield a file's records, a batch at a time. Raises: Unusable: perhaps after some of them; then none counts."""
        place = self.place(file)
        remaining, index = place.messages, 0
        while remaining:
            head = file.read(BATCH_HEAD.size)
            count, check = BATCH_HEAD.unpack(head) if len(head) == BATCH_HEAD.size else (0, 0)
            if not 0 < count <= min(remaining, self.max_records):
                raise Unusable("damaged")
            data = file.read(count * self.width)
            if len(data) != count * self.width or self._check(place, index, data) != check:
                raise Unusable("damaged")
            remaining, index = remaining - count, index + 1
            yield np.frombuffer(data, np.uint8).reshape(count, self.width)
        if file.read(1):
            raise Unusable("damaged")


def records_of(messages: Messages) -> Packed:
    """Return messages as bytes (m, 2 + widest): the number of the question, then the body."""
    questions = messages.questions.astype(NUMBER).view(np.uint8).reshape(-1, NUMBER.itemsize)
    return np.concatenate([questions, messages.bodies], axis=1)


def messages_of(records: Packed) -> Messages:
    """Invert ``records_of``; the messages have no senders."""
    questions = np.ascontiguousarray(records[:, : NUMBER.itemsize]).view(NUMBER).reshape(-1).astype(np.uint16)
    return Messages(questions, records[:, NUMBER.itemsize :])


def well_formed(messages: Messages, round: Round[Any]) -> Bools:
    """Return which messages (m,) have the form of their question (``matches_form``)."""
    good = np.zeros(len(messages), bool)
    for j, body in enumerate(layout_of(round).bodies):
        rows = np.flatnonzero(messages.questions == j)
        good[rows] = matches_form(body, messages.bodies[rows])
    return good

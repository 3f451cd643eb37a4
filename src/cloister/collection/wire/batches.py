"""Binary form of reports, single and in batches, on devices, collectors and servers.

Needs NumPy and attrs only. Numbers are little-endian:

    report  0xC1 | stamp 8 | u8 round | u64 user | answer A
    batch   0xC2 | stamp 8 | u8 round | u32 count | u32 CRC-32 of the records | count x (u64 user, answer A)

The stamp is the first 8 bytes of the round's name (``Transcript.head``); rounds count from 1; A depends on the round
(``answers``). 0xC3 and 0xC4 are the same with a ticket of 64 bytes after every answer. A file or stream holds reports
and batches one after the other, so files can be concatenated. An incomplete report or batch at the end is ignored,
since it may still be written. A batch with a wrong CRC is refused, and the next ones are read; after bytes that begin
no report or batch of this round nothing can be read, since their length is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any, BinaryIO, Literal, TypeAlias, final
from zlib import crc32

import attrs
import numpy as np

from cloister.collection.wire.answers import Packed, layout_of
from cloister.core.errors import InvalidInput
from cloister.core.questions import Round
from cloister.core.types import Bools, Ids, Ints

REPORT, BATCH, TICKETED = 0xC1, 0xC2, 2
"""First bytes of a report and of a batch; ``TICKETED`` is added to those with tickets."""

TICKET, STAMP = 64, 8
"""Bytes of a ticket, and of a round's stamp."""

PREFIX, BATCH_HEAD = 2 + STAMP, Struct("<II")
"""Bytes of first byte, stamp and round; then, in a batch, the number of reports and the CRC-32 of their records."""

MAX_ROUNDS = 255
"""Maximum number of rounds: a report has one byte for the number of its round."""

MAX_RECORDS = 2**26
"""Maximum bytes of a batch's records: a reader must hold all of them before it can check the CRC."""

Bytes: TypeAlias = bytes | bytearray | memoryview
ParseError: TypeAlias = Literal["another plan", "no reports", "damaged"]


@final
@attrs.frozen(eq=False)
class Parsed:
    """Reports parsed from some bytes.

    Attributes:
        users: (n,) user numbers.
        answers: (n, A) answers.
        tickets: (n, 64), if the form has them.
        damaged: number of batches with a wrong CRC.
        end: position of the first unread byte, from which on the bytes are incomplete, or unreadable (``error``).
        size: number of bytes parsed.
        error: reason why nothing can be read from ``end`` on, or None.
        stamp: the stamp at ``end``, in hex, if it is another round's.
    """

    users: Ids
    answers: Packed = attrs.field(repr=False)
    tickets: Packed | None = attrs.field(repr=False)
    damaged: int
    end: int
    size: int
    error: ParseError | None = None
    stamp: str | None = None

    @property
    def unread(self) -> int:
        """Number of unread bytes."""
        return self.size - self.end


@final
@attrs.frozen
class BatchForm:
    """Binary form of one round's reports.

    Args:
        head: the round's name, hex.
        round: number of the round, from 1.
        width: A, bytes of an answer.
        tickets: whether a ticket follows every answer.
    """

    head: str
    round: int
    width: int
    tickets: bool = False

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.round <= MAX_ROUNDS:
            raise InvalidInput(f"reports have a form for rounds 1 to {MAX_ROUNDS}, not for {self.round}")

    @property
    def stamp(self) -> bytes:
        """First bytes of the round's name."""
        return bytes.fromhex(self.head[: 2 * STAMP])

    @property
    def record(self) -> np.dtype[Any]:
        """Type of a user's record in a batch."""
        ticket = [("ticket", "u1", (TICKET,))] if self.tickets else []
        return np.dtype([("user", "<u8"), ("answer", "u1", (self.width,)), *ticket])

    @property
    def max_reports(self) -> int:
        """Maximum number of reports in a batch."""
        return max(1, MAX_RECORDS // self.record.itemsize)

    def prefix(self, kind: int) -> bytes:
        """Return the first bytes of a ``REPORT`` or ``BATCH``."""
        return bytes([kind + TICKETED * self.tickets]) + self.stamp + bytes([self.round])

    def report(self, user: int, answer: Bytes, ticket: Bytes = b"") -> bytes:
        """Return one user's report. Raises: InvalidInput: the answer or the ticket has a wrong length."""
        self._check(len(answer), len(ticket))
        return self.prefix(REPORT) + user.to_bytes(8, "little") + bytes(answer) + bytes(ticket)

    def batch(self, users: Ids, answers: Packed, tickets: Packed | None = None) -> bytes:
        """Return users (n,), answers (n, A) and tickets (n, 64) as one batch.

        Raises: InvalidInput: there are too many, or their length is wrong.
        """
        self._check(answers.shape[1], 0 if tickets is None else tickets.shape[1])
        if len(users) > self.max_reports:
            raise InvalidInput(f"a batch holds at most {self.max_reports:,} reports of this round, not {len(users):,}")
        records = np.empty(len(users), self.record)
        records["user"], records["answer"] = users, answers
        if tickets is not None:
            records["ticket"] = tickets
        data = records.tobytes()
        return self.prefix(BATCH) + BATCH_HEAD.pack(len(users), crc32(data)) + data

    def batches(self, users: Ids, answers: Packed) -> Iterator[bytes]:
        """Yield the reports of any number of users in as few batches as possible."""
        for start in range(0, len(users), self.max_reports):
            yield self.batch(users[start : start + self.max_reports], answers[start : start + self.max_reports])

    def length(self, data: bytes, at: int) -> int | None:
        """Return the length of the report or batch that begins at ``at``, or None if none does."""
        if data.startswith(self.prefix(REPORT), at):
            return PREFIX + self.record.itemsize
        if not data.startswith(self.prefix(BATCH), at) or at + PREFIX + BATCH_HEAD.size > len(data):
            return None
        count, _ = BATCH_HEAD.unpack_from(data, at + PREFIX)
        return PREFIX + BATCH_HEAD.size + count * self.record.itemsize if count <= self.max_reports else None

    def parse(self, data: Bytes, continued: bool = False) -> Parsed:
        """Parse reports and batches up to the first incomplete one, or to bytes that are none of this round.

        With ``continued``, reports came before, so that unreadable bytes are damage.
        """
        raw, chunks, damaged, at = bytes(data), list[memoryview](), 0, 0
        view, size, head = memoryview(raw), self.record.itemsize, PREFIX + BATCH_HEAD.size
        report, batch = self.prefix(REPORT), self.prefix(BATCH)
        while at < len(raw):
            if raw.startswith(batch, at) and at + head <= len(raw):
                count, checksum = BATCH_HEAD.unpack_from(raw, at + PREFIX)
                stop = at + head + count * size
                if count > self.max_reports or stop > len(raw):
                    break
                records = view[at + head : stop]
                if crc32(records) == checksum:
                    chunks.append(records)
                else:
                    damaged += 1
            elif raw.startswith(report, at) and at + PREFIX + size <= len(raw):
                stop = at + PREFIX + size
                chunks.append(view[at + PREFIX : stop])
            else:
                break
            at = stop
        table = np.frombuffer(chunks[0] if len(chunks) == 1 else b"".join(chunks), self.record)
        tickets = table["ticket"] if self.tickets else None
        users = table["user"].astype(np.uint64)
        return Parsed(
            users,
            table["answer"],
            tickets,
            damaged,
            at,
            len(raw),
            *self._error(raw[at : at + head], continued or at > 0),
        )

    def _error(self, data: bytes, continued: bool) -> tuple[ParseError | None, str | None]:
        """Return why these bytes cannot begin a report or batch of this round, and another round's stamp in them."""
        report, batch = self.prefix(REPORT), self.prefix(BATCH)
        if any(prefix.startswith(data[:PREFIX]) for prefix in (report, batch)):
            if data[:1] == batch[:1] and len(data) == PREFIX + BATCH_HEAD.size:
                return ("damaged" if BATCH_HEAD.unpack_from(data, PREFIX)[0] > self.max_reports else None), None
            return None, None
        if data[:1] in (report[:1], batch[:1]):
            return "another plan", data[1 : 1 + STAMP].hex()
        return ("damaged" if continued else "no reports"), None

    def _check(self, answer: int, ticket: int) -> None:
        if (answer, ticket) != (self.width, TICKET * self.tickets):
            raise InvalidInput(
                f"an answer of this round has {self.width} bytes and a ticket of {TICKET * self.tickets}: these have "
                f"{answer} and {ticket}"
            )


def form_of(head: str, round: Round[Any], tickets: bool = False) -> BatchForm:
    """Return the binary form of a round's reports; ``head`` is the round's name.

    Raises: InvalidInput: the round is beyond the 255th.
    """
    return BatchForm(head, round.index + 1, layout_of(round).bytes, tickets)


CHUNK = 2**22
"""Bytes read from a file at once."""


@final
@attrs.frozen(eq=False)
class Block:
    """Block of reports: users (n,) and their answers (n, A)."""

    users: Ids
    answers: Packed = attrs.field(repr=False)

    def __len__(self) -> int:
        return len(self.users)

    def take(self, rows: Ints) -> Block:
        """Return the reports at these positions, without a copy if these are all."""
        if len(rows) == len(self):
            return self
        return Block(self.users[rows], self.answers[rows])

    def select(self, who: Bools) -> Block:
        """Return the reports of a mask (n,)."""
        return self.take(np.flatnonzero(who))

    @classmethod
    def concatenate(cls, blocks: list[Block]) -> Block:
        """Concatenate blocks."""
        if len(blocks) == 1:
            return blocks[0]
        return cls(np.concatenate([b.users for b in blocks]), np.concatenate([b.answers for b in blocks]))


def parse_file(file: BinaryIO, form: BatchForm, size: int | None = None, continued: bool = False) -> Iterator[Parsed]:
    """Parse a file from its position on, in bounded pieces, to its end or to bytes that are none of this round.

    ``unread`` of the last piece is the number of incomplete bytes at the end.

    Args:
        file: the file.
        form: form of its reports.
        size: bytes to read; None: all.
        continued: whether reports came before.
    """
    data = b""
    while True:
        chunk = file.read(CHUNK if size is None else min(CHUNK, size))
        size = None if size is None else size - len(chunk)
        data += chunk
        piece = form.parse(data, continued)
        yield piece
        if not chunk or (piece.error is not None and piece.unread >= PREFIX):  # the stamp is complete
            return
        continued, data = continued or piece.end > 0, data[piece.end :]


def batch_ranges(file: BinaryIO, form: BatchForm, total: int, part_size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges (start, stop) of about ``part_size`` of a file's first ``total`` bytes, divided between batches.

    Unreadable bytes belong to the last range.
    """
    start = at = 0
    while at < total:
        file.seek(at)
        data, inside = file.read(min(CHUNK, total - at)), 0
        while (length := form.length(data, inside)) is not None:
            inside += length
            if part_size <= at + inside - start and at + inside < total:
                yield start, at + inside
                start = at + inside
        if not inside:
            break
        at += inside
    if start < total:
        yield start, total

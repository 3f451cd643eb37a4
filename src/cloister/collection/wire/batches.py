"""Reports as bytes, one by one and in batches: what devices send, collectors keep and servers read. NumPy and attrs
only; little-endian.

    report  0xC1 | stamp 8 | u8 round | u64 user | answer A
    batch   0xC2 | stamp 8 | u8 round | u32 count | u32 CRC-32 of the records | count x (u64 user, answer A)

The stamp is the first 8 bytes of the round's name (``Transcript.head``); rounds count from 1; A is the round's own
(``answers``). 0xC3 and 0xC4 are the same with a ticket of 64 bytes after every answer. A file or stream is reports and
batches one after the other, so ``cat`` joins them. What stands at its end without being whole is not there, since it
may still be written. A batch whose records do not have its CRC is refused, and the ones after it are read; from the
first bytes on that begin no report or batch of this round nothing can be read, as their length is unknown.
"""

from __future__ import annotations

from collections import Counter
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
"""First bytes of a report and of a batch; ``TICKETED`` is added where there are tickets."""

TICKET, STAMP = 64, 8
"""Bytes of a ticket, and of a round's stamp."""

PREFIX, COUNTED = 2 + STAMP, Struct("<II")
"""Bytes that name what follows; what a batch says then: number of reports, CRC-32 of their records."""

MAX_ROUNDS = 255
"""Most rounds of a plan: a report names its round by one byte."""

MAX_RECORDS = 2**26
"""Most bytes of the records of one batch: a reader holds a whole one before it can trust it."""

Bytes: TypeAlias = bytes | bytearray | memoryview
Wrong: TypeAlias = Literal["another plan", "no reports", "damaged"]


@final
@attrs.frozen(eq=False)
class Parsed:
    """What some bytes hold.

    Args:
        users, answers: (n,) and (n, A).
        tickets: (n, 64), if the form has them.
        damaged: number of batches without their CRC.
        end: the first byte that was not read. What stands there is not whole yet, or ``wrong``.
        size: all bytes that were given.
        wrong: why nothing can be read from there on: another plan, no reports, damaged. Else None.
        stamp: the stamp that stands there, in hex, if it is another round's.
    """

    users: Ids
    answers: Packed = attrs.field(repr=False)
    tickets: Packed | None = attrs.field(repr=False)
    damaged: int
    end: int
    size: int
    wrong: Wrong | None = None
    stamp: str | None = None

    @property
    def left(self) -> int:
        """Bytes that were not read."""
        return self.size - self.end

    @property
    def refused(self) -> Counter[str]:
        """Number of batches and reports that were refused, per reason; what could not be read at all is one."""
        return Counter([*["damaged"] * self.damaged, *([] if self.wrong is None else [self.wrong])])


@final
@attrs.frozen
class BatchForm:
    """The form of one round's reports as bytes. Args: head (the round's name, hex), round (from 1), width (A, bytes of
    an answer), tickets (whether a ticket stands behind every answer)."""

    head: str
    round: int
    width: int
    tickets: bool = False

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.round <= MAX_ROUNDS:
            raise InvalidInput(f"a report names rounds 1 to {MAX_ROUNDS}, not {self.round}")

    @property
    def stamp(self) -> bytes:
        """First bytes of the round's name."""
        return bytes.fromhex(self.head[: 2 * STAMP])

    @property
    def record(self) -> np.dtype[Any]:
        """A user's part of a batch."""
        ticket = [("ticket", "u1", (TICKET,))] if self.tickets else []
        return np.dtype([("user", "<u8"), ("answer", "u1", (self.width,)), *ticket])

    @property
    def most(self) -> int:
        """Most reports of one batch."""
        return max(1, MAX_RECORDS // self.record.itemsize)

    def prefix(self, kind: int) -> bytes:
        """The first bytes of a report or batch. Args: kind (``REPORT`` or ``BATCH``)."""
        return bytes([kind + TICKETED * self.tickets]) + self.stamp + bytes([self.round])

    def report(self, user: int, answer: Bytes, ticket: Bytes = b"") -> bytes:
        """One user's report. Raises: InvalidInput: the answer or the ticket has another length than the round's."""
        self._check(len(answer), len(ticket))
        return self.prefix(REPORT) + user.to_bytes(8, "little") + bytes(answer) + bytes(ticket)

    def batch(self, users: Ids, answers: Packed, tickets: Packed | None = None) -> bytes:
        """The reports of users (n,), answers (n, A) and tickets (n, 64), as one batch. Raises: InvalidInput: too many
        for one, or of another length than the round's."""
        self._check(answers.shape[1], 0 if tickets is None else tickets.shape[1])
        if len(users) > self.most:
            raise InvalidInput(f"a batch holds at most {self.most:,} reports of this round, not {len(users):,}")
        records = np.empty(len(users), self.record)
        records["user"], records["answer"] = users, answers
        if tickets is not None:
            records["ticket"] = tickets
        data = records.tobytes()
        return self.prefix(BATCH) + COUNTED.pack(len(users), crc32(data)) + data

    def batches(self, users: Ids, answers: Packed) -> Iterator[bytes]:
        """The reports of any number of users, in as few batches as hold them."""
        for start in range(0, len(users), self.most):
            yield self.batch(users[start : start + self.most], answers[start : start + self.most])

    def length(self, data: bytes, at: int) -> int | None:
        """How many bytes the report or batch has that begins there; None if none does."""
        if data.startswith(self.prefix(REPORT), at):
            return PREFIX + self.record.itemsize
        if not data.startswith(self.prefix(BATCH), at) or at + PREFIX + COUNTED.size > len(data):
            return None
        count, _ = COUNTED.unpack_from(data, at + PREFIX)
        return PREFIX + COUNTED.size + count * self.record.itemsize if count <= self.most else None

    def parse(self, data: Bytes, begun: bool = False) -> Parsed:
        """Read reports and batches as far as they are whole, or to the first bytes that are none of this round. Args:
        begun (whether reports came before, so that bytes of no report are damage)."""
        given, found, damaged, at = bytes(data), list[memoryview](), 0, 0
        view, size, head = memoryview(given), self.record.itemsize, PREFIX + COUNTED.size
        report, batch = self.prefix(REPORT), self.prefix(BATCH)
        while at < len(given):
            if given.startswith(batch, at) and at + head <= len(given):
                count, checksum = COUNTED.unpack_from(given, at + PREFIX)
                stop = at + head + count * size
                if count > self.most or stop > len(given):
                    break
                records = view[at + head : stop]
                if crc32(records) == checksum:
                    found.append(records)
                else:
                    damaged += 1
            elif given.startswith(report, at) and at + PREFIX + size <= len(given):
                stop = at + PREFIX + size
                found.append(view[at + PREFIX : stop])
            else:
                break
            at = stop
        table = np.frombuffer(found[0] if len(found) == 1 else b"".join(found), self.record)
        tickets = table["ticket"] if self.tickets else None
        users = table["user"].astype(np.uint64)
        return Parsed(
            users,
            table["answer"],
            tickets,
            damaged,
            at,
            len(given),
            *self._wrong(given[at : at + head], begun or at > 0),
        )

    def _wrong(self, left: bytes, begun: bool) -> tuple[Wrong | None, str | None]:
        """Why these bytes cannot begin a report or batch of this round, and another round's stamp there."""
        report, batch = self.prefix(REPORT), self.prefix(BATCH)
        if any(whole.startswith(left[:PREFIX]) for whole in (report, batch)):
            if left[:1] == batch[:1] and len(left) == PREFIX + COUNTED.size:
                return ("damaged" if COUNTED.unpack_from(left, PREFIX)[0] > self.most else None), None
            return None, None
        if left[:1] in (report[:1], batch[:1]):
            return "another plan", left[1 : 1 + STAMP].hex()
        return ("damaged" if begun else "no reports"), None

    def _check(self, answer: int, ticket: int) -> None:
        if (answer, ticket) != (self.width, TICKET * self.tickets):
            raise InvalidInput(
                f"an answer of this round has {self.width} bytes and a ticket of {TICKET * self.tickets}: these have "
                f"{answer} and {ticket}"
            )


def form_of(head: str, round: Round[Any], tickets: bool = False) -> BatchForm:
    """The form of a round's reports as bytes. Args: head (the round's name), tickets (whether each has one). Raises:
    InvalidInput: a round beyond the 255th has none."""
    return BatchForm(head, round.index + 1, layout_of(round).bytes, tickets)


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

    def some(self, who: Bools) -> Block:
        """The reports of these senders, a mask (n,)."""
        return self.of(np.flatnonzero(who))

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

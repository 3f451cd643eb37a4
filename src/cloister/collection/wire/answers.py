"""A user's answer of one round as bytes: what is in a report besides her number. NumPy and attrs only.

The reports of a question are packed: their columns side by side, in a fixed number of bytes. A column is one unsigned
integer per report, or a row of them; little-endian. The columns of a round are derived from its reports for zero users,
so that no component declares them.

An answer has a *slot* for each drawing of the round (``core.shuffling.roles``), in their order: of a drawing's
questions a user answers at most one. A question's *body* is its report as ``ReportType.body`` packs it (under Shuffled
trust, all of its messages, one after the other); a slot is as long as the longest body among its questions, and what a
shorter one leaves is zero. Under Local trust everybody can work out from a user's number which question she is asked,
so the slot says nothing of it; a user who is asked none sends zeros. Under Shuffled trust she draws the question
herself, and the slot begins with its number (u16, from 0), or with ``NOTHING``.

So all answers of a round have one length, and nothing in an answer depends on a row but through the randomisers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from cloister.core.budget import Share
from cloister.core.encoding import OwnedReport, encode_lattice
from cloister.core.errors import InvalidInput
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng, unit_floats
from cloister.core.shuffling import messages, roles
from cloister.core.trust import Shuffled
from cloister.core.types import AnyArray, Bools, Ids, Ints

STAMPED = "question"
"""Column, and attribute, of reports that repeat the stamp of the channel that they answer."""

Packed = NDArray[np.uint8]
"""(n, bytes): the columns of n reports or messages, side by side."""


@final
@attrs.frozen
class Column:
    """A column of a report. Args: name, dtype (unsigned, little-endian), width (numbers per report; None: a scalar)."""

    name: str
    dtype: str
    width: int | None

    @property
    def bytes(self) -> int:
        """Bytes per report."""
        return np.dtype(self.dtype).itemsize * (1 if self.width is None else self.width)

    def unpacked(self, data: Packed) -> AnyArray:
        """Numbers (n,) or (n, width) in native byte order, from their bytes in a file or record."""
        values = np.ascontiguousarray(data).view(np.dtype(self.dtype))
        values = values.reshape(-1) if self.width is None else values
        return values.astype(values.dtype.newbyteorder("="), copy=False)


@final
@attrs.frozen
class ReportType:
    """The form of one question's reports. Args: load (builds a report from columns), columns (in order), stamp (of the
    channel, the same number in the column ``question`` of all its reports; None: they have no such column)."""

    load: Any
    columns: tuple[Column, ...]
    stamp: int | None = None

    @property
    def bytes(self) -> int:
        """Bytes per report."""
        return sum(column.bytes for column in self.columns)

    @property
    def record(self) -> np.dtype[Any]:
        """A packed report as one value: NumPy moves whole numbers of it, not single bytes."""
        return np.dtype([(c.name, c.dtype, () if c.width is None else (c.width,)) for c in self.columns])

    @property
    def places(self) -> list[tuple[Column, slice]]:
        """Every column, with its byte range in a packed report."""
        ends = np.cumsum([0, *(column.bytes for column in self.columns)]).tolist()
        return [(column, slice(*ends)) for column, ends in zip(self.columns, pairwise(ends), strict=True)]

    def packed(self, columns: Mapping[str, AnyArray]) -> Packed:
        """Pack columns of n entries side by side: (n, bytes)."""
        sent = np.empty(len(columns[self.columns[0].name]), self.record)
        for column in self.columns:
            sent[column.name] = columns[column.name]
        return sent.view(np.uint8).reshape(-1, self.bytes)

    def unpacked(self, records: Packed) -> dict[str, AnyArray]:
        """The inverse of ``packed``."""
        return {column.name: column.unpacked(records[:, place]) for column, place in self.places}

    @property
    def body(self) -> ReportType:
        """The same without the stamp, which the name of the round implies."""
        left_out = () if self.stamp is None else (STAMPED,)
        return ReportType(self.load, tuple(c for c in self.columns if c.name not in left_out))

    def stamps(self, count: int) -> dict[str, AnyArray]:
        """The column that ``body`` leaves out, for so many reports; nothing if there is none."""
        return {} if self.stamp is None else {STAMPED: np.broadcast_to(np.uint64(self.stamp), count)}


@lru_cache(maxsize=4)
def report_types(round: Round[Any]) -> tuple[ReportType, ...]:
    """The report type of each question; under Shuffled trust, that of one message, private number included. Raises:
    InvalidInput: some report cannot be sent."""
    nobody = round.domain.snap(np.empty((0, round.domain.dimension))), np.empty(0, np.uint64)
    reports = encode_lattice(round, *nobody, NoiseRng.secret())
    left_out = () if round.trust is Shuffled else ("users",)
    return tuple(type_of(number, report, left_out) for number, report in enumerate(reports))


def type_of(number: int, report: Any, left_out: tuple[str, ...]) -> ReportType:
    """The type of a question's report. Args: left_out (columns that are not sent). Raises: InvalidInput: the report
    cannot be sent."""
    if not (hasattr(report, "columns") and hasattr(type(report), "load")):
        raise InvalidInput(
            f"the reports of question {number + 1} cannot be sent: {type(report).__name__} lacks columns() or load()"
        )
    columns = list[Column]()
    for name, values in report.columns().items():
        if values.dtype.kind != "u" or values.ndim not in (1, 2):
            raise InvalidInput(
                f"column '{name}' of question {number + 1} has type {values.dtype}: give 1-d or 2-d unsigned integers"
            )
        if name not in left_out:
            width = values.shape[1] if values.ndim == 2 else None
            columns.append(Column(name, values.dtype.newbyteorder("<").str, width))
    stamp = getattr(report, STAMPED, None) if Column(STAMPED, "<u8", None) in columns else None
    return ReportType(type(report).load, tuple(columns), stamp if isinstance(stamp, int) else None)


NUMBER = np.dtype("<u2")
NOTHING = 2**16 - 1
"""Number of the question in a slot of a user who is asked none. No round has so many questions."""


@final
@attrs.frozen
class AnswerSlot:
    """The place of one drawing. Args: questions (their numbers, ascending), start, bytes (number included)."""

    questions: tuple[int, ...]
    start: int
    bytes: int

    @property
    def place(self) -> slice:
        """Its bytes in an answer."""
        return slice(self.start, self.start + self.bytes)


@final
@attrs.frozen
class Body:
    """What one question's answer is. Args: kind (of its reports, or messages), many (messages; 1 under Local trust),
    start (its first byte in an answer), share (of the users who are asked)."""

    kind: ReportType
    many: int
    start: int
    share: Share | None

    @property
    def bytes(self) -> int:
        """Bytes of the body."""
        return self.many * self.kind.body.bytes

    def report(self, users: Ids, bodies: Packed) -> Any:
        """The report of users (n,) with these bodies (n, bytes), under Local trust. Raises: Refused: ``load`` takes no
        such report."""
        said = self.kind.body.unpacked(bodies)
        return self.kind.load({"users": users, **self.kind.stamps(len(users)), **said})


@final
@attrs.frozen(eq=False)
class AnswerLayout:
    """Where everything stands in the answers of a round.

    Args: slots (one per drawing, in order), bodies (one per question), bytes (A, of an answer), numbered (whether slots
    begin with the number of the question: under Shuffled trust).
    """

    slots: tuple[AnswerSlot, ...]
    bodies: tuple[Body, ...]
    bytes: int
    numbered: bool

    def asked(self, users: Ids) -> list[Ints]:
        """For each slot, the question that each user (n,) is asked there, -1 for none: public, under Local trust."""
        return [self._asked(slot, users) for slot in self.slots]

    def who(self, users: Ids) -> Iterator[Bools]:
        """For each question, which users (n,) are asked it; under Local trust."""
        asked = {j: found for slot, found in zip(self.slots, self.asked(users), strict=True) for j in slot.questions}
        for j in range(len(self.bodies)):
            yield asked[j] == j

    def sound(self, users: Ids, answers: Packed) -> Bools:
        """Which answers (n, A) leave zeros where their users (n,) are asked nothing; under Local trust. Whether what
        stands elsewhere is possible, ``absorb`` says."""
        good = np.ones(len(users), bool)
        for slot, asked in zip(self.slots, self.asked(users), strict=True):
            lengths = np.array([*(self.bodies[j].bytes for j in slot.questions), 0])
            which = np.searchsorted(slot.questions, asked) if len(slot.questions) > 1 else np.zeros(len(users), int)
            which[asked < 0] = len(slot.questions)
            for number in np.flatnonzero(lengths < slot.bytes).tolist():
                mine = np.flatnonzero(which == number)
                rest = answers[mine, slot.start + int(lengths[number]) : slot.start + slot.bytes]
                good[mine[rest.any(axis=1)]] = False
        return good

    def empty(self, users: int) -> Packed:
        """Answers (n, A) of users who are asked nothing."""
        answers = np.zeros((users, self.bytes), np.uint8)
        for slot in self.slots if self.numbered else ():
            answers[:, slot.start : slot.start + NUMBER.itemsize] = _number(NOTHING)
        return answers

    def put(self, answers: Packed, question: int, rows: Ints | slice, bodies: Packed) -> None:
        """Write the bodies (m, bytes) of a question into the answers at these positions."""
        body = self.bodies[question]
        if self.numbered:
            answers[rows, body.start - NUMBER.itemsize : body.start] = _number(question)
        answers[rows, body.start : body.start + body.bytes] = bodies

    def fill(self, answers: Packed, drawn: tuple[OwnedReport, ...]) -> None:
        """Write what users (n,) say, one part per question, into their ``empty`` answers (n, A)."""
        for question, said in enumerate(drawn):
            columns, rows, body = said.report.columns(), said.rows, self.bodies[question]
            if "users" in columns:  # the report's own order may differ from that of the answer
                rows = np.empty_like(rows)
                rows[np.argsort(columns["users"], kind="stable")] = said.rows[np.argsort(said.numbers, kind="stable")]
            who = slice(None) if np.array_equal(rows, np.arange(len(answers))) else rows
            self.put(answers, question, who, body.kind.body.packed(columns).reshape(len(rows), body.bytes))

    def parts(self, users: Ids, answers: Packed) -> Iterator[tuple[Body, Ints | slice, Packed]]:
        """Yield, for each question in order: its body, the positions of the users (n,) who answer it, and their bodies
        (m, bytes). Under Local trust; the answers are ``sound``."""
        for body, mine in zip(self.bodies, self.who(users), strict=True):
            rows: Ints | slice = slice(None) if mine.all() else np.flatnonzero(mine)
            yield body, rows, answers[rows, body.start : body.start + body.bytes]

    def reports(self, users: Ids, answers: Packed) -> tuple[Any, ...]:
        """Sound answers (n, A) of users (n,) to one report per question, under Local trust. Whether they are possible,
        ``absorb`` checks. Raises: Refused: ``load`` takes no such report."""
        return tuple(body.report(users[rows], mine) for body, rows, mine in self.parts(users, answers))

    def _asked(self, slot: AnswerSlot, users: Ids) -> Ints:
        shares = [self.bodies[j].share for j in slot.questions]
        if shares[0] is None:  # a question for everybody is alone in its drawing
            return np.full(len(users), slot.questions[0])
        chosen = [(share.low, share.high, j) for share, j in zip(shares, slot.questions, strict=True) if share]
        lows, highs, numbers = (np.array(some) for some in zip(*sorted(chosen), strict=True))
        u = unit_floats(shares[0].rng.of_users(users))
        at = np.searchsorted(lows, u, side="right") - 1
        return np.where((at >= 0) & (u < highs[at]), numbers[at], -1)


@lru_cache(maxsize=4)
def layout_of(round: Round[Any]) -> AnswerLayout:
    """The layout of a round's answers. Raises: InvalidInput: some report cannot be sent."""
    kinds, numbered = report_types(round), round.trust is Shuffled
    head, at = NUMBER.itemsize * numbered, 0
    many = [messages(part) if numbered else 1 for part in round.parts]
    slots, bodies = list[AnswerSlot](), dict[int, Body]()
    for questions in roles(round):
        room = max(many[j] * kinds[j].body.bytes for j in questions)
        slots.append(AnswerSlot(tuple(sorted(questions)), at, head + room))
        for j in questions:
            bodies[j] = Body(kinds[j], many[j], at + head, round.parts[j].user_share)
        at += head + room
    return AnswerLayout(tuple(slots), tuple(bodies[j] for j in range(len(kinds))), at, numbered)


def _number(question: int) -> Packed:
    return np.frombuffer(np.array([question], NUMBER).tobytes(), np.uint8)

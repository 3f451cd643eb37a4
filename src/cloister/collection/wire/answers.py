"""Binary form of a user's answer of one round, a report without her number. Needs NumPy and attrs only.

The reports of a question are packed: their columns side by side, in a fixed number of bytes. A column is one unsigned
integer per report, or a row of them; little-endian. The columns of a round are derived from its reports for zero users,
so that no component declares them.

An answer has a *slot* for each drawing of the round (``core.shuffling.roles``), in their order: of a drawing's
questions a user answers at most one. A question's *body* is its report as ``ReportType.body`` packs it (under Shuffled
trust, all of its messages, one after the other); a slot is as long as the longest body among its questions, and shorter
ones are padded with zeros. Under Local trust a user's number tells everybody which question she is asked, so the slot
does not repeat it; a user who is asked none sends zeros. Under Shuffled trust she draws the question herself, and the
slot begins with its number (u16, from 0), or with ``NOTHING``.

So all answers of a round have one length, and depend on a row through the randomisers only.
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
"""Column, and attribute, of reports that repeat their channel's stamp."""

Packed = NDArray[np.uint8]
"""Array (n, bytes): columns of n reports or messages, side by side."""


@final
@attrs.frozen
class Column:
    """Column of a report: name, dtype (unsigned, little-endian) and width (numbers per report; None: a scalar)."""

    name: str
    dtype: str
    width: int | None

    @property
    def bytes(self) -> int:
        """Bytes per report."""
        return np.dtype(self.dtype).itemsize * (1 if self.width is None else self.width)

    def unpack(self, data: Packed) -> AnyArray:
        """Return numbers (n,) or (n, width) in native byte order from their bytes."""
        values = np.ascontiguousarray(data).view(np.dtype(self.dtype))
        values = values.reshape(-1) if self.width is None else values
        return values.astype(values.dtype.newbyteorder("="), copy=False)


@final
@attrs.frozen
class ReportType:
    """Binary form of one question's reports.

    Args:
        load: function that builds a report from columns.
        columns: columns, in order.
        stamp: the channel's stamp, which fills the column ``question`` of all its reports; None: no such column.
    """

    load: Any
    columns: tuple[Column, ...]
    stamp: int | None = None

    @property
    def bytes(self) -> int:
        """Bytes per report."""
        return sum(column.bytes for column in self.columns)

    @property
    def record(self) -> np.dtype[Any]:
        """Type of a packed report: NumPy then moves whole numbers, not single bytes."""
        return np.dtype([(c.name, c.dtype, () if c.width is None else (c.width,)) for c in self.columns])

    @property
    def places(self) -> list[tuple[Column, slice]]:
        """Columns, with their byte ranges in a packed report."""
        ends = np.cumsum([0, *(column.bytes for column in self.columns)]).tolist()
        return [(column, slice(*ends)) for column, ends in zip(self.columns, pairwise(ends), strict=True)]

    def pack(self, columns: Mapping[str, AnyArray]) -> Packed:
        """Pack columns of n entries side by side: (n, bytes)."""
        records = np.empty(len(columns[self.columns[0].name]), self.record)
        for column in self.columns:
            records[column.name] = columns[column.name]
        return records.view(np.uint8).reshape(-1, self.bytes)

    def unpack(self, records: Packed) -> dict[str, AnyArray]:
        """Invert ``pack``."""
        return {column.name: column.unpack(records[:, place]) for column, place in self.places}

    @property
    def body(self) -> ReportType:
        """Form without the stamp, which the name of the round implies."""
        omitted = () if self.stamp is None else (STAMPED,)
        return ReportType(self.load, tuple(c for c in self.columns if c.name not in omitted))

    def stamps(self, count: int) -> dict[str, AnyArray]:
        """Return the column that ``body`` omits, for ``count`` reports, or an empty dictionary."""
        return {} if self.stamp is None else {STAMPED: np.broadcast_to(np.uint64(self.stamp), count)}


@lru_cache(maxsize=4)
def report_types(round: Round[Any]) -> tuple[ReportType, ...]:
    """Return the report type of each question; under Shuffled trust, of one message with its private number.

    Raises: InvalidInput: some report cannot be sent.
    """
    nobody = round.domain.snap(np.empty((0, round.domain.dimension))), np.empty(0, np.uint64)
    reports = encode_lattice(round, *nobody, NoiseRng.secret())
    omitted = () if round.trust is Shuffled else ("users",)
    return tuple(type_of(number, report, omitted) for number, report in enumerate(reports))


def type_of(number: int, report: Any, omitted: tuple[str, ...]) -> ReportType:
    """Return the type of a question's report without the omitted columns.

    Raises: InvalidInput: the report cannot be sent.
    """
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
        if name not in omitted:
            width = values.shape[1] if values.ndim == 2 else None
            columns.append(Column(name, values.dtype.newbyteorder("<").str, width))
    stamp = getattr(report, STAMPED, None) if Column(STAMPED, "<u8", None) in columns else None
    return ReportType(type(report).load, tuple(columns), stamp if isinstance(stamp, int) else None)


NUMBER = np.dtype("<u2")
NOTHING = 2**16 - 1
"""Question number in the slot of a user who is asked none; no round has so many questions."""


@final
@attrs.frozen
class AnswerSlot:
    """Place of one drawing: its questions, ascending, its first byte and its length, question number included."""

    questions: tuple[int, ...]
    start: int
    bytes: int

    @property
    def place(self) -> slice:
        """Bytes of an answer."""
        return slice(self.start, self.start + self.bytes)


@final
@attrs.frozen
class Body:
    """Binary form of one question's answer.

    Args:
        kind: type of its reports, or messages.
        messages: number of messages; 1 under Local trust.
        start: first byte in an answer.
        share: share of the users who are asked; None: all.
    """

    kind: ReportType
    messages: int
    start: int
    share: Share | None

    @property
    def bytes(self) -> int:
        """Length of the body, in bytes."""
        return self.messages * self.kind.body.bytes

    def report(self, users: Ids, bodies: Packed) -> Any:
        """Return the report of users (n,) with bodies (n, bytes), under Local trust. Raises: Refused: as ``load``."""
        columns = self.kind.body.unpack(bodies)
        return self.kind.load({"users": users, **self.kind.stamps(len(users)), **columns})


@final
@attrs.frozen(eq=False)
class AnswerLayout:
    """Layout of a round's answers.

    Args:
        slots: slots, one per drawing, in order.
        bodies: bodies, one per question.
        bytes: A, length of an answer.
        numbered: whether slots begin with the question's number (under Shuffled trust).
    """

    slots: tuple[AnswerSlot, ...]
    bodies: tuple[Body, ...]
    bytes: int
    numbered: bool

    def questions_of(self, users: Ids) -> list[Ints]:
        """Return, per slot, the question that each user (n,) is asked, or -1: public, under Local trust."""
        return [self._questions_of(slot, users) for slot in self.slots]

    def asked_masks(self, users: Ids) -> Iterator[Bools]:
        """Yield, per question, which users (n,) are asked it; under Local trust."""
        slot_questions = {
            j: questions
            for slot, questions in zip(self.slots, self.questions_of(users), strict=True)
            for j in slot.questions
        }
        for j in range(len(self.bodies)):
            yield slot_questions[j] == j

    def well_padded(self, users: Ids, answers: Packed) -> Bools:
        """Return which answers (n, A) are zero wherever their users (n,) are asked nothing; under Local trust.

        Whether the other bytes are a possible answer, ``absorb`` checks.
        """
        good = np.ones(len(users), bool)
        for slot, questions in zip(self.slots, self.questions_of(users), strict=True):
            lengths = np.array([*(self.bodies[j].bytes for j in slot.questions), 0])
            which = np.searchsorted(slot.questions, questions) if len(slot.questions) > 1 else np.zeros(len(users), int)
            which[questions < 0] = len(slot.questions)
            for number in np.flatnonzero(lengths < slot.bytes).tolist():
                rows = np.flatnonzero(which == number)
                padding = answers[rows, slot.start + int(lengths[number]) : slot.start + slot.bytes]
                good[rows[padding.any(axis=1)]] = False
        return good

    def empty(self, users: int) -> Packed:
        """Return answers (n, A) of users who are asked nothing."""
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
        """Write the drawn reports of users (n,), one part per question, into their ``empty`` answers (n, A)."""
        for question, part in enumerate(drawn):
            columns, rows, body = part.report.columns(), part.rows, self.bodies[question]
            if "users" in columns:  # the report's own order may differ from that of the answer
                rows = np.empty_like(rows)
                rows[np.argsort(columns["users"], kind="stable")] = part.rows[np.argsort(part.numbers, kind="stable")]
            place = slice(None) if np.array_equal(rows, np.arange(len(answers))) else rows
            self.put(answers, question, place, body.kind.body.pack(columns).reshape(len(rows), body.bytes))

    def parts(self, users: Ids, answers: Packed) -> Iterator[tuple[Body, Ints | slice, Packed]]:
        """Yield, per question: its body, the positions of the users (n,) who answer it, and their bodies (m, bytes).

        Under Local trust; the answers must be ``well_padded``.
        """
        for body, mask in zip(self.bodies, self.asked_masks(users), strict=True):
            rows: Ints | slice = slice(None) if mask.all() else np.flatnonzero(mask)
            yield body, rows, answers[rows, body.start : body.start + body.bytes]

    def reports(self, users: Ids, answers: Packed) -> tuple[Any, ...]:
        """Return one report per question from ``well_padded`` answers (n, A) of users (n,), under Local trust.

        ``absorb`` checks whether they are possible. Raises: Refused: as ``load``.
        """
        return tuple(body.report(users[rows], bodies) for body, rows, bodies in self.parts(users, answers))

    def _questions_of(self, slot: AnswerSlot, users: Ids) -> Ints:
        shares = [self.bodies[j].share for j in slot.questions]
        if shares[0] is None:  # a question for everybody is alone in its drawing
            return np.full(len(users), slot.questions[0])
        chosen = [(share.low, share.high, j) for share, j in zip(shares, slot.questions, strict=True) if share]
        lows, highs, numbers = (np.array(column) for column in zip(*sorted(chosen), strict=True))
        u = unit_floats(shares[0].rng.of_users(users))
        at = np.searchsorted(lows, u, side="right") - 1
        return np.where((at >= 0) & (u < highs[at]), numbers[at], -1)


@lru_cache(maxsize=4)
def layout_of(round: Round[Any]) -> AnswerLayout:
    """Return the layout of a round's answers. Raises: InvalidInput: some report cannot be sent."""
    kinds, numbered = report_types(round), round.trust is Shuffled
    head, at = NUMBER.itemsize * numbered, 0
    counts = [messages(part) if numbered else 1 for part in round.parts]
    slots, bodies = list[AnswerSlot](), dict[int, Body]()
    for questions in roles(round):
        room = max(counts[j] * kinds[j].body.bytes for j in questions)
        slots.append(AnswerSlot(tuple(sorted(questions)), at, head + room))
        for j in questions:
            bodies[j] = Body(kinds[j], counts[j], at + head, round.parts[j].user_share)
        at += head + room
    return AnswerLayout(tuple(slots), tuple(bodies[j] for j in range(len(kinds))), at, numbered)


def _number(question: int) -> Packed:
    return np.frombuffer(np.array([question], NUMBER).tobytes(), np.uint8)

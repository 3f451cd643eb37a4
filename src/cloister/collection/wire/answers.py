"""A user's answer of one round as bytes: what is in a report besides her number. NumPy and attrs only.

An answer has a *slot* for each drawing of the round (``core.shuffling.roles``), in their order: of a drawing's
questions a user answers at most one. A question's *body* is its report as ``ReportType.body`` packs it (under Shuffled
trust, all of its messages, one after the other); a slot is as long as the longest body among its questions, and what a
shorter one leaves is zero. Under Local trust everybody can work out from a user's number which question she is asked,
so the slot says nothing of it; a user who is asked none sends zeros. Under Shuffled trust she draws the question
herself, and the slot begins with its number (u16, from 0), or with ``NOTHING``.

So all answers of a round have one length, and nothing in an answer depends on a row but through the randomisers.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.wire.batches import BatchForm
from cloister.collection.wire.packing import Packed, ReportType, report_types
from cloister.core.budget import Share
from cloister.core.questions import Round
from cloister.core.randomness import unit_floats
from cloister.core.shuffling import messages, roles
from cloister.core.trust import Shuffled
from cloister.core.types import Bools, Ids, Ints

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


def form_of(head: str, round: Round[Any], tickets: bool = False) -> BatchForm:
    """The form of a round's reports as bytes. Args: head (the round's name), tickets (whether each has one). Raises:
    InvalidInput: a round beyond the 255th has none."""
    return BatchForm(head, round.index + 1, layout_of(round).bytes, tickets)

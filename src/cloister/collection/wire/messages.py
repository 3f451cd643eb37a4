"""Messages from users to a shuffler, and from there to a server: the number of a question, and a body of it.

What a user sends is an answer (``answers``), in which her messages stand together, beside her public number: the
envelope, which the shuffler removes. A message itself holds nothing public about her (``core.encoding``).
"""

from __future__ import annotations

from typing import Any, final

import attrs
import numpy as np

from cloister.collection.wire.answers import NOTHING, NUMBER, Body, layout_of
from cloister.collection.wire.packing import Packed
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

"""Messages from users to a shuffler, and from there to a server: one row per message, in Parquet or Arrow.

``question`` is the number of the question that a message answers; the columns of other questions (``columns``) are
null. What a user sends also has a column ``sender``, her public number: the envelope, which the shuffler removes. The
message itself holds nothing public about her (``core.encoding``). The metadata of shuffled files names the shuffle and
the file's place in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from cloister.collection.wire import columns
from cloister.collection.wire.answers import NOTHING, NUMBER, layout_of
from cloister.collection.wire.columns import Packed, by_question, numbers, raw, report_types, valid, with_arrow
from cloister.core.questions import Round
from cloister.core.types import AnyArray, Bools, Ids, Ints

if TYPE_CHECKING:
    import pyarrow as pa

SENDER, QUESTION = "sender", "question"
SHUFFLE_KEY, FILE_KEY = b"cloister.shuffle", b"cloister.file"
NOBODY = 2**64 - 1
"""Sender number of a message without one. No plan has a user of this number."""


@final
@attrs.frozen(eq=False)
class Messages:
    """A batch of messages.

    Args:
        questions: (m,) uint16.
        bodies: (m, ``widest``) contents as ``ReportType.packed`` has them, padded with zeros.
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
        kind = report_types(round)[question]
        return kind.load(kind.unpacked(self.bodies[self.questions == question, : kind.bytes]))


def widest(round: Round[Any]) -> int:
    """Bytes of the longest message."""
    return max(kind.bytes for kind in report_types(round))


def schema(round: Round[Any], plan_hash: str, senders: bool) -> pa.Schema:
    """The schema of every file of a plan's messages. Args: senders (whether there is a column of senders)."""
    pa = with_arrow()
    envelope = {SENDER: pa.uint64()} if senders else {}
    return columns.schema(round, plan_hash, {**envelope, QUESTION: pa.uint16()})


def to_batch(messages: Messages, round: Round[Any], schema: pa.Schema) -> pa.RecordBatch:
    """Messages as rows of a schema from ``schema``."""
    pa = with_arrow()
    arrays = [] if messages.senders is None else [pa.array(messages.senders, pa.uint64())]
    arrays.append(pa.array(messages.questions, pa.uint16()))
    for j, kind in enumerate(report_types(round)):
        rows = np.flatnonzero(messages.questions == j)
        mine = messages.bodies if len(rows) == len(messages) else messages.bodies[rows]
        arrays += kind.to_arrow(mine[:, : kind.bytes], rows, len(messages))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def from_batch(batch: pa.RecordBatch, round: Round[Any]) -> tuple[Messages, Bools]:
    """Rows of a checked ``schema`` as messages, and a mask (m,) of those that have the form of one.

    They fill exactly the columns of their question, and their private number, if any, is one that is asked that
    question. Whether the answer itself is possible is checked by ``absorb``.
    """
    named = batch.schema.names[0] == SENDER
    senders = numbers(batch.column(0), NOBODY) if named else None
    wide = numbers(batch.column(int(named)), len(round.parts))
    good, bodies = wide < len(round.parts), np.zeros((len(wide), widest(round)), np.uint8)
    for j, (part, (kind, arrays)) in enumerate(zip(round.parts, by_question(batch, round), strict=True)):
        mine = wide == j
        for (column, place), array in zip(kind.places, arrays, strict=True):
            good &= valid(array) == mine
            if mine.any():
                bodies[mine, place] = raw(array, column.bytes)[mine]
            if part.user_share is not None and column.name == "users":
                good[mine] &= part.user_share.holds(column.unpacked(bodies[mine, place]).astype(np.uint64))
    return Messages(wide.astype(np.uint16), bodies, senders), good


def from_answers(users: Ids, answers: Packed, round: Round[Any]) -> tuple[Messages, Bools, Ints]:
    """Answers (n, A) of senders (n,) as messages, those of each answer together; a mask (m,) of those that have the
    form of one, as in ``from_batch``; and the positions (m,) of the answers that they are from. A slot without that
    form becomes one message, which has not."""
    layout, sent = layout_of(round), list[tuple[Messages, Bools, Ints]]()
    for slot in layout.slots:
        mine = np.ascontiguousarray(answers[:, slot.place])
        said, left = mine[:, : NUMBER.itemsize].copy().view(NUMBER)[:, 0], mine[:, NUMBER.itemsize :]
        for j in slot.questions:
            rows, body = np.flatnonzero(said == j), layout.bodies[j]
            columns = body.kind.body.unpacked(
                left[rows, : body.bytes].reshape(len(rows) * body.many, body.kind.body.bytes)
            )
            good = ~left[rows, body.bytes :].any(axis=1).repeat(body.many)
            if body.share is not None and "users" in columns:
                good &= body.share.holds(columns["users"])
            bodies = np.zeros((len(good), widest(round)), np.uint8)
            bodies[:, : body.kind.bytes] = body.kind.packed({**columns, **body.kind.stamps(len(good))})
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


def shuffle_of(metadata: Mapping[bytes, bytes]) -> tuple[str, int, int] | None:
    """Name of a file's shuffle, the file's number in it, and the number of files; None if the metadata lacks them."""
    name, place = metadata.get(SHUFFLE_KEY, b""), metadata.get(FILE_KEY, b"").split(b"/")
    if not name or len(place) != 2 or not all(one.isdigit() and len(one) < 10 for one in place):
        return None
    number, of = int(place[0]), int(place[1])
    return (name.decode("ascii", "replace"), number, of) if 0 <= number < of else None

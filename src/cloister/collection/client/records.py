"""What a person sends, as bytes: this is what her state remembers.

The columns of all questions side by side, each question's as ``wire.columns.report_types`` packs them; zeros where she
is not asked. Who is asked is public under Local trust. Under Shuffled trust she draws it herself: a byte before each
question's messages is 1 if she is asked. That is her secret until she sends it, and says nothing of her row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cloister.collection.wire.columns import Packed, ReportType, report_types
from cloister.collection.wire.messages import Messages, widest
from cloister.collection.wire.reports import asked
from cloister.core.encoding import Owned
from cloister.core.errors import InvalidInput
from cloister.core.questions import Round
from cloister.core.shuffling import messages
from cloister.core.trust import Shuffled
from cloister.core.types import AnyArray, Ids

Records = Packed
"""(n, width): one record per user."""


def record_width(round: Round[Any]) -> int:
    """Bytes of a record."""
    return max(end for _, _, _, end in _places(round))


def to_records(answers: tuple[Owned, ...], users: int, round: Round[Any]) -> Records:
    """One record per user (users, width) from their reports, or from the messages that they send."""
    records = np.zeros((users, record_width(round)), np.uint8)
    for answer, (kind, many, start, end) in zip(answers, _places(round), strict=True):
        columns, rows = answer.report.columns(), answer.rows
        if "users" in columns:  # in whatever order the report has them
            rows = np.empty_like(rows)
            rows[np.argsort(columns["users"], kind="stable")] = answer.rows[np.argsort(answer.numbers, kind="stable")]
        records[rows, start - _stamped(round) : start] = 1
        records[rows, start:end] = kind.packed(columns).reshape(len(rows), many * kind.bytes)
    return records


def to_reports(records: Records, users: Ids, round: Round[Any]) -> tuple[Any, ...]:
    """Records of users (n,) back to one report per question, under Local trust.

    Raises:
        InvalidInput: they have another width than this round's.
    """
    if records.shape != (len(users), record_width(round)):
        raise InvalidInput(f"records of shape {records.shape} are not those of {len(users)} users in this round")
    found = zip(_places(round), asked(round, users), strict=True)
    return tuple(
        kind.load({"users": users[who], **kind.unpacked(records[who, start:end])})
        for (kind, _, start, end), who in found
    )


def to_messages(records: Records, users: Ids, round: Round[Any]) -> Messages:
    """The messages of users (n,), under Shuffled trust: each user's together, in the order of the users."""
    senders, questions, bodies = list[AnyArray](), list[AnyArray](), list[AnyArray]()
    for number, (kind, many, start, end) in enumerate(_places(round)):
        who = np.flatnonzero(records[:, start - 1])
        block = np.zeros((len(who) * many, widest(round)), np.uint8)
        block[:, : kind.bytes] = records[who, start:end].reshape(len(who) * many, kind.bytes)
        senders.append(np.repeat(who, many))
        questions.append(np.full(len(who) * many, number, np.uint16))
        bodies.append(block)
    who = np.concatenate(senders)
    order = np.argsort(who, kind="stable")
    return Messages(np.concatenate(questions)[order], np.concatenate(bodies)[order], users[who[order]])


def _stamped(round: Round[Any]) -> int:
    """Bytes of a record that say whether a question is asked of her, for each."""
    return int(round.trust is Shuffled)


def _places(round: Round[Any]) -> Iterator[tuple[ReportType, int, int, int]]:
    """For each question: its report type, how many a user sends, and which bytes of a record they take (start, end)."""
    end = 0
    for part, kind in zip(round.parts, report_types(round), strict=True):
        many, start = messages(part), end + _stamped(round)
        end = start + many * kind.bytes
        yield kind, many, start, end

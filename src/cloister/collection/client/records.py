"""A user's report of one round as a fixed number of bytes, the form in which her state remembers it.

The columns of all questions stand side by side, packed by ``wire.columns.report_types``; zeros where she is not asked.
Under Local trust, who is asked is public. Under Shuffled trust she draws it herself: one byte before each question's
messages is 1 if she is asked. That byte is secret until she sends the messages, and independent of her row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any

import numpy as np

from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.columns import Packed, ReportType, report_types
from cloister.collection.wire.messages import Messages, widest
from cloister.collection.wire.reports import asked
from cloister.core.encoding import Owned
from cloister.core.errors import InvalidInput
from cloister.core.questions import Round
from cloister.core.shuffling import messages
from cloister.core.trust import Shuffled
from cloister.core.types import Ids

BLOCK = 2**20
"""Bytes of messages that are copied at once."""

Records = Packed
"""(n, width): one record per user."""


def record_width(round: Round[Any]) -> int:
    """Bytes of a record."""
    return max(end for _, _, _, end in _places(round))


def fill(records: Records, answers: tuple[Owned, ...], round: Round[Any]) -> None:
    """Write the reports or messages of users (n,) into their records, which are zeros."""
    for answer, (kind, many, start, end) in zip(answers, _places(round), strict=True):
        columns, rows = answer.report.columns(), answer.rows
        if "users" in columns:  # the report's own order may differ from that of the answer
            rows = np.empty_like(rows)
            rows[np.argsort(columns["users"], kind="stable")] = answer.rows[np.argsort(answer.numbers, kind="stable")]
        who = slice(None) if np.array_equal(rows, np.arange(len(records))) else rows
        records[who, start - _stamped(round) : start] = 1
        records[who, start:end] = kind.packed(columns).reshape(len(rows), many * kind.bytes)


def to_reports(records: Records, users: Ids, round: Round[Any]) -> tuple[Any, ...]:
    """Unpack the records of users (n,) into one report per question, under Local trust. Raises: InvalidInput: the
    records have another width than this round's."""
    if records.shape != (len(users), record_width(round)):
        raise InvalidInput(f"records of shape {records.shape} are not those of {len(users)} users in this round")
    found = zip(_places(round), asked(round, users), strict=True)
    return tuple(
        kind.load({"users": users[who], **kind.unpacked(records[who, start:end])})
        for (kind, _, start, end), who in found
    )


def to_messages(records: Records, users: Ids, round: Round[Any]) -> Messages:
    """The messages of users (n,), under Shuffled trust: grouped by user, in the order of the users."""
    places = list(_places(round))
    sent = np.array([many * (records[:, start - 1] > 0) for _, many, start, _ in places])
    each = sent.sum(axis=0)
    first = np.cumsum(each) - each + np.cumsum(sent, axis=0) - sent
    questions, bodies = np.zeros(each.sum(), np.uint16), np.zeros((each.sum(), widest(round)), np.uint8)
    for number, (kind, many, start, end) in enumerate(places):
        asking, step = np.flatnonzero(sent[number]), max(1, BLOCK // (end - start))
        for low in range(0, len(asking), step):
            who = asking[low : low + step]
            at = (first[number, who, None] + np.arange(many)).ravel()
            to = slice(at[0], at[-1] + 1) if at[-1] - at[0] == len(at) - 1 else at
            questions[to] = number
            bodies[to, : kind.bytes] = records[who, start:end].reshape(len(at), kind.bytes)
    return Messages(questions, bodies, np.repeat(users, each))


def to_answers(records: Records, users: Ids, round: Round[Any]) -> Packed:
    """The records of users (n,) as the answers (n, A) that they send."""
    layout = layout_of(round)
    answers = layout.empty(len(users))
    who: Iterable[Any] = asked(round, users) if not layout.numbered else repeat(None)
    for j, (theirs, (kind, many, start, end)) in enumerate(zip(who, _places(round), strict=False)):
        rows = np.flatnonzero(records[:, start - 1] if theirs is None else theirs)
        packed = records[rows, start:end].reshape(len(rows) * many, kind.bytes)
        layout.put(answers, j, rows, kind.body.packed(kind.unpacked(packed)).reshape(len(rows), layout.bodies[j].bytes))
    return answers


def _stamped(round: Round[Any]) -> int:
    """Bytes before each question's messages that say whether the user is asked it: 1 under Shuffled trust, else 0."""
    return int(round.trust is Shuffled)


def _places(round: Round[Any]) -> Iterator[tuple[ReportType, int, int, int]]:
    """For each question: its report type, the messages per user, and their byte range in a record (start, end)."""
    end = 0
    for part, kind in zip(round.parts, report_types(round), strict=True):
        many, start = messages(part), end + _stamped(round)
        end = start + many * kind.bytes
        yield kind, many, start, end

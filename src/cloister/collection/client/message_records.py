"""A person's messages as bytes: what is remembered of her under Shuffled trust.

For every question a byte, 1 if she is asked it, and the messages of it side by side; zeros where she is not asked. What she is asked
was drawn by her: it is her secret until she sends it, and says nothing of her row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cloister.collection.client.report_records import Records
from cloister.collection.wire.messages import Messages, widest
from cloister.collection.wire.reports import ReportType, report_types
from cloister.core.encoding import Owned
from cloister.core.questions import Round
from cloister.core.shuffling import messages
from cloister.core.types import AnyArray, Ids


def message_width(round: Round[Any]) -> int:
    """Bytes of a record."""
    return sum(size for _, _, _, size in _places(round))


def from_owned(answers: tuple[Owned, ...], users: int, round: Round[Any]) -> Records:
    """One record per user (users, width) from the messages that they send."""
    records = np.zeros((users, message_width(round)), np.uint8)
    for answer, (kind, many, start, size) in zip(answers, _places(round), strict=True):
        columns = answer.report.columns()
        rows = answer.rows
        if "users" in columns:  # in whatever order the report has them
            rows = np.empty_like(rows)
            rows[np.argsort(columns["users"], kind="stable")] = answer.rows[np.argsort(answer.numbers, kind="stable")]
        records[rows, start] = 1
        records[rows, start + 1 : start + size] = kind.packed(columns).reshape(len(rows), many * kind.bytes)
    return records


def to_messages(records: Records, users: Ids, round: Round[Any]) -> Messages:
    """The messages of users (n,): each user's together, in the order of the users."""
    senders, questions, bodies = list[AnyArray](), list[AnyArray](), list[AnyArray]()
    for number, (kind, many, start, size) in enumerate(_places(round)):
        who = np.flatnonzero(records[:, start])
        block = np.zeros((len(who) * many, widest(round)), np.uint8)
        block[:, : kind.bytes] = records[who, start + 1 : start + size].reshape(len(who) * many, kind.bytes)
        senders.append(np.repeat(who, many))
        questions.append(np.full(len(who) * many, number, np.uint16))
        bodies.append(block)
    who = np.concatenate(senders)
    order = np.argsort(who, kind="stable")
    return Messages(np.concatenate(questions)[order], np.concatenate(bodies)[order], users[who[order]])


def _places(round: Round[Any]) -> Iterator[tuple[ReportType, int, int, int]]:
    """For each question what its messages look like, how many a user sends, and where in a record it is: first byte, bytes."""
    start = 0
    for part, kind in zip(round.parts, report_types(round), strict=True):
        many = messages(part)
        size = 1 + many * kind.bytes
        yield kind, many, start, size
        start += size

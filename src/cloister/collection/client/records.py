"""A user's report of one round as a fixed number of bytes, the form in which her state remembers it.

The columns of all questions stand side by side, packed by ``wire.packing.report_types``; zeros where she is not asked.
Under Local trust, who is asked is public. Under Shuffled trust she draws it herself: one byte before each question's
messages is 1 if she is asked. That byte is secret until she sends the messages, and independent of her row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.packing import Packed, ReportType, report_types
from cloister.core.encoding import Owned
from cloister.core.questions import Round
from cloister.core.shuffling import messages
from cloister.core.trust import Shuffled
from cloister.core.types import Ids

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


def to_answers(records: Records, users: Ids, round: Round[Any]) -> Packed:
    """The records of users (n,) as the answers (n, A) that they send."""
    layout = layout_of(round)
    answers = layout.empty(len(users))
    places = list(_places(round))
    who = (records[:, start - 1] for _, _, start, _ in places) if layout.numbered else layout.who(users)
    for j, (theirs, (kind, many, start, end)) in enumerate(zip(who, places, strict=True)):
        rows = np.flatnonzero(theirs)
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

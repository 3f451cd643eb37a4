"""A person's report as bytes: what is remembered of her, and what she would send on her own.

The columns of all questions side by side, as ``wire.reports.report_types`` has them; zeros where she is not asked, which is public.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cloister.collection.wire.reports import Packed, asked, report_types
from cloister.core.errors import InvalidInput
from cloister.core.questions import Round
from cloister.core.types import Ids

Records = Packed
"""(n, width): one record per user."""


def record_width(round: Round[Any]) -> int:
    """Bytes of a record."""
    return sum(kind.bytes for kind in report_types(round))


def to_records(reports: tuple[Any, ...], users: Ids, round: Round[Any]) -> Records:
    """Reports of ascending users (n,) as one record each."""
    records, start = np.zeros((len(users), record_width(round)), np.uint8), 0
    for report, kind in zip(reports, report_types(round), strict=True):
        columns = report.columns()
        records[np.searchsorted(users, columns["users"]), start : start + kind.bytes] = kind.packed(columns)
        start += kind.bytes
    return records


def from_records(records: Records, users: Ids, round: Round[Any]) -> tuple[Any, ...]:
    """Records of users (n,) back to one report per question.

    Raises:
        InvalidInput: they have another width than this round's.
    """
    if records.shape != (len(users), record_width(round)):
        raise InvalidInput(f"records of shape {records.shape} are not those of {len(users)} users in this round")
    reports, start = list[Any](), 0
    for kind, who in zip(report_types(round), asked(round, users), strict=True):
        columns = {"users": users[who], **kind.unpacked(records[who, start : start + kind.bytes])}
        start += kind.bytes
        reports.append(kind.load(columns))
    return tuple(reports)

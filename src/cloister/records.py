"""A person's report as bytes: what is remembered of her, and what she would send on her own.

The columns of all questions side by side, as ``wire.report_types`` has them; zeros where she is not asked, which is public.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.errors import InvalidInput
from cloister.core.questions import Round
from cloister.core.types import AnyArray, Ids
from cloister.core.wire import asked, report_types

Records = NDArray[np.uint8]
"""(n, width): one record per user."""


def record_width(round: Round[Any]) -> int:
    """Bytes of a record."""
    return sum(kind.bytes for kind in report_types(round))


def to_records(reports: tuple[Any, ...], users: Ids, round: Round[Any]) -> Records:
    """Reports of ascending users (n,) as one record each."""
    records, start = np.zeros((len(users), record_width(round)), np.uint8), 0
    for report, kind in zip(reports, report_types(round), strict=True):
        columns = report.columns()
        rows = np.searchsorted(users, columns["users"])
        for column in kind.columns:
            values = np.ascontiguousarray(columns[column.name], np.dtype(column.dtype))
            records[rows, start : start + column.bytes] = values.reshape(len(rows), column.width or 1).view(np.uint8)
            start += column.bytes
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
        columns: dict[str, AnyArray] = {"users": users[who]}
        for column in kind.columns:
            part = np.ascontiguousarray(records[who, start : start + column.bytes]).view(np.dtype(column.dtype))
            values = part.reshape(-1) if column.width is None else part
            columns[column.name] = values.astype(values.dtype.newbyteorder("="), copy=False)
            start += column.bytes
        reports.append(kind.load(columns))
    return tuple(reports)

"""Reports and messages as the records that a state remembers."""

from __future__ import annotations

from typing import Any

import numpy as np

from cloister.collection.client.records import Records, fill, record_width
from cloister.core.encoding import Owned
from cloister.core.questions import Round


def to_records(answers: tuple[Owned, ...], users: int, round: Round[Any]) -> Records:
    """One record per user (users, width)."""
    records = np.zeros((users, record_width(round)), np.uint8)
    fill(records, answers, round)
    return records

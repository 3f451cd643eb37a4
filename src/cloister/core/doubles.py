"""Numbers as doubles, whatever their size: Python's whole numbers may be beyond all of them."""

from __future__ import annotations

import math
from typing import Any


def as_float(value: Any) -> float:
    """Convert a number to a double; one beyond all doubles (2^1024 and more) becomes infinite, with its sign, as
    '1e400' does in every other way to write it.

    Raises: TypeError, ValueError: it is no number.
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf

"""Numbers as doubles, whatever their size: Python's whole numbers may be beyond all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral
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


def beyond_doubles(value: Any) -> bool:
    """Return whether a whole number in it, however deep in lists and mappings, is beyond all doubles: arithmetic fails
    on it, and Python makes no text of one with more than 4,300 digits, not even for an error."""
    if isinstance(value, Mapping):
        return any(map(beyond_doubles, (*value, *value.values())))
    if isinstance(value, list | tuple):
        return any(map(beyond_doubles, value))
    return isinstance(value, Integral) and math.isinf(as_float(value))

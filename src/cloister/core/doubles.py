"""Conversion of numbers to doubles, which Python's whole numbers may exceed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral
from typing import Any


def as_float(value: Any) -> float:
    """Convert a number to a double, infinite if it is beyond all doubles (2^1024 and more), as '1e400' is.

    Raises:
        TypeError, ValueError: it is no number.
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def beyond_doubles(value: Any) -> bool:
    """Return True if a whole number in it, however deep in lists and mappings, is beyond all doubles.

    Arithmetic fails on such a number, and Python makes no text of more than 4,300 digits, not even for an error.
    """
    if isinstance(value, Mapping):
        return any(map(beyond_doubles, (*value, *value.values())))
    if isinstance(value, list | tuple):
        return any(map(beyond_doubles, value))
    return isinstance(value, Integral) and math.isinf(as_float(value))

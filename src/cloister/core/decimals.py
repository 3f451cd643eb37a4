"""Doubles as text, with as many digits as the width that matters asks for."""

from __future__ import annotations

import math


def resolved(value: float, width: float, digits: int = 4, least: int | None = None) -> str:
    """Return a value as text, with so many digits of the width that matters: of a spread, a range, or a difference.

    Args: value, width (positive, or the value alone matters), digits, least (digits of the value; None: as many).
    """
    if not math.isfinite(value) or not value:
        return f"{value:g}"
    more = 1 + magnitude(value) - magnitude(width) if math.isfinite(width) and width > 0 else 0
    many = max(digits if least is None else least, digits - 1 + more)
    return f"{float(f'{value:.{min(many, 17)}g}'):,.{max(10, min(many, 17))}g}"


def magnitude(value: float) -> int:
    """Return the place of a value's first digit: 0 from 1 to 10."""
    return math.floor(math.log10(abs(value)))

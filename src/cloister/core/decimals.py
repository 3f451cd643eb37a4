"""Doubles as text, with as many digits as the width that matters asks for."""

from __future__ import annotations

import math


def resolved(value: float, width: float, digits: int = 4, least_digits: int | None = None) -> str:
    """Return a value as text, with so many digits of a width, such as a spread or a range.

    Args: width (positive, or the value alone matters), digits, least_digits (of the value; None: as many).
    """
    if not math.isfinite(value) or not value:
        return f"{value:g}"
    extra_digits = 1 + magnitude(value) - magnitude(width) if math.isfinite(width) and width > 0 else 0
    all_digits = max(digits if least_digits is None else least_digits, digits - 1 + extra_digits)
    return f"{float(f'{value:.{min(all_digits, 17)}g}'):,.{max(10, min(all_digits, 17))}g}"


def magnitude(value: float) -> int:
    """Return the place of a value's first digit: 0 from 1 to 10."""
    return math.floor(math.log10(abs(value)))

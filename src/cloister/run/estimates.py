"""Released figures with their standard errors, as text.

Results in notebooks: HTML in which every text is escaped, since names of columns are other people's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, final

import attrs
import numpy as np

from cloister.core.domains import Ball, Box
from cloister.core.types import Floats


def table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """A table of texts. Args: head (one per column), rows (cells), caption (above)."""
    cells = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{names}</tr></thead><tbody>{cells}</tbody></table>"


def promise(headline: str, text: str, alarm: bool) -> str:
    """A privacy statement: its headline, with the whole text folded away. Args: alarm (nobody is protected)."""
    style = ' style="color: #a01010"' if alarm else ""
    return (
        f"<p><strong{style}>{escape(headline)}</strong></p><details><summary>Privacy statement</summary>"
        f'<pre style="white-space: pre-wrap">{escape(text)}</pre></details>'
    )


@final
@attrs.frozen
class Estimate:
    """A figure and its standard error. Args: error, None if nobody stated one."""

    value: float
    error: float | None = None

    @property
    def text(self) -> str:
        """With as many digits as the error lets mean something."""
        if self.error is None or not math.isfinite(self.error):
            return self.figure
        if self.error <= 0:
            return f"{self.figure} \u00b1 0"
        return f"{self.figure} \u00b1 {_rounded(self.error, self._digits)}"

    @property
    def figure(self) -> str:
        """The value alone, to two digits of the error; without one to four of its own."""
        if self.error is None or not math.isfinite(self.error):
            return f"{self.value:.4g}"
        return resolved(self.value, 1.0, 2, 6) if self.error <= 0 else _rounded(self.value, self._digits)

    @property
    def _digits(self) -> int:
        """Decimals, or if negative zeros before the point, that leave two digits of a positive error."""
        return 1 - math.floor(math.log10(self.error or 1.0))


def resolved(value: float, width: float, digits: int = 4, least: int | None = None) -> str:
    """A value as text, with so many digits of the width that matters: of a spread, a range, or a difference.

    Args: value, width (positive, or the value alone matters), digits, least (digits of the value; None: as many).
    """
    if not math.isfinite(value) or not value:
        return f"{value:g}"
    more = 1 + _magnitude(value) - _magnitude(width) if math.isfinite(width) and width > 0 else 0
    many = max(digits if least is None else least, digits - 1 + more)
    return f"{float(f'{value:.{min(many, 17)}g}'):,.{max(10, min(many, 17))}g}"


def _magnitude(value: float) -> int:
    """Place of its first digit: 0 from 1 to 10."""
    return math.floor(math.log10(abs(value)))


def told_apart(values: Sequence[float]) -> list[str]:
    """Values as texts, with as many digits as tell them apart."""
    return [resolved(value, max(values) - min(values)) for value in values]


def numbers(given: Any) -> Floats:
    """A released table of finite numbers; empty if a plugin means something else by its name."""
    try:
        found = np.asarray(() if given is None else given, np.float64)
    except (TypeError, ValueError):
        return np.empty(0)
    return found if found.ndim and np.isfinite(found).all() else np.empty(0)


def table_in(details: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> Floats | None:
    """A released table of this shape, or None: a plugin's method may mean something else by the name."""
    found = numbers(details.get(name))
    return found if found.shape == shape else None


def center_texts(centers: Floats, details: Mapping[str, Any], domain: Box | Ball) -> list[list[str]]:
    """Centres (k, d) as text: to two digits of the standard errors that a result's details state, or else to six."""
    errors = table_in(details, "centers_error", centers.shape)
    if errors is None:
        widths = _widths(centers, details, domain)
        return [
            [resolved(value, width, 6) for value, width in zip(center, widths, strict=True)]
            for center in meant(centers, details, domain).tolist()
        ]
    return [
        [Estimate(float(value), float(error)).figure for value, error in zip(*pair, strict=True)]
        for pair in zip(centers, errors, strict=True)
    ]


def meant(centers: Floats, details: Mapping[str, Any], domain: Box | Ball) -> Floats:
    """Centres (k, d), where nobody stated an error, as people read them: to a millionth of each column's public bounds,
    or of the frame that was released in them. What is below is rounding, such as -1e-17 for 0."""
    digits = [6 - _magnitude(width) for width in _widths(centers, details, domain)]
    columns = [[round(x, n) + 0.0 for x in column] for column, n in zip(centers.T.tolist(), digits, strict=True)]
    return np.array(columns, np.float64).T


def _widths(centers: Floats, details: Mapping[str, Any], domain: Box | Ball) -> list[float]:
    """Widths (d,) of the frame that was released, or else of the public bounds."""
    frame = table_in(details, "intervals", (centers.shape[1], 2))
    if frame is None or not (frame[:, 0] < frame[:, 1]).all():
        halves = domain.half_widths if isinstance(domain, Box) else np.full(domain.dimension, domain.radius)
    else:
        halves = (frame[:, 1] - frame[:, 0]) / 2
    return (2 * halves).tolist()


def _rounded(value: float, digits: int) -> str:
    """Args: digits (decimals; if negative, of so many zeros before the point)."""
    return f"{round(value, digits) + 0.0:,.{max(0, digits)}f}"

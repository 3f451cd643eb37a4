"""Released figures with their standard errors as text, rounded alike in tables, profiles, reports and pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, final

import attrs
import numpy as np

from cloister.core.decimals import magnitude, resolved
from cloister.core.domains import Ball, Box
from cloister.core.types import Floats


def table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """Return an HTML table."""
    # every text is escaped: column names are untrusted
    cells = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{names}</tr></thead><tbody>{cells}</tbody></table>"


def promise(headline: str, text: str, alarm: bool) -> str:
    """Return a privacy statement in HTML: its headline, with the whole text folded away; ``alarm`` paints it red."""
    style = ' style="color: #a01010"' if alarm else ""
    return (
        f"<p><strong{style}>{escape(headline)}</strong></p><details><summary>Privacy statement</summary>"
        f'<pre style="white-space: pre-wrap">{escape(text)}</pre></details>'
    )


@final
@attrs.frozen
class Estimate:
    """Figure with its standard error (None if none is stated) and the unit written after both."""

    value: float
    error: float | None = None
    unit: str = ""

    @classmethod
    def of_share(cls, share: float, error: float | None = None) -> Estimate:
        """Return a share, between 0 and 1, in per cent."""
        return cls(100 * share, None if error is None else 100 * error, "%")

    @classmethod
    def of_size(cls, size: float, error: float | None = None) -> Estimate:
        """Return a number of rows, rounded to a whole one if no error is stated."""
        return cls(float(round(size)) if error is None and math.isfinite(size) else size, error)

    @property
    def text(self) -> str:
        """Value and error, to two digits of the error."""
        if self.error is None or not math.isfinite(self.error):
            return self.figure
        if self.error <= 0:
            return f"{self.figure} \u00b1 0{self.unit}"
        return f"{self.figure} \u00b1 {_rounded(self.error, self._digits)}{self.unit}"

    @property
    def figure(self) -> str:
        """Value alone: to two digits of the error; without one, a whole number in full, others to four digits."""
        if self.error is None or not math.isfinite(self.error):
            is_integer = self.value.is_integer() and abs(self.value) < 1e15
            return f"{self.value:,.0f}{self.unit}" if is_integer else f"{self.value:.4g}{self.unit}"
        text = resolved(self.value, 1.0, 2, 6) if self.error <= 0 else _rounded(self.value, self._digits)
        return f"{text}{self.unit}"

    @property
    def _digits(self) -> int:
        """Decimals (if negative, zeros before the point) that leave two digits of a positive error."""
        return 1 - math.floor(math.log10(self.error or 1.0))


def distinct_texts(values: Sequence[float]) -> list[str]:
    """Return values as texts, with as many digits as distinguish them."""
    return [resolved(value, max(values) - min(values)) for value in values]


def numbers(values: Any) -> Floats:
    """Return a released table of finite numbers; empty if a plugin means something else by its name."""
    try:
        figures = np.asarray(() if values is None else values, np.float64)
    except (TypeError, ValueError):
        return np.empty(0)
    return figures if figures.ndim and np.isfinite(figures).all() else np.empty(0)


def table_in(details: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> Floats | None:
    """Return a released table of this shape, or None: a plugin's method may mean something else by the name."""
    figures = numbers(details.get(name))
    return figures if figures.shape == shape else None


def shares_of_rows(sizes: Floats, errors: Floats | None) -> tuple[Floats, Floats | None] | None:
    """Return the groups' shares (k,) of all rows with their standard errors; None if no size is above zero."""
    positive = np.maximum(sizes, 0.0)
    if not positive.sum() > 0:
        return None
    return positive / positive.sum(), None if errors is None else share_errors(positive, errors)


def share_errors(sizes: Floats, errors: Floats) -> Floats:
    """Return standard errors (k,) of shares of all rows, from nonnegative sizes (k,) and their errors (k,).

    Errors of different sizes add up as if independent. A size's own error counts in full, with no deduction for its
    correlation with the total: rows that two groups exchange do not change the total.
    """
    total = float(sizes.sum()) or 1.0
    other_variance = float((errors**2).sum()) - errors**2
    return np.asarray(np.sqrt(errors**2 + (sizes / total) ** 2 * np.maximum(other_variance, 0.0)) / total)


def rounded_centers(centers: Floats, details: Mapping[str, Any], domain: Box | Ball) -> Floats:
    """Return centres (k, d) without stated errors for display, to a millionth of each column's width.

    Smaller digits are rounding, such as -1e-17 for 0.
    """
    digits = [6 - magnitude(width) for width in widths_of(centers, details, domain)]
    columns = [[round(x, n) + 0.0 for x in column] for column, n in zip(centers.T.tolist(), digits, strict=True)]
    return np.array(columns, np.float64).T


def widths_of(centers: Floats, details: Mapping[str, Any], domain: Box | Ball) -> list[float]:
    """Return widths (d,) of the released frame, or else of the public bounds."""
    frame = table_in(details, "intervals", (centers.shape[1], 2))
    if frame is None or not (frame[:, 0] < frame[:, 1]).all():
        halves = domain.half_widths if isinstance(domain, Box) else np.full(domain.dimension, domain.radius)
    else:
        halves = (frame[:, 1] - frame[:, 0]) / 2
    return (2 * halves).tolist()


def _rounded(value: float, digits: int) -> str:
    """Return a value as text with so many decimals; if negative, with zeros before the point."""
    return f"{round(value, digits) + 0.0:,.{max(0, digits)}f}"

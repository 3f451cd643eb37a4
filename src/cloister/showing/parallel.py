"""Parallel coordinates of the released centres: a line per centre over the columns, from bound to bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from cloister.core.domains import Ball, Box
from cloister.core.errors import InvalidInput
from cloister.core.types import Floats, Ints
from cloister.run.estimates import distinct_texts, table_in
from cloister.run.result import Result
from cloister.showing.frame import (
    BAR,
    ERRORS,
    FAINT,
    GROUPS,
    MARGINS,
    WIDTH,
    clean,
    column,
    frame,
    group_colour,
    write_text,
)
from cloister.showing.plot_data import Heading, checked, domain_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_COLUMNS = 30
"""Maximum number of columns drawn: those in which the centres vary most."""


@final
@attrs.frozen(eq=False)
class Parallel:
    """Lines of k centres over c columns.

    Args:
        heading: text above the plot.
        columns: names of the columns drawn, in the result's order.
        low: (c,) lower bounds.
        high: (c,) upper bounds.
        heights: (k, c) positions of the centres, 0 at the lower bound and 1 at the upper.
        errors: (k, c) standard errors of the heights, or None if the result has none.
        all_columns: number of columns in the result.
        called: (k,) numbers of the clusters, with their names if they have any.
    """

    heading: Heading
    columns: tuple[str, ...]
    low: Floats
    high: Floats
    heights: Floats
    errors: Floats | None
    all_columns: int
    called: list[str]

    @classmethod
    def of(cls, result: Result, max_columns: int = MOST_COLUMNS) -> Parallel:
        """Return the lines of a result's centres.

        Raises:
            InvalidInput: the result has one column.
            Damaged: the result cannot be drawn.
        """
        d = len(result.columns)
        if d < 2:
            raise InvalidInput("parallel coordinates need two or more columns, and this result has one: draw the map")
        low, high = extent(domain_of(result))
        heights = relative_positions(checked(result.centers, (None, d), "centres"), low, high)
        drawn = most_varying(heights, max_columns)
        heading = Heading.of(result, "Centres over the columns")
        names = tuple(result.columns[j] for j in drawn)
        stated = table_in(result.details, "centers_error", heights.shape)
        errors = None if stated is None else (stated / (high - low))[:, drawn]
        return cls(heading, names, low[drawn], high[drawn], heights[:, drawn], errors, d, result.called)

    def as_dict(self) -> dict[str, Any]:
        """Return the plot's facts as plain data."""
        return {
            "picture": "parallel coordinates",
            "title": self.heading.title,
            "columns": list(self.columns),
            "columns in the result": self.all_columns,
            "centers": len(self.heights),
            "groups": self.called,
        }

    def text(self) -> str:
        """Describe the plot in one line."""
        shown = len(self.columns)
        which = f"the {shown} of {self.all_columns:,} columns" if shown < self.all_columns else f"{shown} columns"
        differ = " in which they differ most" if shown < self.all_columns else ""
        return f"{len(self.heights)} centres over {which}{differ}"


def extent(domain: Box | Ball) -> tuple[Floats, Floats]:
    """Return a domain's lower and upper ends (d,) in each column."""
    if isinstance(domain, Box):
        return np.array(domain.lower, np.float64), np.array(domain.upper, np.float64)
    middle = np.array(domain.center, np.float64)
    return middle - domain.radius, middle + domain.radius


def relative_positions(points: Floats, low: Floats, high: Floats) -> Floats:
    """Return positions (k, d) of points between the bounds, clipped to [0, 1]."""
    return np.asarray(np.clip((points - low) / (high - low), 0.0, 1.0), np.float64)


def most_varying(heights: Floats, max_columns: int) -> Ints:
    """Return the columns in which positions (k, d) range widest (ties: the first ones), in increasing order."""
    return np.sort(np.argsort(-np.ptp(heights, axis=0), kind="stable")[:max_columns])


DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)))
"""Line styles: colours repeat dashed, then dotted; if even these are too few, all lines are faint."""

WIDE = 9.6
"""Width in inches of the plot on a page."""

ABREAST, NAME = 84, 26
"""Maximum characters of all column names side by side (more: rotated), and of one name (more: cut)."""

LETTER = 0.075
"""Assumed width of a character, in inches."""

LABEL = 0.055
"""Minimum distance of two labels, as a share of the plot's height."""


def parallel_figure(shown: Parallel, bare: bool) -> Figure:
    """Draw a vertical line per column, and a line per centre with its number and name at the right."""
    k, columns = shown.heights.shape
    names = [column(name, NAME) for name in shown.columns]
    longest = max(map(len, names))
    turned = columns * longest > ABREAST
    labels = [clean(text, NAME) for text in shown.called]
    right = MARGINS[1] + LETTER * max(len(text) - 2 for text in ["99", *labels])
    figure, axes = frame(0.42, bare, WIDE if bare else WIDTH, 0.3 + LETTER * longest if turned else 0.6, right)
    positions, distinct = np.arange(columns), k <= len(GROUPS) * len(DASHES)
    axes.vlines(positions, 0, 1, color=FAINT, linewidth=0.8, zorder=1)
    for number, heights in enumerate(shown.heights):
        look: dict[str, Any] = {"linestyle": DASHES[number // len(GROUPS)]} if distinct else {"alpha": 0.3}
        look |= {"color": group_colour(number), "marker": "" if turned else "o", "markersize": 4}
        axes.plot(positions, heights, linewidth=1.6, zorder=3, **look)
        if shown.errors is not None:
            reach, faint = ERRORS * shown.errors[number], look.get("alpha", 0.6)
            axes.vlines(positions, heights - reach, heights + reach, color=look["color"], linewidth=3.0, alpha=faint)
    if distinct:
        for number, height in enumerate(separate_labels(shown.heights[:, -1])):
            axes.annotate(
                labels[number],
                (columns - 1, height),
                (9, 0),
                textcoords="offset points",
                color=group_colour(number),
                fontsize=9,
                fontweight="bold",
                va="center",
            )
    if shown.errors is not None:
        axes.vlines([], 0, 1, color=FAINT, linewidth=3.0, alpha=0.6, label=BAR)
    axes.set(xlim=(-0.01 * (columns - 1), 1.06 * (columns - 1)), ylim=(-0.02, 1.02))
    axes.set_yticks([0, 1], ["lower\nend", "upper\nend"])
    lower, upper = axes.get_yticklabels()
    lower.set_verticalalignment("bottom")
    upper.set_verticalalignment("top")
    if turned:
        axes.set_xticks(positions, names, rotation=60, ha="right", rotation_mode="anchor")
    else:
        ends = zip(names, shown.low, shown.high, strict=True)
        axes.set_xticks(positions, [f"{name}\n{' to '.join(distinct_texts([low, high]))}" for name, low, high in ends])
    axes.tick_params(length=0)
    write_text(figure, None if bare else shown.heading, shown.text())
    return figure


def separate_labels(heights: Floats) -> Floats:
    """Return heights of labels, moved no more than keeps them ``LABEL`` apart and in order."""
    order = np.argsort(heights, kind="stable")
    steps = LABEL * np.arange(len(heights))
    pushed = np.maximum.accumulate(heights[order] - steps) + steps
    moved = np.minimum.accumulate((np.minimum(pushed, 1 + steps - steps[-1]) - steps)[::-1])[::-1] + steps
    return np.asarray(moved[np.argsort(order, kind="stable")], np.float64)

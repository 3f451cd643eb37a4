"""Parallel coordinates, drawn: a line per centre over the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.core.types import Floats
from cloister.plotting.frame import CELL, CENTRE, FAINT, WIDTH, column, four_digits, frame, words
from cloister.plotting.parallel import Parallel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINES = (CELL, CENTRE, "#007D5B", "#AA4499", "#8A6800", "#4D4D4D")
"""Colours of lines that are told apart; each is 4 : 1 against white or more."""

DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.5)))
"""Further lines have the same colours, dashed and then dotted. If even these are too few, all lines look alike."""

WIDE = 9.6
"""Width in inches of lines over many columns on a page."""

ABREAST, NAME = 84, 26
"""Most characters of all columns' names side by side, and of one name; longer ones are turned, and cut."""

LABEL = 0.055
"""Least distance of two labels, in heights of the picture."""


def parallel_figure(shown: Parallel, bare: bool) -> Figure:
    """Draw a vertical line per column, and a line per centre with its number at the right."""
    k, columns = shown.heights.shape
    names = [column(name, NAME) for name in shown.columns]
    longest = max(map(len, names))
    turned = columns * longest > ABREAST
    figure, axes = frame(0.42, bare, WIDE if bare else WIDTH, 0.3 + 0.075 * longest if turned else 0.6)
    every, distinct = np.arange(columns), k <= len(LINES) * len(DASHES)
    axes.vlines(every, 0, 1, color=FAINT, linewidth=0.8, zorder=1)
    for number, heights in enumerate(shown.heights):
        color, style = LINES[number % len(LINES)], DASHES[number // len(LINES) % len(DASHES)]
        look: dict[str, Any] = {"color": color, "linestyle": style} if distinct else {"color": CELL, "alpha": 0.3}
        axes.plot(every, heights, linewidth=1.6, marker="" if turned else "o", markersize=4, zorder=3, **look)
    if distinct:
        for number, height in enumerate(apart(shown.heights[:, -1])):
            color = LINES[number % len(LINES)]
            axes.annotate(str(number), (columns - 1, height), (9, 0), textcoords="offset points", color=color,
                          fontsize=9, fontweight="bold", va="center")  # fmt: skip
    axes.set(xlim=(-0.01 * (columns - 1), 1.06 * (columns - 1)), ylim=(-0.02, 1.02))
    axes.set_yticks([0, 1], ["lower\nbound", "upper\nbound"])
    lower, upper = axes.get_yticklabels()
    lower.set_verticalalignment("bottom")
    upper.set_verticalalignment("top")
    if turned:
        axes.set_xticks(every, names, rotation=60, ha="right", rotation_mode="anchor")
    else:
        ends = zip(names, shown.low, shown.high, strict=True)
        axes.set_xticks(every, [f"{name}\n{four_digits(low)} to {four_digits(high)}" for name, low, high in ends])
    axes.tick_params(length=0)
    words(figure, None if bare else shown.heading, shown.text())
    return figure


def apart(heights: Floats) -> Floats:
    """Heights of labels, moved as little as keeps them apart and in order."""
    order = np.argsort(heights, kind="stable")
    steps = LABEL * np.arange(len(heights))
    pushed = np.maximum.accumulate(heights[order] - steps) + steps
    moved = np.minimum.accumulate((np.minimum(pushed, 1 + steps - steps[-1]) - steps)[::-1])[::-1] + steps
    return np.asarray(moved[np.argsort(order, kind="stable")], np.float64)

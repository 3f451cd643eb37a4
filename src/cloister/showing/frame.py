"""Style that all plots share: colours, fonts, axes, headings and legends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cloister.core.errors import MissingExtra
from cloister.showing.plot_data import Heading

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CENTRE, CELL, INK, FAINT, ALARM = "#D55E00", "#0072B2", "#222222", "#595959", "#A01010"
"""Vermilion and blue of the palette; text and borders; notes (contrast 7 : 1 on white); warnings."""

COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A6D00")
"""Colours of lines: Okabe and Ito's palette, with a darker yellow."""

MARKERS = "osD^vP*X"

GROUPS = (CELL, CENTRE, "#007D5B", "#AA4499", "#8A6800", "#4D4D4D", "#332288", "#882255")
"""Colours of clusters, in turn by number, in every plot; their contrast on white is 3.9 : 1 or more."""

ERRORS = 2.0
"""Half-length of error bars, in standard errors."""

BAR = "± two standard errors"
"""Legend entry of the error bars."""

PAPER, GRID = "#FFFFFF", "#DDDDDD"

WIDTH, BARE = 7.2, 5.8
"""Width of a plot in inches: with its own heading, and without one (on a page that has it)."""

MARGINS = 1.0, 0.25, 1.05, 1.15
"""Margins in inches: left, right, above, below."""

BARE_ABOVE = 0.15
"""Upper margin in inches of a plot without a heading."""

LONGEST = 80
"""Maximum number of characters in a line."""

SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "cloister",
    "svg.fonttype": "none",
    "font.size": 10.0,
    "axes.labelsize": 11.0,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "legend.fontsize": 9.5,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.formatter.limits": (-4, 6),
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
}


@contextmanager
def settings() -> Iterator[None]:
    """Apply matplotlib's defaults and cloister's settings, not the user's. Raises: MissingExtra."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtra("matplotlib", "plot", "a picture") from None
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        yield


def frame(
    ratio: float,
    bare: bool = False,
    width: float | None = None,
    below: float = MARGINS[3],
    right: float = MARGINS[1],
) -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes, ``ratio`` times as high as wide.

    The axes have a fixed place: a layout engine would move them with the text.

    Args:
        ratio: height over width.
        bare: leave out the heading.
        width: of the figure, in inches.
        below: lower margin, in inches.
        right: right margin, in inches.
    """
    from cloister.showing.inline import InlineFigure

    left_margin, _, above, _ = MARGINS
    above = BARE_ABOVE if bare else above
    width = (BARE if bare else WIDTH) if width is None else width
    wide = width - left_margin - right
    height = above + below + wide * ratio
    figure = InlineFigure(figsize=(width, height))
    axes = figure.add_axes((left_margin / width, below / height, wide / width, wide * ratio / height))
    axes.spines[:].set_visible(False)
    return figure, axes


def write_text(figure: Figure, heading: Heading | None, note: str) -> None:
    """Add the heading (its guarantee in red if nobody is protected), the note, and a legend below."""
    width, height = (float(side) for side in figure.get_size_inches())
    if heading is not None:
        _head(figure, heading, note, 0.15 / width, height)
    legend(figure)


def legend(figure: Figure) -> None:
    """Add a legend below, without duplicates."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    entries = dict(zip(labels, handles, strict=True))
    figure.legend(
        entries.values(),
        entries,
        loc="lower left",
        bbox_to_anchor=(0, 0.04 / figure.get_size_inches()[1]),
        ncols=2,
        frameon=False,
        borderaxespad=0.1,
        borderpad=0.6,
    )


def _head(figure: Figure, heading: Heading, note: str, margin: float, height: float) -> None:
    lines = (
        (heading.title, 0.14, 13, "bold", INK),
        (heading.guarantee, 0.42, 10, "normal", FAINT if heading.private else ALARM),
        (note, 0.62, 10, "normal", FAINT),
    )
    for text, down, size, weight, color in lines:
        figure.text(margin, 1 - down / height, clean(text), fontsize=size, fontweight=weight, color=color, va="top")


def group_colour(number: int) -> str:
    """Return the colour of a cluster in every plot."""
    return GROUPS[number % len(GROUPS)]


def column(name: str, longest: int = LONGEST) -> str:
    """Return a column's name as a label: 'column 3' if the name is a number."""
    return f"column {name}" if name.isdecimal() else clean(name, longest)


def clean(text: str, longest: int = LONGEST) -> str:
    """Return printable text of limited length, with dollar signs escaped: they would begin a formula."""
    shown = printable(text)
    return (shown if len(shown) <= longest else shown[: longest - 3] + "...").replace("$", r"\$")


def printable(text: str) -> str:
    """Return text with ``?`` in place of each character that is not printable."""
    return "".join(c if c.isprintable() else "?" for c in text)

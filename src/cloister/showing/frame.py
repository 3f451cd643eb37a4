"""Style that all pictures share: colours, letters, a frame, and the words around it."""

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
"""Vermilion and blue of the palette; words and borders; notes (7 : 1 against white); warnings."""

COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A6D00")
"""Of lines: Okabe and Ito's palette, its yellow darkened."""

MARKERS = "osD^vP*X"

GROUPS = (CELL, CENTRE, "#007D5B", "#AA4499", "#8A6800", "#4D4D4D", "#332288", "#882255")
"""Colours of groups, in turn by their numbers, in every picture; each is 3.9 : 1 against white or more."""

ERRORS = 2.0
"""Standard errors that pictures and pages draw to each side of a centre."""

BAR = "two standard errors to each side"
"""Words on the bars in a legend."""

PAPER, GRID = "#FFFFFF", "#DDDDDD"

WIDTH, BARE = 7.2, 5.8
"""Width of a picture in inches: of one that stands alone, and of one without words above, for a page that has them."""

MARGINS = 1.0, 0.25, 1.05, 1.15
"""Margins in inches: left, right, above, below."""

BARE_ABOVE = 0.15
"""The margin above in inches where no words are."""

LONGEST = 80
"""Most characters in a line."""

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
    """Apply matplotlib's defaults and ours, not the user's settings. Raises: MissingExtra."""
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
    """One pair of axes, ``ratio`` times as high as wide, in a fixed place: a layout engine would move it with text.

    Args: bare (without words above), width, below, right (the picture's, and its margins', in inches).
    """
    from cloister.showing.inline import InlineFigure

    left, _, above, _ = MARGINS
    above = BARE_ABOVE if bare else above
    width = (BARE if bare else WIDTH) if width is None else width
    wide = width - left - right
    height = above + below + wide * ratio
    figure = InlineFigure(figsize=(width, height))
    axes = figure.add_axes((left / width, below / height, wide / width, wide * ratio / height))
    axes.spines[:].set_visible(False)
    return figure, axes


def words(figure: Figure, heading: Heading | None, note: str) -> None:
    """Write title, guarantee (red if nobody is protected) and note above if there is a heading, and a legend without
    duplicates below."""
    width, height = (float(side) for side in figure.get_size_inches())
    if heading is not None:
        _head(figure, heading, note, 0.15 / width, height)
    legend(figure)


def legend(figure: Figure) -> None:
    """A legend below, without duplicates."""
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
    """The colour of a group in every picture."""
    return GROUPS[number % len(GROUPS)]


def column(name: str, longest: int = LONGEST) -> str:
    """A column's name where it stands alone: a number is no name."""
    return f"column {name}" if name.isdecimal() else clean(name, longest)


def clean(text: str, longest: int = LONGEST) -> str:
    """Text of limited length that every file can hold, with dollar signs escaped: they would begin a formula."""
    shown = printable(text)
    return (shown if len(shown) <= longest else shown[: longest - 3] + "...").replace("$", r"\$")


def printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)

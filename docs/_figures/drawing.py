"""How the stored pictures look: legible on a phone and on a dark page, and small files."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.colors import LinearSegmentedColormap, Normalize
from PIL import Image

WIDTH: Final = 5.4
"""Inches. A phone shows this at 0.9 of its size, so that text of 11 points stays legible."""

DPI, COLOURS = 170, 200
"""Resolution, and colours of a file's palette: as few as show no difference."""

BLUE, ORANGE, GREEN, PURPLE, ROWS = "#0072B2", "#D55E00", "#009E73", "#AA4499", "#8C8C8C"


mpl.rcParams.update(
    {"font.size": 11, "axes.titlesize": 11, "figure.facecolor": "white", "savefig.facecolor": "white", "figure.dpi": 80}
)


def panels(rows: int, columns: int, height: float) -> tuple[Any, Any]:
    """Return a figure of the common width and its axes (rows, columns)."""
    return plt.subplots(rows, columns, figsize=(WIDTH, height), squeeze=False, layout="constrained")


def plane(axis: Any, title: str) -> None:
    """Make axes the square from -1 to 1, without ticks."""
    axis.set(xlim=(-1, 1), ylim=(-1, 1), xticks=[], yticks=[], aspect="equal")
    axis.set_title(title)


def rows(axis: Any, points: Any, **how: Any) -> None:
    """Draw rows as small grey dots."""
    axis.scatter(*np.asarray(points).T, **{"s": 2.5, "c": ROWS, "linewidths": 0, "zorder": 2} | how)


def centers(axis: Any, points: Any, **how: Any) -> None:
    """Draw centres as crosses with a border."""
    style = {"marker": "X", "s": 85, "c": ORANGE, "edgecolors": "black", "linewidths": 1, "zorder": 6}
    axis.scatter(*np.asarray(points).T, **style | how)


def cells(axis: Any, image: Any, most: float | None = None, below: float = 1 / 8) -> Any:
    """Paint noisy counts (m, m): white at zero, blue above, orange below, grey (NaN) where nothing was asked.

    Args: most (count of the darkest blue), below (part of the scale that is below zero).
    """
    most = float(np.nanmax(image)) if most is None else most
    above = [
        (below + (1 - below) * share, colour) for share, colour in ((0.3, "#9CC8E6"), (0.65, BLUE), (1, "#003A5C"))
    ]
    colours = LinearSegmentedColormap.from_list("counts", [(0, ORANGE), (below, "#FFFFFF"), *above])
    norm = Normalize(-most * below / (1 - below), most)
    axis.set_facecolor("#E4E4E4")
    return axis.imshow(image, origin="lower", extent=(-1, 1, -1, 1), cmap=colours, norm=norm, interpolation="nearest")


def numbers(axis: Any, image: Any) -> None:
    """Write the count of each painted cell into its middle."""
    for value in np.unique(image[~np.isnan(image)]):
        middle = np.argwhere(image == value).mean(axis=0)[::-1] / len(image) * 2 - 1
        colour = "white" if value > 0.45 * np.nanmax(image) else "black"
        axis.text(
            *middle, f"{value:.0f}".replace("-", "\N{MINUS SIGN}"), ha="center", va="center", color=colour, fontsize=9
        )


def arrows(axis: Any, start: Any, end: Any, colour: str = ORANGE) -> None:
    """Draw an arrow from each start (k, 2) to its end (k, 2)."""
    for a, b in zip(start, end, strict=True):
        how = {"arrowstyle": "-|>", "color": colour, "lw": 1.8, "shrinkA": 0, "shrinkB": 0}
        axis.annotate("", xy=b, xytext=a, arrowprops=how, zorder=7)


def circles(axis: Any, middles: Any, radii: Any, **how: Any) -> None:
    """Draw circles around points (k, 2) with radii (k,)."""
    for middle, radius in zip(middles, np.broadcast_to(radii, len(middles)), strict=True):
        axis.add_patch(plt.Circle(middle, radius, **{"fill": False, "ec": "black", "lw": 1.1, "zorder": 4} | how))


def save(figure: Any, path: Path) -> None:
    """Write a PNG with a palette, and close the figure."""
    buffer = BytesIO()
    figure.savefig(buffer, dpi=DPI)
    plt.close(figure)
    with Image.open(buffer) as image:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size:,} bytes")

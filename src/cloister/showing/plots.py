"""Plots of results: a map of the released centres, parallel coordinates, and the cost against k.

Plots are drawn from a ``Result`` alone, so from released values. The same result gives the same file, byte for byte,
under one version of matplotlib, whatever the user's settings. The colours suit colour-blind readers (Okabe and Ito
2008); text is at least 9 points, and stays text in SVG.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.core.types import Floats
from cloister.run.result import Result
from cloister.run.saving import put
from cloister.showing.frame import (
    BAR,
    CELL,
    CENTRE,
    ERRORS,
    FAINT,
    GRID,
    INK,
    MARGINS,
    clean,
    column,
    frame,
    group_colour,
    printable,
    settings,
    write_text,
)
from cloister.showing.histograms import Histograms, histograms_figure
from cloister.showing.parallel import NAME, Parallel, parallel_figure
from cloister.showing.plot_data import Curve, Map
from cloister.showing.projection import rounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Polygon

ENDINGS = (".png", ".svg")

STEEP = 30.0
"""Ratio of costs above which their scale is logarithmic."""

LARGEST, SMALLEST, PLAIN = 420.0, 14.0, 70.0
"""Areas of centres in square points: the largest, the smallest, and all of them if sizes are unknown."""

NUMBERED = 30
"""Maximum number of centres with number labels."""

CLOSE = 0.025
"""Distance below which centres share a label, as a share of the plot in both directions."""

LINE = 0.22
"""Height of a legend line, in inches."""

EQUAL = 4.0
"""Aspect ratio of the domain above which the axes have different scales."""


def draw_map(result: Result, axes: Sequence[str] | None = None, *, project: bool = False) -> Figure:
    """Draw the released centres in a plane, with the tree's cells and the centres' paths if the result has them.

    Args:
        result: of any method.
        axes: names of two columns. By default the tree's own projection if its cells exist only there, or else the
            first two columns of numbers.
        project: use the tree's own projection, or else the principal axes of the released centres.

    Raises:
        InvalidInput, UnknownName: no such two columns.
        Damaged: something in the result cannot be drawn.
        MissingExtra: matplotlib is not installed.
    """
    return figure_of(Map.of(result, axes, project))


def draw_curve(result: Result) -> Figure:
    """Draw the cost of the released weights against the number of centres.

    Raises:
        InvalidInput: the result has no costs.
        Damaged, MissingExtra: as ``draw_map``.
    """
    return figure_of(Curve.of(result))


def draw_parallel(result: Result) -> Figure:
    """Draw parallel coordinates: a line per released centre over the columns, from bound to bound.

    Raises:
        InvalidInput: the result has one column.
        Damaged, MissingExtra: as ``draw_map``.
    """
    return figure_of(Parallel.of(result))


def figure_of(picture: Map | Curve | Parallel | Histograms, bare: bool = False) -> Figure:
    """Draw a plot, without a window or global state.

    Args:
        picture: the plot's contents.
        bare: smaller and without a heading, for a page that has its own.

    Raises: MissingExtra: matplotlib is not installed.
    """
    with settings():
        if isinstance(picture, Map):
            return _map(picture, bare)
        if isinstance(picture, Histograms):
            return histograms_figure(picture, bare)
        return _curve(picture, bare) if isinstance(picture, Curve) else parallel_figure(picture, bare)


def save(figure: Figure, target: Path, title: str) -> None:
    """Write PNG or SVG by the target's ending, atomically and without dates.

    Args:
        figure: to write.
        target: its ending is ``.png`` or ``.svg``.
        title: the text alternative.

    Raises: InvalidInput: the target cannot be written.
    """
    put(target, image_of(figure, target.suffix, title))


def image_of(figure: Figure, ending: str, title: str) -> bytes:
    """Return the figure as PNG or SVG, without dates. Args: ending (.png or .svg), title (the text alternative)."""
    image = io.BytesIO()
    with settings(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a glyph that the font lacks is drawn as a box
        if ending == ".svg":
            facts: dict[str, Any] = {"Date": None, "Creator": "cloister", "Title": printable(title)}
            figure.savefig(image, format="svg", metadata=facts)
        else:
            figure.savefig(
                image, format="png", dpi=150, metadata={"Software": "cloister", "Title": _latin(printable(title))}
            )
    return image.getvalue()


def _map(shown: Map, bare: bool) -> Figure:
    points = np.concatenate([shown.border, shown.centers, shown.paths.reshape(-1, 2)])
    low, high = points.min(axis=0), points.max(axis=0)
    wide, tall = high - low
    strip = not shown.view.names[1]
    equal = strip or shown.view.projected is not None or 1 / EQUAL <= tall / wide <= EQUAL
    below = MARGINS[3] + LINE * sum(not called.isdecimal() for called in shown.called) / 2
    figure, axes = frame(min(max(tall / wide, 0.1), 1.25) if equal else 0.6, bare, below=below)
    axes.set(xlim=(low[0] - 0.02 * wide, high[0] + 0.02 * wide), ylim=(low[1] - 0.02 * tall, high[1] + 0.02 * tall))
    if equal:
        axes.set_aspect("equal", anchor="W")
    (border,) = axes.fill(
        *shown.border.T, facecolor="none", edgecolor=INK, linewidth=1.2, zorder=3, label=f"border of {shown.within}"
    )
    _cells(axes, shown, border)
    if len(shown.paths) > 1:
        for path in shown.paths.swapaxes(0, 1):
            axes.plot(
                *path.T, color=INK, linewidth=0.9, marker=".", markersize=3, zorder=4, label="path over the rounds"
            )
    _centers(axes, shown)
    axes.set_xlabel(column(shown.view.names[0]))
    axes.set_ylabel(column(shown.view.names[1]))
    if strip:
        axes.set_yticks([])
    write_text(figure, None if bare else shown.heading, _note(shown))
    return figure


def _cells(axes: Axes, shown: Map, border: Polygon) -> None:
    """Draw the cells, clipped to the domain."""
    if not len(shown.cells):
        return
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgba

    overlap = len(shown.cells[0]) > 4
    faces = np.tile(to_rgba(CELL), (len(shown.cells), 1))
    faces[:, 3] = shown.shade * (0.12 if overlap else 0.5)
    name = "tree cell (bluer: more rows per area)"
    cells = PolyCollection(
        list(shown.cells), facecolors=faces, edgecolors=to_rgba(CELL, 0.35), linewidths=0.4, zorder=1
    )
    axes.add_collection(cells, autolim=False)
    cells.set_clip_path(border)
    axes.fill([], [], facecolor=to_rgba(CELL, 0.3), edgecolor=to_rgba(CELL, 0.6), linewidth=0.5, label=name)


def _centers(axes: Axes, shown: Map) -> None:
    """Draw the centres with areas in proportion to their sizes, small ones on top.

    The legend shows two sizes, and the clusters that have names, the largest first.
    """
    style: dict[str, Any] = {"edgecolors": "white", "linewidths": 0.9}
    weights = np.zeros(len(shown.centers)) if shown.weights is None else shown.weights
    heaviest = float(weights.max())
    areas = np.maximum(LARGEST * weights / heaviest, SMALLEST) if heaviest > 0 else np.full(len(weights), PLAIN)
    order = np.argsort(-weights, kind="stable")
    colours = [group_colour(int(number)) for number in order]
    x, y = shown.centers[order].T
    if shown.errors is not None:
        right, up = ERRORS * shown.errors[order].T
        axes.hlines(y, x - right, x + right, color=INK, linewidth=0.9, zorder=5.5)
        axes.vlines(x, y - up, y + up, color=INK, linewidth=0.9, zorder=5.5)
        axes.plot([], [], color=INK, linewidth=0.9, label=BAR)
    everyone = axes.scatter(x, y, s=areas[order], color=colours, zorder=5, clip_on=False, **style)
    if heaviest > 0:
        for rows in (rounded(heaviest), rounded(heaviest / 8)):
            label, size = f"cluster of {rows:,.10g} rows", max(LARGEST * rows / heaviest, SMALLEST)
            axes.scatter([], [], s=size, color=FAINT, label=label, **style)
    else:
        everyone.set_label("released centre")
    for number, colour in zip(order, colours, strict=True):
        if not shown.called[number].isdecimal():
            axes.scatter([], [], s=PLAIN, color=colour, label=clean(shown.called[number], NAME), **style)
    if len(areas) <= NUMBERED:
        _numbers(axes, shown.centers, areas)


def _numbers(axes: Axes, centers: Floats, areas: Floats) -> None:
    """Label each centre with its number; centres close together share a label."""
    from matplotlib.patheffects import withStroke

    wide = np.array([np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())])
    for together in _places(centers / wide):
        center, area = centers[together[0]], areas[together].max()
        away = 0.35 * float(area) ** 0.5 + 1
        axes.annotate(
            ", ".join(map(str, together)),
            (center[0], center[1]),
            (away, away),
            textcoords="offset points",
            fontsize=9,
            zorder=6,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )


def _places(centers: Floats) -> list[list[int]]:
    """Return the numbers of the centres (k, 2), grouped if their labels would overlap."""
    places = list[list[int]]()
    for number, center in enumerate(centers):
        for place in places:
            if np.abs(centers[place[0]] - center).max() < CLOSE:
                place.append(number)
                break
        else:
            places.append([number])
    return places


def _note(shown: Map) -> str:
    """Return a note on the projection and on what is left out."""
    parts = []
    if shown.view.projected:
        parts.append(f"seen in {shown.view.projected}")
    if not shown.all_cells:
        parts.append("no tree cells in this result")
    elif not len(shown.cells):
        parts.append("tree cells are shown in the tree's own projection only")
    elif len(shown.cells) < shown.all_cells:
        parts.append(f"the {len(shown.cells):,} heaviest of {shown.all_cells:,} cells")
    return "; ".join(parts)


def _curve(shown: Curve, bare: bool) -> Figure:
    figure, axes = frame(0.5, bare)
    costs, numbers = shown.costs, shown.numbers
    positive = costs > 0
    logarithmic = bool(positive.any()) and float(costs[positive].max() / costs[positive].min()) > STEEP
    drawn = positive if logarithmic else np.ones(len(costs), bool)
    if logarithmic:
        axes.set_yscale("log")
    axes.plot(numbers[drawn], costs[drawn], color=CELL, linewidth=1.6, marker="o", markersize=3.5, label="least cost")
    if not logarithmic:
        axes.set_ylim(bottom=0, top=None if positive.any() else 1.0)
    if numbers[0] <= shown.k <= numbers[-1]:
        why = "suggested" if shown.suggested else "requested"
        axes.axvline(shown.k, color=CENTRE, linewidth=1.4, linestyle="--", label=f"k = {shown.k}, {why}")
    axes.set_xlim(numbers[0] - 1, numbers[-1] + 1)
    axes.locator_params("x", integer=True)
    axes.set_xlabel("number of centres")
    of_tree = {1: "rows · tree distance", 2: "rows · tree distance²"}.get(shown.power or 0, "cost on the tree")
    axes.set_ylabel("mean squared distance of a row" if shown.suggested else of_tree)
    axes.grid(color=GRID, linewidth=0.6)
    zero = np.flatnonzero(~positive)
    write_text(
        figure, None if bare else shown.heading, f"0 with {numbers[zero[0]]} or more centres" if len(zero) else ""
    )
    return figure


def _latin(text: str) -> str:
    """Return text in Latin-1, as a PNG's metadata requires."""
    return text.replace("ε", "epsilon").replace("δ", "delta").encode("latin-1", "replace").decode("latin-1")

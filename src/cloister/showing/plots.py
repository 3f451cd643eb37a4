"""Pictures of results: a map of the released centres and tree cells, parallel coordinates of the centres, and the tree
program's cost against k.

Drawn from a ``Result`` alone: nothing here can see a row. The same result gives the same file, byte for byte, under one
version of matplotlib, whatever the user's own settings of it. The colours suit colour-blind readers (Okabe and Ito
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
    CELL,
    CENTRE,
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
    words,
)
from cloister.showing.lines import NAME, Parallel, parallel_figure
from cloister.showing.plot_data import Curve, Map
from cloister.showing.projection import rounded
from cloister.showing.telling import Histograms, histograms_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Polygon

ENDINGS = (".png", ".svg")

STEEP = 30.0
"""Costs whose ratio is larger are shown on a logarithmic scale."""

LARGEST, SMALLEST, PLAIN = 420.0, 14.0, 70.0
"""Areas of centres in square points: of the heaviest, of the smallest visible one, and of all without weights."""

NUMBERED = 30
"""Up to this many centres are labelled with their number in the result."""

CLOSE = 0.025
"""Centres nearer than this share of the picture in both directions have one label."""

LINE = 0.22
"""Height in inches of a line of the legend."""

EQUAL = 4.0
"""Both axes have the same scale, unless the domain is this many times as long as it is wide."""


def draw_map(result: Result, axes: Sequence[str] | None = None, *, project: bool = False) -> Figure:
    """Draw the released centres in two columns or in a public projection, with the tree's cells and the centres' paths
    where the result has them.

    Args:
        axes: names of two columns; by default the first two that are no category's.
        project: the tree's own public projection, or else the principal axes of the released centres.

    Raises:
        InvalidInput, UnknownName: no such two columns.
        Damaged: something in the result cannot be drawn.
        MissingExtra: matplotlib is not installed.
    """
    return figure_of(Map.of(result, axes, project))


def draw_curve(result: Result) -> Figure:
    """Draw the cost that the tree program found with 1, 2 ... centres, over the released weights.

    Raises:
        InvalidInput: the result holds no costs.
        Damaged, MissingExtra: as ``draw_map``.
    """
    return figure_of(Curve.of(result))


def draw_parallel(result: Result) -> Figure:
    """Draw a line per released centre over the columns, each column from its public lower to its upper bound.

    Raises:
        InvalidInput: the result has one column.
        Damaged, MissingExtra: as ``draw_map``.
    """
    return figure_of(Parallel.of(result))


def figure_of(picture: Map | Curve | Parallel | Histograms, bare: bool = False) -> Figure:
    """The figure of these numbers, without a window or global state.

    Args: bare (smaller, and without words above: for a page that has them).

    Raises: MissingExtra.
    """
    with settings():
        if isinstance(picture, Map):
            return _map(picture, bare)
        if isinstance(picture, Histograms):
            return histograms_figure(picture, bare)
        return _curve(picture, bare) if isinstance(picture, Curve) else parallel_figure(picture, bare)


def save(figure: Figure, target: Path, title: str) -> None:
    """Write PNG or SVG by the target's ending, atomically and without dates. Args: title (the text alternative).

    Raises: InvalidInput: the place cannot be written.
    """
    put(target, image_of(figure, target.suffix, title))


def image_of(figure: Figure, ending: str, title: str) -> bytes:
    """The figure as PNG or SVG, without dates. Args: ending (.png or .svg), title (the text alternative)."""
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
    every = np.concatenate([shown.border, shown.centers, shown.paths.reshape(-1, 2)])
    low, high = every.min(axis=0), every.max(axis=0)
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
    words(figure, None if bare else shown.heading, _note(shown))
    return figure


def _cells(axes: Axes, shown: Map, border: Polygon) -> None:
    """Draw the cells, clipped to the domain: there are no rows outside."""
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
    """Draw centres in their groups' colours, with areas in proportion to rows, small ones on top; the legend shows two
    sizes, and the groups that have names, the largest first."""
    style: dict[str, Any] = {"edgecolors": "white", "linewidths": 0.9}
    weights = np.zeros(len(shown.centers)) if shown.weights is None else shown.weights
    most = float(weights.max())
    areas = np.maximum(LARGEST * weights / most, SMALLEST) if most > 0 else np.full(len(weights), PLAIN)
    order = np.argsort(-weights, kind="stable")
    colours = [group_colour(int(number)) for number in order]
    x, y = shown.centers[order].T
    everyone = axes.scatter(x, y, s=areas[order], color=colours, zorder=5, clip_on=False, **style)
    if most > 0:
        for rows in (rounded(most), rounded(most / 8)):
            label, size = f"centre of {rows:,.10g} released rows", max(LARGEST * rows / most, SMALLEST)
            axes.scatter([], [], s=size, color=FAINT, label=label, **style)
    else:
        everyone.set_label("released centre")
    for number, colour in zip(order, colours, strict=True):
        if not shown.called[number].isdecimal():
            axes.scatter([], [], s=PLAIN, color=colour, label=clean(shown.called[number], NAME), **style)
    if len(areas) <= NUMBERED:
        _numbers(axes, shown.centers, areas)


def _numbers(axes: Axes, centers: Floats, areas: Floats) -> None:
    """Label each centre with its number in the result's table; one label for centres in one place."""
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
    """Numbers of the centres (k, 2) in order, together where their labels would hide one another."""
    found = list[list[int]]()
    for number, center in enumerate(centers):
        for place in found:
            if np.abs(centers[place[0]] - center).max() < CLOSE:
                place.append(number)
                break
        else:
            found.append([number])
    return found


def _note(shown: Map) -> str:
    """A note on what the picture leaves out."""
    parts = []
    if shown.view.projected:
        parts.append(f"seen in {shown.view.projected}")
    if not shown.all_cells:
        parts.append("no tree cells in this result")
    elif not len(shown.cells):
        parts.append("the tree's cells are seen in its own projection only")
    elif len(shown.cells) < shown.all_cells:
        parts.append(f"the {len(shown.cells):,} heaviest of {shown.all_cells:,} cells")
    return "; ".join(parts)


def _curve(shown: Curve, bare: bool) -> Figure:
    figure, axes = frame(0.5, bare)
    costs, every = shown.costs, shown.numbers
    positive = costs > 0
    logarithmic = bool(positive.any()) and float(costs[positive].max() / costs[positive].min()) > STEEP
    seen = positive if logarithmic else np.ones(len(costs), bool)
    if logarithmic:
        axes.set_yscale("log")
    axes.plot(every[seen], costs[seen], color=CELL, linewidth=1.6, marker="o", markersize=3.5, label="least cost")
    if not logarithmic:
        axes.set_ylim(bottom=0, top=None if positive.any() else 1.0)
    if every[0] <= shown.k <= every[-1]:
        why = "as suggested" if shown.suggested else "as asked"
        axes.axvline(shown.k, color=CENTRE, linewidth=1.4, linestyle="--", label=f"k = {shown.k}, {why}")
    axes.set_xlim(every[0] - 1, every[-1] + 1)
    axes.locator_params("x", integer=True)
    axes.set_xlabel("number of centres")
    of_tree = {1: "rows · tree distance", 2: "rows · tree distance²"}.get(shown.power or 0, "cost on the tree")
    axes.set_ylabel("mean squared distance of a row" if shown.suggested else of_tree)
    axes.grid(color=GRID, linewidth=0.6)
    zero = np.flatnonzero(~positive)
    words(figure, None if bare else shown.heading, f"0 with {every[zero[0]]} and more centres" if len(zero) else "")
    return figure


def _latin(text: str) -> str:
    """Text in Latin-1, as a PNG's metadata requires."""
    return text.replace("ε", "epsilon").replace("δ", "delta").encode("latin-1", "replace").decode("latin-1")

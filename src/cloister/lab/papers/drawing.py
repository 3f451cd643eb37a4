"""Plots of a paper's tables: a panel each, our lines solid and the published ones dashed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloister.lab.papers.cells import PaperTable
from cloister.lab.papers.reproduction import Reproduction
from cloister.showing.frame import COLOURS, FAINT, MARKERS, settings
from cloister.showing.plots import save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACROSS = 4
"""Maximum number of panels side by side."""

MOST_PANELS = 24
"""Maximum number of panels of a plot; the others are in the CSV file."""


def draw(made: Reproduction, table: PaperTable, target: Path) -> None:
    """Draw a table's figures and save them as SVG or PNG.

    Raises:
        MissingExtra: matplotlib is not installed.
        InvalidInput: the target cannot be written.
    """
    with settings():
        from matplotlib.figure import Figure

        records = [record for record in made.records() if record["table"] == table.name]
        panels = list(dict.fromkeys(record["panel"] for record in records))[:MOST_PANELS]
        lines = list(dict.fromkeys(record["series"] for record in records))
        across = min(ACROSS, len(panels))
        down = math.ceil(len(panels) / across)
        size = (3.1 * across + 0.6, 2.5 * down + 0.5 + 0.2 * math.ceil(len(lines) / 3))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(down, across, squeeze=False).ravel()
        for axis, panel in zip(axes, panels, strict=False):
            _panel(axis, [record for record in records if record["panel"] == panel], table, lines)
            axis.set_title(panel, fontsize=9)
        for axis in axes[len(panels) :]:
            axis.set_visible(False)
        handles = {
            text: handle for axis in axes for handle, text in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, frameon=False, fontsize=8)
        save(figure, target, f"{made.paper.title}, {table.name}: {table.caption}")


def _panel(axis: Axes, records: list[dict[str, Any]], table: PaperTable, lines: list[str]) -> None:
    for number, line in enumerate(lines):
        of_line = sorted((record for record in records if record["series"] == line), key=lambda record: record["x"])
        style: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)], "markersize": 4, "linewidth": 1.3}
        ours = [record for record in of_line if record["ours"] is not None]
        if ours:
            errors = [record["standard_error"] or 0.0 for record in ours]
            at, values = [record["x"] for record in ours], [record["ours"] for record in ours]
            axis.errorbar(at, values, errors, label=line, marker=MARKERS[number % len(MARKERS)], capsize=2, **style)
        stated = [record for record in of_line if record["published"] is not None]
        if stated:
            at, values = [record["x"] for record in stated], [record["published"] for record in stated]
            axis.plot(at, values, "--", label=f"{line} (published)", marker="x", **style)
    if "x" in table.logarithmic and all(record["x"] > 0 for record in records):
        axis.set_xscale("log")
    if "y" in table.logarithmic and all((record["ours"] or 1) > 0 for record in records):
        axis.set_yscale("log")
    axis.set_xlabel(table.x, fontsize=8)
    axis.set_ylabel(table.quantity, fontsize=8)
    axis.tick_params(labelsize=7.5, labelcolor=FAINT)
    axis.grid(color="#DDDDDD", linewidth=0.5)

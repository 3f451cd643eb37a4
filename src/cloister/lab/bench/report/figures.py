"""Plots of a benchmark: cost, time and memory against epsilon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from cloister.lab.bench.contest import MIDPOINT, REFERENCE
from cloister.lab.bench.report.summary import BenchCell, Panel
from cloister.lab.comparing.study import label_decades
from cloister.showing.frame import COLOURS, FAINT, INK, MARKERS, frame, legend, settings
from cloister.showing.report.page import svg_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@final
@attrs.frozen
class Quantity:
    """Quantity of a plot. Args: label (of its axis), value (of a cell, with its error), baselines (whether drawn)."""

    label: str
    value: Callable[[BenchCell], tuple[float, float]]
    baselines: bool = False


def _cost(cell: BenchCell) -> tuple[float, float]:
    assert cell.mean is not None
    return cell.mean.value, cell.mean.standard_error if len(cell.costs) > 1 else 0.0


QUANTITIES: Mapping[str, Quantity] = {
    "cost": Quantity("mean squared distance", _cost, baselines=True),
    "time": Quantity("seconds", lambda cell: (float(np.median(cell.seconds)), 0.0)),
    "memory": Quantity("peak memory, MiB", lambda cell: (max(cell.peaks), 0.0)),
}


def plot_of(panel: Panel, quantity: str, name: str, styles: Mapping[str, int]) -> str:
    """Return a plot as inline SVG.

    Args:
        panel: what to draw.
        quantity: a key of ``QUANTITIES``.
        name: prefix of ids, unique on the page.
        styles: number of each entrant, by which it has the same colour in all plots.

    Raises: MissingExtra: matplotlib is not installed.
    """
    what = QUANTITIES[quantity]
    with settings():
        figure, axes = frame(0.62, bare=True, below=0.75 + 0.22 * ((len(panel.entrants) + 3) // 2))
        for entrant in panel.entrants:
            _line(axes, panel, entrant, what, styles[entrant])
        if what.baselines:
            axes.axhline(panel.baselines[REFERENCE], color=INK, linewidth=0.9, linestyle="--", label="k-means++")
            axes.axhline(panel.baselines[MIDPOINT], color=FAINT, linewidth=0.9, linestyle=":", label="midpoint")
        axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel=what.label)
        axes.set_xticks(panel.epsilons, [f"{epsilon:g}" for epsilon in panel.epsilons])
        axes.minorticks_off()
        label_decades(axes)
        axes.grid(color="#DDDDDD", linewidth=0.6)
        legend(figure)
    return svg_of(figure, name, f"{what.label} against epsilon: {panel.title}")


def _line(axes: Axes, panel: Panel, entrant: str, what: Quantity, number: int) -> None:
    cells = [cell for cell in panel.of(entrant) if cell.costs]
    if not cells:
        return
    values = np.array([what.value(cell) for cell in cells])
    style: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
    axes.errorbar(
        [cell.epsilon for cell in cells],
        values[:, 0],
        values[:, 1],
        label=entrant.replace("$", r"\$"),
        linewidth=1.6,
        markersize=5,
        capsize=3,
        linestyle="-" if number < len(COLOURS) else "--",
        **style,
    )

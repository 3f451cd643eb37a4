"""A study as a picture: cost against budget, with error bars."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloister.comparing.figures import MIDPOINT, REFERENCE, Figures, labels_of
from cloister.plotting.figures import ENDINGS, save as save_figure
from cloister.plotting.frame import ALARM, FAINT, INK, frame, settings
from cloister.run.result import checked_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A6D00")
"""Okabe and Ito's palette, its yellow darkened."""

MARKERS = "osD^vP*X"

TITLE = "Cost against privacy budget"

WARNING = "NOT private: computed from the rows themselves"


def figure_of(study: Figures) -> Figure:
    """The figure, without a window or global state. Raises: MissingExtra."""
    with settings():
        figure, axes = frame(0.6, below=0.8 + 0.22 * ((len(labels_of(study.cells)) + 3) // 2))
        for number, label in enumerate(labels_of(study.cells)):
            _line(axes, study, label, number)
        _baselines(axes, study)
        axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="mean squared distance (NICV)")
        axes.set_xticks(study.epsilons, [f"{epsilon:g}" for epsilon in study.epsilons])
        axes.minorticks_off()
        _costs(axes)
        axes.grid(color="#DDDDDD", linewidth=0.6)
        _words(figure, study)
    return figure


def _costs(axes: Axes) -> None:
    """Label the axis of costs, however little they differ: a decade has one label, three, or nine."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    low, high = axes.get_ylim()
    steps = (1.0,) if high > 1000 * low else (1.0, 2.0, 5.0) if high > 10 * low else tuple(map(float, range(1, 10)))
    axes.yaxis.set_major_locator(LogLocator(subs=steps))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda cost, _: f"{cost:g}"))


def save(figure: Figure, path: Path) -> None:
    """Write PNG or SVG by the path's ending. Raises: InvalidInput: the place cannot be written."""
    save_figure(figure, checked_target(path, ENDINGS, "pictures"), f"{TITLE} ({WARNING})")


def _line(axes: Axes, study: Figures, label: str, number: int) -> None:
    cells = [cell for cell in study.cells if cell.label == label and cell.mean is not None]
    if not cells:
        return
    means = [cell.mean for cell in sorted(cells, key=lambda cell: cell.epsilon) if cell.mean is not None]
    at = sorted(cell.epsilon for cell in cells)
    single = any(len(cell.nicv) < 2 for cell in cells)
    style: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
    errors = None if single else [mean.standard_error for mean in means]
    shown = label if all(cell.private for cell in cells) else f"{label} (NOT private)"
    dashes = "-" if number < len(COLOURS) else "--"
    axes.errorbar(
        at, [mean.value for mean in means], errors, label=shown, linewidth=1.6, markersize=5, capsize=3,
        linestyle=dashes, **style,
    )  # fmt: skip


def _baselines(axes: Axes, study: Figures) -> None:
    if study.costs[REFERENCE] > 0:
        axes.axhline(
            study.costs[REFERENCE], color=INK, linewidth=0.9, linestyle="--", label=f"{REFERENCE}, NOT private"
        )
    axes.axhline(study.costs[MIDPOINT], color=FAINT, linewidth=0.9, linestyle=":", label=MIDPOINT)


def _words(figure: Figure, study: Figures) -> None:
    width, height = (float(inches) for inches in figure.get_size_inches())
    told = study.conditions
    lines = (
        (TITLE, 0.14, 13, "bold", INK), (WARNING, 0.42, 10, "bold", ALARM),
        (f"{told.count:,} rows, {len(told.columns)} columns, k = {told.k}, delta = {told.delta:.3g}; mean ± standard "
        f"error of runs", 0.62, 10, "normal", FAINT),
    )  # fmt: skip
    for text, down, size, weight, color in lines:
        figure.text(0.15 / width, 1 - down / height, text, fontsize=size, fontweight=weight, color=color, va="top")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="lower left", bbox_to_anchor=(0, 0.04 / height), ncols=2, frameon=False,
        borderaxespad=0.1, borderpad=0.6,
    )  # fmt: skip

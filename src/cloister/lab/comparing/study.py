"""Findings of a comparison, as text and as a picture. **NOT private.**

A study as tables, one per budget.

A study as a picture: cost against budget, with error bars.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import attrs

from cloister.lab.comparing.contenders import FLAWS
from cloister.lab.comparing.figures import MIDPOINT, REFERENCE, Cell, Figures, labels_of
from cloister.run.estimates import Estimate
from cloister.run.result import checked_target
from cloister.showing.frame import ALARM, FAINT, INK, frame, settings
from cloister.showing.plots import ENDINGS, save as save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table


HEADING = (
    "NOT private: these figures were computed from the rows themselves, to choose a method on rows that are generated "
    "or public."
)

LEGEND = (
    "NICV: mean squared distance to the nearest centre, mean ± standard error over runs with secret noise; ratio: over "
    "the non-private k-means++ of scikit-learn."
)


def text_of(study: Figures, width: int) -> str:
    """The tables, with what they are and the conditions."""
    from rich.console import Console

    console = Console(width=width, markup=False, emoji=False, highlight=False, color_system=None)
    with console.capture() as captured:
        for text in (HEADING, study.conditions.text(), LEGEND):
            console.print(text, soft_wrap=True)
        for epsilon in study.epsilons:
            console.print()
            console.print(_table(study, epsilon))
        for note in _notes(study):
            console.print(note, soft_wrap=True)
    return captured.get().removesuffix("\n")


def _table(study: Figures, epsilon: float) -> Table:
    from rich.table import Table

    table = Table(title=f"epsilon = {epsilon:g} (NOT private)", title_justify="left")
    table.add_column("method", overflow="fold")
    table.add_column("trust")
    for name in ("NICV", "ratio", "runs", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for cell in study.at(epsilon):
        table.add_row(*_row(study, cell))
    table.add_section()
    for name, cost in study.costs.items():
        table.add_row(name, study.baseline(name).partition(":")[0], f"{cost:.4g}", _ratio(study, cost), "", "")
    return table


def _row(study: Figures, cell: Cell) -> tuple[str, ...]:
    trust = (cell.trust or "any") if cell.private else "NOT private"
    shown = cell.label + ("" if cell.picked is None else f" ({cell.picked})")
    runs = f"{len(cell.nicv)} of {cell.asked}"
    if cell.mean is None:
        return shown, "", "refused" if cell.refused else "-", "", runs, ""
    error = None if len(cell.nicv) < 2 else cell.mean.standard_error
    return (
        shown,
        trust,
        Estimate(cell.mean.value, error).text,
        _ratio(study, cell.mean.value),
        runs,
        f"{cell.time:.2g}",
    )


def _ratio(study: Figures, cost: float) -> str:
    ratio = study.ratio(cost)
    return "-" if ratio is None else f"{ratio:.3f}"


def _notes(study: Figures) -> list[str]:
    """Why cells were refused, each reason once, and what is wrong with rivals."""
    reasons = dict[str, list[str]]()
    for cell in study.cells:
        if cell.refused is not None:
            reasons.setdefault(f"{cell.label}: {cell.refused}", []).append(f"{cell.epsilon:g}")
    refused = [f"refused at epsilon = {', '.join(at)}: {reason}" for reason, at in reasons.items()]
    others = [
        f"{cell.label} at epsilon = {cell.epsilon:g}: NICV {cell.mean_unclipped:.4g} of the rows as they are, "
        "not clipped."
        for cell in study.cells
        if cell.mean_unclipped is not None
    ]
    rivals = [f"{name}: {FLAWS[name]}." for name in FLAWS if any(cell.label == name for cell in study.cells)]
    return [*others, *refused, *rivals]


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
        at,
        [mean.value for mean in means],
        errors,
        label=shown,
        linewidth=1.6,
        markersize=5,
        capsize=3,
        linestyle=dashes,
        **style,
    )


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
        (TITLE, 0.14, 13, "bold", INK),
        (WARNING, 0.42, 10, "bold", ALARM),
        (
            f"{told.count:,} rows, {len(told.columns)} columns, k = {told.k}, delta = {told.delta:.3g}; mean ± "
            "standard error of runs",
            0.62,
            10,
            "normal",
            FAINT,
        ),
    )
    for text, down, size, weight, color in lines:
        figure.text(0.15 / width, 1 - down / height, text, fontsize=size, fontweight=weight, color=color, va="top")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(0, 0.04 / height),
        ncols=2,
        frameon=False,
        borderaxespad=0.1,
        borderpad=0.6,
    )


@final
@attrs.frozen
class Study(Figures):
    """Findings of a comparison. NOT private. Args: as ``Figures``."""

    def table(self, width: int = 110) -> str:
        """The tables as text, a table per budget. Args: width (characters of a line)."""
        return text_of(self, width)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Cost against budget with error bars, and saved as PNG or SVG if a path is given.

        Raises: MissingExtra: matplotlib is not installed. InvalidInput: the place cannot be written.
        """
        figure = figure_of(self)
        if path is not None:
            save(figure, Path(path))
        return figure

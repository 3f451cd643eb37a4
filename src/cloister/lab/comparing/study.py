"""Results of a comparison: costs by contender and budget, as tables and as a plot.

**NOT private**: all are computed from the rows themselves.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import attrs

from cloister.lab.comparing.conditions import Conditions
from cloister.lab.comparing.rivals import Rival
from cloister.lab.comparing.study_file import NOTE
from cloister.metrics import Mean, mean_interval
from cloister.run.estimates import Estimate
from cloister.run.saving import checked_target
from cloister.showing.frame import ALARM, COLOURS, FAINT, INK, MARKERS, frame, legend, settings
from cloister.showing.plots import ENDINGS, save as save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

REFERENCE, MIDPOINT, MEAN = "k-means++ of scikit-learn", "midpoint of the bounds", "mean of the rows"

BASELINES = {
    REFERENCE: "NOT private: the best of 10 starts",
    MIDPOINT: "no data: a single centre",
    MEAN: "NOT private: a single centre",
}


@final
@attrs.frozen
class Cell:
    """Contender under a budget.

    Args:
        label: the contender's text, or a rival's name.
        epsilon: nats.
        trust: name of the trust model; None: any, or a rival.
        private: whether its runs protect anybody by cloister's own account; False for a rival.
        picked: method that ``auto`` chose.
        requested: number of runs requested.
        nicv: cost of each finished run.
        seconds: of each finished run.
        refused: why there are no costs, or None.
        unclipped: NICV of the unclipped rows in each finished run; empty if none lies outside the bounds.
        rival: the rival that it is of, or None.
    """

    label: str
    epsilon: float
    trust: str | None
    private: bool
    picked: str | None
    requested: int
    nicv: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()
    refused: str | None = None
    unclipped: tuple[float, ...] = ()
    rival: Rival | None = None

    @property
    def guarantee(self) -> str:
        """Trust model of a private cell, or what a rival states; else that it is not private."""
        if self.private:
            return self.trust or "any"
        stated = "none" if self.rival is None else self.rival.guarantee
        return "NOT private" if stated == "none" else f"states {stated}"

    @property
    def mean_unclipped(self) -> float | None:
        """Mean NICV of the unclipped rows; None if none lies outside the bounds."""
        return sum(self.unclipped) / len(self.unclipped) if self.unclipped else None

    @property
    def mean(self) -> Mean | None:
        """Mean NICV with its standard error; None without a finished run."""
        return mean_interval(self.nicv) if self.nicv else None

    @property
    def time(self) -> float | None:
        """Mean seconds per run; None without a finished run."""
        return sum(self.seconds) / len(self.seconds) if self.seconds else None


@final
@attrs.frozen
class Study:
    """Costs of a comparison. NOT private.

    NICV is the mean squared distance of the rows to the nearest centre, in the conditions' units of distance.

    Args:
        conditions: shared by all runs.
        costs: NICV by name of ``BASELINES``.
        cells: by budget, then contender.
    """

    conditions: Conditions
    costs: dict[str, float]
    cells: tuple[Cell, ...]

    def baseline(self, name: str) -> str:
        """Describe a baseline, and say if it is not private, as are bounds read off the rows."""
        text = BASELINES[name]
        return text.replace("no data", "NOT private") if self.conditions.read_off else text

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Budgets, in the order given."""
        return tuple(dict.fromkeys(cell.epsilon for cell in self.cells))

    def at(self, epsilon: float) -> list[Cell]:
        """Return the cells of a budget."""
        return [cell for cell in self.cells if cell.epsilon == epsilon]

    def ratio(self, nicv: float) -> float | None:
        """Return a cost over that of non-private k-means++; None if the latter is 0."""
        return nicv / self.costs[REFERENCE] if self.costs[REFERENCE] > 0 else None

    def records(self) -> list[dict[str, Any]]:
        """Return a flat record per cell and baseline, for a data frame or CSV."""
        records = [_record(self, cell) for cell in self.cells]
        for epsilon in self.epsilons:
            for name, cost in self.costs.items():
                facts = {"epsilon": epsilon, "method": name, "nicv": cost, "ratio": self.ratio(cost)}
                records.append({**dict.fromkeys(records[0]), **facts, "note": self.baseline(name), "figures": NOTE})
        return records

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON, with the cost of every run."""
        cells = [
            {**_record(self, cell), "all_nicv": list(cell.nicv), "all_seconds": list(cell.seconds)}
            for cell in self.cells
        ]
        return {
            "private": False,
            "note": NOTE,
            "conditions": self.conditions.as_dict(),
            "baselines": dict(self.costs),
            "cells": cells,
        }

    def csv(self) -> str:
        """Return the records as CSV."""
        import csv

        text, records = io.StringIO(newline=""), self.records()
        writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return text.getvalue()

    def table(self, width: int = 110) -> str:
        """Return the tables as text, one per budget. Args: width (in characters)."""
        return text_of(self, width)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the cost against the budget with error bars, and save it as PNG or SVG if a path is given.

        Raises:
            MissingExtra: matplotlib is not installed.
            InvalidInput: the path cannot be written.
        """
        figure = figure_of(self)
        if path is not None:
            save(figure, Path(path))
        return figure


def labels_of(cells: Sequence[Cell]) -> list[str]:
    """Return the labels of the contenders, in order."""
    return list(dict.fromkeys(cell.label for cell in cells))


def _record(study: Study, cell: Cell) -> dict[str, Any]:
    mean = cell.mean
    error = None if mean is None or len(cell.nicv) < 2 else mean.standard_error
    return {
        "epsilon": cell.epsilon,
        "method": cell.label,
        "trust": cell.trust,
        "private": cell.private,
        "picked": cell.picked,
        "nicv": None if mean is None else mean.value,
        "standard_error": error,
        "unclipped_nicv": cell.mean_unclipped,
        "ratio": None if mean is None else study.ratio(mean.value),
        "runs": len(cell.nicv),
        "runs_asked": cell.requested,
        "seconds": cell.time,
        "note": cell.refused,
        "figures": NOTE,
    }


HEADING = (
    "NOT private: these costs were computed from the rows themselves, to choose a method on generated or public rows."
)

LEGEND = (
    "NICV: mean squared distance to the nearest centre, mean ± standard error over runs with secret noise; ratio: NICV "
    "over that of scikit-learn's non-private k-means++."
)


def text_of(study: Study, width: int) -> str:
    """Return the tables, with the conditions and a legend."""
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


def _table(study: Study, epsilon: float) -> Table:
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


def _row(study: Study, cell: Cell) -> tuple[str, ...]:
    shown = cell.label + ("" if cell.picked is None else f" ({cell.picked})")
    runs = f"{len(cell.nicv)} of {cell.requested}"
    if cell.mean is None:
        return shown, "", "refused" if cell.refused else "-", "", runs, ""
    error = None if len(cell.nicv) < 2 else cell.mean.standard_error
    return (
        shown,
        cell.guarantee,
        Estimate(cell.mean.value, error).text,
        _ratio(study, cell.mean.value),
        runs,
        f"{cell.time:.2g}",
    )


def _ratio(study: Study, cost: float) -> str:
    ratio = study.ratio(cost)
    return "-" if ratio is None else f"{ratio:.3f}"


def _notes(study: Study) -> list[str]:
    """Return the costs of unclipped rows, the reasons for refusals (each once), and the flaws of rivals."""
    reasons = dict[str, list[str]]()
    for cell in study.cells:
        if cell.refused is not None:
            reasons.setdefault(f"{cell.label}: {cell.refused}", []).append(f"{cell.epsilon:g}")
    refused = [f"refused at epsilon = {', '.join(at)}: {reason}" for reason, at in reasons.items()]
    unclipped_costs = [
        f"{cell.label} at epsilon = {cell.epsilon:g}: NICV {cell.mean_unclipped:.4g} of the unclipped rows."
        for cell in study.cells
        if cell.mean_unclipped is not None
    ]
    rivals = {cell.label: cell.rival for cell in study.cells if cell.rival is not None}
    return [*unclipped_costs, *refused, *(f"{label} {rival.text}" for label, rival in rivals.items())]


TITLE = "Cost against privacy budget"

WARNING = "NOT private: computed from the rows themselves"


def figure_of(study: Study) -> Figure:
    """Draw the cost against the budget, without a window or global state. Raises: MissingExtra."""
    with settings():
        figure, axes = frame(0.6, below=0.8 + 0.22 * ((len(labels_of(study.cells)) + 3) // 2))
        for number, label in enumerate(labels_of(study.cells)):
            _line(axes, study, label, number)
        _baselines(axes, study)
        axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="mean squared distance (NICV)")
        axes.set_xticks(study.epsilons, [f"{epsilon:g}" for epsilon in study.epsilons])
        axes.minorticks_off()
        label_decades(axes)
        axes.grid(color="#DDDDDD", linewidth=0.6)
        _words(figure, study)
    return figure


def label_decades(axes: Axes) -> None:
    """Label a logarithmic vertical axis: one, three or nine labels per decade, by their range."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    low, high = axes.get_ylim()
    steps = (1.0,) if high > 1000 * low else (1.0, 2.0, 5.0) if high > 10 * low else tuple(map(float, range(1, 10)))
    axes.yaxis.set_major_locator(LogLocator(subs=steps))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def save(figure: Figure, path: Path) -> None:
    """Write PNG or SVG by the path's ending. Raises: InvalidInput: the path cannot be written."""
    save_figure(figure, checked_target(path, ENDINGS, "pictures"), f"{TITLE} ({WARNING})")


def _line(axes: Axes, study: Study, label: str, number: int) -> None:
    cells = [cell for cell in study.cells if cell.label == label and cell.mean is not None]
    if not cells:
        return
    means = [cell.mean for cell in sorted(cells, key=lambda cell: cell.epsilon) if cell.mean is not None]
    at = sorted(cell.epsilon for cell in cells)
    single = any(len(cell.nicv) < 2 for cell in cells)
    style: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
    errors = None if single else [mean.standard_error for mean in means]
    shown = label if all(cell.private for cell in cells) else f"{label} ({cells[0].guarantee})"
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


def _baselines(axes: Axes, study: Study) -> None:
    if study.costs[REFERENCE] > 0:
        axes.axhline(
            study.costs[REFERENCE], color=INK, linewidth=0.9, linestyle="--", label=f"{REFERENCE}, NOT private"
        )
    axes.axhline(study.costs[MIDPOINT], color=FAINT, linewidth=0.9, linestyle=":", label=MIDPOINT)


def _words(figure: Figure, study: Study) -> None:
    width, height = (float(inches) for inches in figure.get_size_inches())
    conditions = study.conditions
    lines = (
        (TITLE, 0.14, 13, "bold", INK),
        (WARNING, 0.42, 10, "bold", ALARM),
        (
            f"{conditions.count:,} rows, {len(conditions.columns)} columns, k = {conditions.centers}, delta = "
            f"{conditions.delta:.3g}; mean ± standard error of runs",
            0.62,
            10,
            "normal",
            FAINT,
        ),
    )
    for text, down, size, weight, color in lines:
        figure.text(0.15 / width, 1 - down / height, text, fontsize=size, fontweight=weight, color=color, va="top")
    legend(figure)

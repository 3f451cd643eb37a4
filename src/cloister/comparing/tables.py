"""A study as tables, one per budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.comparing.figures import Cell, Figures
from cloister.comparing.rivals import FLAWS
from cloister.run.estimates import Estimate

if TYPE_CHECKING:
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
        shown, trust, Estimate(cell.mean.value, error).text,
        _ratio(study, cell.mean.value), runs, f"{cell.time:.2g}",
    )  # fmt: skip


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

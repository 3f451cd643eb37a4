"""Results of a benchmark as tables of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.lab.bench.contest import MEAN, MIDPOINT, REFERENCE
from cloister.lab.bench.report.summary import BenchSummary, Panel
from cloister.lab.comparing.study_file import NOTE

if TYPE_CHECKING:
    from rich.table import Table

LABELS = {REFERENCE: "k-means++, not private", MIDPOINT: "midpoint, no data", MEAN: "mean, not private"}
"""Names of the baselines, which are short here."""

COSTS = (
    "Cost: mean squared distance to the nearest centre (NICV), in units in which each column's bounds are -1 and 1; "
    "mean ± standard error. Time: median of the whole process, which reads the rows as text; memory: its peak."
)


def text_of(summary: BenchSummary, width: int = 110) -> str:
    """Return badges and tables as text. Args: width (in characters)."""
    from rich.console import Console

    console = Console(width=width, markup=False, emoji=False, highlight=False, color_system=None)
    with console.capture() as captured:
        for text in (NOTE, *(f"machine: {machine}" for machine in summary.machines), COSTS):
            console.print(text, soft_wrap=True)
        console.print()
        console.print(_badges(summary))
        for entrant in summary.entrants:
            if entrant.not_installed is not None:
                console.print(f"{entrant.name} is not installed: {entrant.not_installed}", soft_wrap=True)
        for panel in summary.panels:
            console.print()
            console.print(_costs(panel))
        for name, why in summary.skipped:
            console.print(f"skipped: {name}: {why}", soft_wrap=True)
        for name, reason, _ in summary.failures():
            console.print(f"failed: {name}: {reason}", soft_wrap=True)
    return captured.get().removesuffix("\n")


def _badges(summary: BenchSummary) -> Table:
    from rich.table import Table

    table = Table(title="Entrants", title_justify="left")
    for name in ("entrant", "guarantee", "trust", "badge"):
        table.add_column(name, overflow="fold")
    for entrant in summary.entrants:
        table.add_row(entrant.name, entrant.facts["guarantee"], entrant.facts["trust"], entrant.badge)
    return table


def _costs(panel: Panel) -> Table:
    from rich.table import Table

    table = Table(title=panel.title, title_justify="left")
    table.add_column("entrant", overflow="fold")
    for epsilon in panel.epsilons:
        table.add_column(f"ε = {epsilon:g}", justify="right")
    for name in ("s", "MiB"):
        table.add_column(name, justify="right", no_wrap=True)
    for entrant in panel.entrants:
        costs = (cell.text for cell in panel.of(entrant))
        table.add_row(entrant, *costs, panel.time(entrant), panel.memory(entrant))
    table.add_section()
    for name, cost in panel.baselines.items():
        table.add_row(LABELS[name], *[f"{cost:.4g}"] * len(panel.epsilons), "", "")
    return table

"""Figures of a benchmark by set, entrant and budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np

from cloister.lab.bench.contest import MEAN, MIDPOINT, REFERENCE
from cloister.lab.bench.machine import machine_text
from cloister.lab.bench.results import Record, Results
from cloister.metrics import Mean, mean_interval
from cloister.run.estimates import Estimate

PRECISE = 1e-3
"""Relative error below which a mean is shown with four digits."""

BASELINES = {
    REFERENCE: "k-means++ without privacy, the best of 10 starts",
    MIDPOINT: "one centre in the middle of the bounds: no data",
    MEAN: "one centre at the exact mean, without privacy",
}


@final
@attrs.frozen
class EntrantSummary:
    """Entrant with its badge.

    Args:
        name: unique.
        facts: its own statement.
        badge: in a few words.
        checks: verdicts of its audit, as plain data.
        not_installed: why it did not take part, or None.
    """

    name: str
    facts: Record
    badge: str
    checks: tuple[Record, ...]
    not_installed: str | None

    @property
    def state(self) -> str:
        """``failed``, ``passed``, ``public`` (not private) or ``untested`` (not audited, or not installed)."""
        if self.not_installed is not None or not self.checks:
            return "untested"
        if any(check["state"] == "failed" for check in self.checks):
            return "failed"
        return "passed" if self.facts["guarantee"] != "none" else "public"


@final
@attrs.frozen
class BenchCell:
    """Runs of an entrant on a set under a budget.

    Args:
        entrant: its name.
        epsilon: budget.
        costs: of the finished runs.
        seconds: of the finished runs.
        peaks: peak memory of the finished runs, in MiB.
        failures: of the others, as plain data.
    """

    entrant: str
    epsilon: float
    costs: tuple[float, ...]
    seconds: tuple[float, ...]
    peaks: tuple[float, ...]
    failures: tuple[Record, ...]

    @property
    def mean(self) -> Mean | None:
        """Mean cost; None without a finished run."""
        return mean_interval(self.costs) if self.costs else None

    @property
    def text(self) -> str:
        """Mean cost with its standard error, and the number of failures, if any."""
        if self.mean is None:
            return f"{self.failures[0]['kind']}" if self.failures else "-"
        value, error = self.mean.value, None if len(self.costs) < 2 else self.mean.standard_error
        failed = f" ({len(self.failures)} failed)" if self.failures else ""
        if error is not None and error < PRECISE * value:
            return f"{value:.4g} ± {error:.1g}{failed}"
        return f"{Estimate(value, error).text}{failed}"


@final
@attrs.frozen
class Panel:
    """Set with one number of centres.

    Args:
        table: the set's record.
        k: number of centres.
        epsilons: budgets, in ascending order.
        entrants: names, in order.
        cells: by entrant, then budget.
    """

    table: Record
    k: int
    epsilons: tuple[float, ...]
    entrants: tuple[str, ...]
    cells: tuple[BenchCell, ...]

    @property
    def title(self) -> str:
        """Name, size and k of the set."""
        return f"{self.table['name']}: {self.table['rows']:,} rows, {self.table['columns']} columns, k = {self.k}"

    @property
    def baselines(self) -> dict[str, float]:
        """Cost of each baseline."""
        return {name: float(cost) for name, cost in self.table["baselines"][str(self.k)].items()}

    def of(self, entrant: str) -> list[BenchCell]:
        """Return the cells of an entrant, by budget."""
        return [cell for cell in self.cells if cell.entrant == entrant]

    def time(self, entrant: str) -> str:
        """Return the median time of an entrant's runs, as text."""
        seconds = [second for cell in self.of(entrant) for second in cell.seconds]
        return f"{np.median(seconds):.3g}" if seconds else "-"

    def memory(self, entrant: str) -> str:
        """Return the largest peak memory of an entrant's runs, as text."""
        peaks = [peak for cell in self.of(entrant) for peak in cell.peaks]
        return f"{max(peaks):,.0f}" if peaks else "-"


@final
@attrs.frozen
class BenchSummary:
    """Figures of a benchmark.

    Args:
        benchmark: the file's first line.
        machines: in a line each.
        entrants: in order.
        panels: sets with a number of centres.
        skipped: name and reason of each set that was not there.
    """

    benchmark: Record
    machines: tuple[str, ...]
    entrants: tuple[EntrantSummary, ...]
    panels: tuple[Panel, ...]
    skipped: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, results: Results) -> BenchSummary:
        """Return the summary of a file's results: of each entrant, the runs of its newest version."""
        newest = {record["name"]: record for record in results.of_kind("entrant")}
        runs = [run for run in results.of_kind("run") if newest.get(run["entrant"], {}).get("digest") == run["digest"]]
        tables = {record["name"]: record for record in results.of_kind("set") if "skipped" not in record}
        skipped = {r["name"]: str(r["skipped"]) for r in results.of_kind("set") if "skipped" in r}
        panels = list[Panel]()
        for name, table in tables.items():
            for k in dict.fromkeys(run["k"] for run in runs if run["set"] == name):
                panels.append(_panel(table, k, [run for run in runs if run["set"] == name and run["k"] == k]))
        return cls(
            results.head,
            tuple(machine_text(record) for record in results.of_kind("machine")),
            tuple(map(_entrant, newest.values())),
            tuple(panels),
            tuple((name, why) for name, why in skipped.items() if name not in tables),
        )

    def failures(self) -> list[tuple[str, str, str]]:
        """Return the different failures of each entrant: name, reason (how often), and the end of its log."""
        found = dict[tuple[str, str], list[str]]()
        for panel in self.panels:
            for cell in panel.cells:
                for failure in cell.failures:
                    found.setdefault((cell.entrant, f"{failure['kind']}: {failure['reason']}"), []).append(
                        failure["log"]
                    )
        return [(name, f"{reason} ({len(logs)} runs)", logs[-1]) for (name, reason), logs in found.items()]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        cells = [
            {
                "set": panel.table["name"],
                "k": panel.k,
                "entrant": cell.entrant,
                "epsilon": cell.epsilon,
                "cost": None if cell.mean is None else cell.mean.value,
                "standard_error": None if cell.mean is None or len(cell.costs) < 2 else cell.mean.standard_error,
                "runs": len(cell.costs),
                "failures": len(cell.failures),
                "seconds": float(np.median(cell.seconds)) if cell.seconds else None,
                "peak_mb": max(cell.peaks) if cell.peaks else None,
            }
            for panel in self.panels
            for cell in panel.cells
        ]
        baselines = [{"set": p.table["name"], "k": p.k, **p.baselines} for p in self.panels]
        entrants = [{**attrs.asdict(entrant), "checks": list(entrant.checks)} for entrant in self.entrants]
        head = {name: self.benchmark[name] for name in ("private", "note", "benchmark")}
        return {**head, "machines": list(self.machines), "entrants": entrants, "baselines": baselines, "cells": cells}


def _entrant(record: Record) -> EntrantSummary:
    audit = record.get("audit", {})
    why = record.get("not_installed")
    badge = "not installed" if why is not None else str(audit.get("badge", "not audited"))
    return EntrantSummary(record["name"], record["facts"], badge, tuple(audit.get("checks", ())), why)


def _panel(table: Record, k: int, runs: Sequence[Record]) -> Panel:
    epsilons = tuple(sorted({float(run["epsilon"]) for run in runs}))
    entrants = tuple(dict.fromkeys(str(run["entrant"]) for run in runs))
    cells = list[BenchCell]()
    for entrant in entrants:
        for epsilon in epsilons:
            every = [run for run in runs if run["entrant"] == entrant and run["epsilon"] == epsilon]
            ended = [run for run in every if "failure" not in run]
            costs, seconds, peaks = (tuple(float(run[key]) for run in ended) for key in ("cost", "seconds", "peak_mb"))
            failures = tuple(run["failure"] for run in every if "failure" in run)
            cells.append(BenchCell(entrant, epsilon, costs, seconds, peaks, failures))
    return Panel(table, k, epsilons, entrants, tuple(cells))

"""One round under local trust: figures 1 and 2, the additive error against n, coreset sizes, and rows needed.

Figures of a million people that are marked as simulated are of a sample's exact sums with noise as the oracles state it
(``simulation``); all others draw every report.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import attrs
import numpy as np

from cloister.core.types import AnyArray, Floats
from cloister.lab.papers import sets
from cloister.lab.papers.cells import Headline, PaperCell, PaperTable, Verdict
from cloister.lab.papers.figures import Figures, slope
from cloister.lab.papers.fits import request_of
from cloister.lab.papers.halves import halves
from cloister.lab.papers.mixtures import at_places, mixture
from cloister.lab.papers.paper import Paper
from cloister.lab.papers.simulation import simulated
from cloister.metrics import nicv, reference_centers
from cloister.run.fit import fit, source
from cloister.run.request import prepare

M, C = 10**6, 10**5
METHODS: Final = ("one-round", "one-round-lsh")
"""cloister's design, and the paper's method as it was run."""

SAMPLE: Final = 40_000
SMALLEST: Final = (4, 8, 16, 32)
"""Rows of the smallest place over sqrt(n): such places decide what is lost as n grows."""

NEEDED: Final = {
    "d = 2, like s1": (15, 2, 0),
    "d = 10, r = 4": (8, 10, 4),
    "d = 10, r = 100": (8, 10, 100),
    "d = 100, r = 4": (8, 100, 4),
    "d = 100, r = 100": (8, 100, 100),
}
"""Mixtures of the table of rows needed: k, d and r."""

REAL: Final = ("s1", "birch2", "skin", "shuttle")
BESIDE: Final = {
    "one-round": "one-round",
    "one-round-lsh": "one-round-lsh",
    "naive-noise": "naive-noise",
    "damped-lloyd, a trusted curator": "damped-lloyd",
    "not private": "not private",
}


def cells(quick: bool) -> Iterator[PaperCell]:
    """Yield the figures."""
    yield from _figures(quick)
    for n, smallest in itertools.product(_sizes(quick), SMALLEST[:2] if quick else SMALLEST):
        data = f"places {n} 4 2 {smallest} simulated"
        for method in ("one-round", "one-round-net-tree"):
            yield PaperCell(
                "additive error", f"{smallest} sqrt(n) rows", method, n, data, method, 4, 4.0, 3 if quick else 10
            )
    for n in (10**4, C, M):
        for method in (*METHODS, "one-round-net-tree"):
            data = f"mixture {n} 8 100 100 simulated"
            yield PaperCell("coreset size", "d = 100, k = 8", method, n, data, method, 8, 1.0, 1 if quick else 5)
    if not quick:
        yield from _long()


def _sizes(quick: bool) -> list[int]:
    return [round(10 ** (4 + i / 2)) for i in ((0, 2, 4) if quick else range(5))]


def _figures(quick: bool) -> Iterator[PaperCell]:
    """Yield figures 1 and 2, whose middle is a million people, k = 8, epsilon = 1 and r = 100."""
    points: list[tuple[str, str, float, int, int, float, int]]
    points = [("figure 1", "n", n, n, 8, 1.0, 100) for n in (10**4, C, M)]
    points += [("figure 1", "epsilon", epsilon, M, 8, epsilon, 100) for epsilon in (0.5, 1.0, 2.0, 4.0)]
    points += [("figure 1", "k", k, M, k, 1.0, 100) for k in (4, 8, 16, 32)]
    points += [("figure 2", "r", r, M, 8, 1.0, r) for r in (2, 4, 8, 16, 100)]
    for table, panel, x, n, k, epsilon, r in points:
        how = "simulated" if quick and n == M else "drawn"
        for method in METHODS:
            data = f"mixture {n} {k} 100 {r} {how}"
            yield PaperCell(table, panel, method, x, data, method, k, epsilon, 1 if quick else 10)


def _long() -> Iterator[PaperCell]:
    grid = itertools.product((2, 10, 100), (C, M), (4, 8, 16, 32), (2, 4, 8, 16, 100), (0.5, 1.0, 2.0, 4.0))
    for d, n, k, r, epsilon in grid:
        data = f"mixture {n} {k} {d} {r} simulated"
        yield PaperCell(
            "more mixtures", f"d = {d}, n = {n}, k = {k}", f"r = {r}", epsilon, data, "one-round", k, epsilon, 1
        )
    for (panel, (k, d, r)), epsilon in itertools.product(NEEDED.items(), (1.0, 2.0, 4.0)):
        data = f"mixture 0 {k} {d} {r} simulated"
        yield PaperCell("rows needed", panel, "one-round", epsilon, data, "one-round", k, epsilon, 1)
    for data, epsilon in itertools.product(REAL, (1.0, 4.0)):
        for series, method in BESIDE.items():
            yield PaperCell("real rows", data, series, epsilon, data, method, sets.clusters(data), epsilon, 3)
    for half, number in itertools.product(("encode", "decode"), (256, 512, 1024)):
        given = (("tree.cells", number), ("partitions", 1))
        yield PaperCell(
            "speed", "d = 100", half, number, "mixture 200000 8 100 100 drawn", "one-round", 8, 1.0, 1, given
        )


def measure(cell: PaperCell, number: int) -> float:
    """Return a run's cost per row, cost, size of the coreset, or number of rows."""
    if cell.table == "rows needed":
        return rows_needed(cell)
    if cell.table == "real rows":
        return _on_real_rows(cell, number)
    if cell.table == "speed":
        return _per_second(cell)
    kind, n, k, d, spread, how = cell.data.split()
    shown = min(int(n), SAMPLE) if how == "simulated" else int(n)
    if kind == "places":
        rows = at_places(shown, int(k), int(d), number, float(spread) * (shown / int(n)) ** 0.5)
    else:
        rows = mixture(shown, int(k), int(d), float(spread), number)[0]
    request = request_of(cell, int(n), "ball:1", delta=0.0, seed=number)
    if how == "drawn":
        return nicv(rows, fit(request, source(rows, threads=1)).centers)
    found = simulated(request, rows, number)
    if cell.table == "coreset size":
        return float(found.details["leaves"])
    return nicv(rows, found.centers) * (int(n) if kind == "places" else 1)


def rows_needed(cell: PaperCell, seeds: int = 4) -> float:
    """Return the least n, in steps of 10^(1/4), whose mean simulated cost is at most twice that of the true centres."""
    _, _, k, d, r, how = cell.data.split()

    def enough(step: int) -> bool:
        n = round(10 ** (step / 4))
        made = attrs.evolve(cell, table="", data=f"mixture {n} {k} {d} {r} {how}")
        best = [nicv(*mixture(min(n, SAMPLE), int(k), int(d), float(r), seed)) for seed in range(seeds)]
        return bool(np.mean([measure(made, seed) for seed in range(seeds)]) <= 2 * np.mean(best))

    low, high = 11, 36
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(10 ** (high / 4))


@lru_cache(maxsize=1)
def repeated(name: str) -> Floats:
    """Return a set with each row repeated up to a million rows, with normal jitter of deviation 0.01, clipped."""
    data, g = sets.data_of(name), np.random.default_rng(7)
    rows: AnyArray = np.repeat(data.rows, -(-M // len(data.rows)), axis=0)
    rows = rows[g.permutation(len(rows))[:M]]
    return np.clip(rows + 0.01 * g.standard_normal(rows.shape), -1.0, 1.0)


def _on_real_rows(cell: PaperCell, number: int) -> float:
    rows = repeated(cell.data)
    if cell.method == "not private":
        return nicv(rows, reference_centers(rows[:C], cell.k, seed=number))
    delta = sets.delta(M) if cell.method == "damped-lloyd" else 0.0
    return nicv(rows, fit(request_of(cell, M, delta=delta), source(rows, threads=1)).centers)


def _per_second(cell: PaperCell) -> float:
    """Return the millions of people whose reports a thread makes, or reads, in a second."""
    _, n, k, d, r, _ = cell.data.split()
    rows, _ = mixture(int(n), int(k), int(d), float(r), 0)
    plan = prepare(request_of(cell, int(n), "ball:1", delta=0.0), [str(j) for j in range(int(d))])
    return int(n) / halves(plan, rows)[cell.series == "decode"] / 1e6


def headlines(figures: Figures) -> list[Headline]:
    """Judge the paper's claims."""
    made = []
    for table in ("figure 1", "figure 2"):
        made += [
            figures.against(f"one-round-lsh against the paper's method ({table})", table, "one-round-lsh", "prototype"),
            figures.against(f"one-round against the paper's method ({table})", table, "one-round", "prototype"),
        ]
    for method in ("one-round", "one-round-net-tree"):
        made.append(growth(figures, method, "additive error grows as sqrt(n) (Theorem 1)"))
    return made


def growth(figures: Figures, series: str, claim: str) -> Headline:
    """Judge the slope of the additive error against n, which should be a half."""
    points = [(x, mean.value) for (_, x), mean in figures.of("additive error", series).items() if mean.value > 0]
    if len({x for x, _ in points}) < 2:
        return Headline(f"{series}: {claim}", "slope 0.5", "no figure", "not measured")
    found, half = slope(points)
    verdict: Verdict = "beaten" if found + half < 0.5 else "met" if found - half <= 0.5 else "missed"
    return Headline(f"{series}: {claim}", "slope 0.5", f"slope {found:.2f} ± {half:.2f}", verdict)


PAPER: Final = Paper(
    "chang",
    "Chang, Ghazi, Kumar, Manurangsi: Locally private k-means in one round (2021)",
    "Mixtures of section 5 in the unit ball: centres at radius 1 - 1/r (the paper's 1 - Theta(r)), rows at a "
    "mean distance of 1/r, d = 100, k = 8, epsilon = 1, r = 100 and a million people where nothing else is "
    "said. Every person sends one report. The quick form simulates runs of a million people from a sample's "
    "exact sums and the oracles' noise. The additive error is the cost on rows at four places in two columns, "
    "of which the smallest holds 4 to 32 sqrt(n) rows.",
    (
        PaperTable(
            "figure 1",
            "Cost per row against n, epsilon and k",
            "n, epsilon or k",
            "cost per row",
            "xy",
            "our prototype",
        ),
        PaperTable("figure 2", "Cost per row against the separation r", "r", "cost per row", "x", "our prototype"),
        PaperTable(
            "additive error", "Cost on rows whose best cost is 0, at epsilon = 4 (simulated)", "n", "cost", "xy"
        ),
        PaperTable("coreset size", "Cells that the centres are found from (simulated)", "n", "cells", "xy"),
        PaperTable("more mixtures", "Cost per row (simulated)", "epsilon", "cost per row", "xy"),
        PaperTable(
            "rows needed", "Rows for at most twice the cost without privacy (simulated)", "epsilon", "rows", "xy"
        ),
        PaperTable("real rows", "Cost per row on real rows, repeated up to a million", "epsilon", "cost per row", "xy"),
        PaperTable("speed", "Reports that one thread makes and reads", "cells", "millions a second"),
    ),
    cells,
    measure,
    headlines,
    lambda cell: sets.missing(cell.data) if cell.table == "real rows" else None,
)

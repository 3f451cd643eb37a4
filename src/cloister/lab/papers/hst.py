"""Hierarchically separated trees: figures 2 and 3 (k-median against k), and k-means by trees at three budgets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import numpy as np

from cloister.core.clustering import Coreset, Released
from cloister.core.randomness import PublicRng
from cloister.core.registry.making import make
from cloister.core.types import Floats
from cloister.lab.papers import sets
from cloister.lab.papers.cells import Headline, PaperCell, PaperTable
from cloister.lab.papers.figures import Figures
from cloister.lab.papers.fits import fitted_centers, request_of
from cloister.lab.papers.paper import Paper
from cloister.metrics import k_median_cost, nicv
from cloister.run.fit import fit, source

SETS: Final = {"skin": "figure 2", "shuttle": "figure 2", "covertype_first20k": "figure 3", "higgs_10k": "figure 3"}
"""Sets with the figure that shows them: the paper has all rows of covertype and higgs."""

HST, CORESET, ROUNDS, KVARS, PLAIN = (
    "hst-median",
    "tree-coreset-median",
    "private-lloyd-median",
    "k-variates",
    "tree-alone-median",
)
METHODS: Final = (HST, CORESET, ROUNDS, KVARS, PLAIN)
"""cloister's; the paper's baselines Coreset, Private Lloyd and kvars; its Algorithm 1 as printed."""

BASE: Final = "kmed++, not private"
TREES: Final = ("s1", "birch2_25k", "shuttle", "g10k_d32_k16", "g100k_d10_k10")
MEANS: Final = ("hst-means", "tree-means", "tree-coreset", "tree-coreset-lsh", "fastlloyd")
LARGE: Final = "generated 11000000 28"


def cells(quick: bool) -> Iterator[PaperCell]:
    """Yield the figures."""
    chosen = ("shuttle", "higgs_10k") if quick else tuple(SETS)
    centres, epsilons, runs = ([5, 20], [0.5], 2) if quick else ([5, 10, 20, 40], [0.25, 0.5, 1.0], 10)
    for data, k in itertools.product(chosen, centres):
        for epsilon in epsilons:
            panel = f"{data}, epsilon = {epsilon:g}"
            yield PaperCell(SETS[data], panel, BASE, k, data, BASE, k, 0.0, runs)
            for method in (HST, CORESET, ROUNDS, PLAIN) if quick else METHODS:
                yield PaperCell(SETS[data], panel, method, k, data, method, k, epsilon, runs)
    for data, epsilon in itertools.product(("s1",) if quick else TREES, (0.25, 1.0) if quick else (0.25, 0.5, 1.0)):
        for method in MEANS:
            yield PaperCell(
                "k-means", data, method, epsilon, data, method, sets.clusters(data), epsilon, 2 if quick else 20
            )
    if not quick:
        for k, method in itertools.product((5, 10, 20, 40), (BASE, HST, CORESET)):
            panel = "generated, 11 million rows, epsilon = 0.5"
            yield PaperCell("figure 3", panel, method, k, LARGE, method, k, 0.5, 1)


def measure(cell: PaperCell, number: int) -> float:
    """Return a run's mean distance to the nearest centre, or NICV."""
    if cell.table == "k-means":
        return nicv(sets.data_of(cell.data).rows, fitted_centers(cell))
    if cell.data == LARGE:
        rows = generated(*(int(text) for text in LARGE.split()[1:]))
        centers = seeded(rows[:100_000], cell.k) if cell.method == BASE else _large_fit(cell, rows)
    else:
        rows = sets.data_of(cell.data).rows
        centers = seeded(rows, cell.k) if cell.method == BASE else fitted_centers(cell)
    return k_median_cost(rows, centers) / len(rows)


def seeded(rows: Floats, k: int) -> Floats:
    """Return centres (k, d) by D^1 seeding and ten Lloyd rounds of ten Weiszfeld steps. NOT private."""
    solver: Any = make("NonPrivateSolver", "kmedian++", starts=1, candidates=1, rounds=10, steps=10)
    found: Floats = solver.solve(Released(Coreset(rows, np.ones(len(rows))), ()), k, PublicRng.fresh())
    return found


@lru_cache(maxsize=1)
def generated(n: int, d: int) -> Floats:
    """Draw rows (n, d) of 40 groups of unequal width in [-1, 1], in place of all rows of higgs."""
    g = np.random.default_rng(5)
    places, widths = g.uniform(-0.7, 0.7, (40, d)), g.uniform(0.05, 0.25, 40)
    which = g.integers(0, 40, n)
    rows = g.standard_normal((n, d)) * widths[which, None] + places[which]
    return np.clip(rows, -1.0, 1.0, out=rows)


def _large_fit(cell: PaperCell, rows: Floats) -> Floats:
    return fit(request_of(cell, len(rows)), source(rows, threads=1)).centers


def headlines(figures: Figures) -> list[Headline]:
    """Judge the paper's claims, which it makes in words beside its pictures."""
    made = []
    for table, text in (("figure 2", "skin, shuttle"), ("figure 3", "covertype, higgs")):
        made += [
            figures.between(f"hst-median against no privacy ({text})", table, HST, BASE),
            figures.between(f"hst-median against the coreset heuristic ({text})", table, HST, CORESET),
            figures.between(f"hst-median against Private Lloyd ({text})", table, HST, ROUNDS),
            figures.between(f"hst-median against kvars ({text})", table, HST, KVARS),
            figures.between(f"Algorithm 1 as printed against hst-median ({text})", table, PLAIN, HST),
        ]
    made.append(figures.between("hst-means against FastLloyd, k-means", "k-means", "hst-means", "fastlloyd"))
    return made


PAPER: Final = Paper(
    "hst",
    "Cohen-Addad et al.: Scalable differentially private clustering via hierarchically separated trees (2022)",
    "Columns are scaled to [-1, 1] by the rows, delta is 1 / (n ln n), the public number of rows is n. Not "
    "private is k-median++ seeding and ten Lloyd rounds. The paper shows pictures alone, relative to the best "
    "cost of each, with epsilon = 0.5; it has all 581,012 rows of covertype and 11 million of higgs, here are "
    "the first 20,000 and 10,000, and 11 million generated rows of 28 columns. Its kvars needs the plugin of "
    "examples/cloister-baselines.",
    (
        PaperTable("figure 2", "k-median on skin and shuttle", "k", "mean distance", "xy"),
        PaperTable("figure 3", "k-median on covertype and higgs", "k", "mean distance", "xy"),
        PaperTable("k-means", "k-means by trees", "epsilon", "NICV", "xy"),
    ),
    cells,
    measure,
    headlines,
    lambda cell: None if cell.data == LARGE else sets.missing(cell.data),
)

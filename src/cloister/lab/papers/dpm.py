"""DPM: clustering without a number of clusters, on the sets of its table 2 that can be generated."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import attrs
import numpy as np

from cloister.core.types import Floats
from cloister.lab.papers import sets
from cloister.lab.papers.cells import Headline, PaperCell, PaperTable
from cloister.lab.papers.figures import Figures
from cloister.lab.papers.paper import Paper
from cloister.metrics import distances, nicv, reference_centers, silhouette
from cloister.run.fit import fit, source
from cloister.run.request import Request

ROWS, GROUPS, BOUND, SEED = 100_000, 64, 100.0, 42
GENERATED: Final = {"synth_10d": 10, "synth_big1": 100}
"""Columns of the generated sets: scikit-learn's blobs of deviation 1 with centres uniform in [-100, 100]."""

ELSEWHERE: Final = ("fashion_embs", "mnist_embs", "uci_letters", "uci_gas_emissions")
RANGE: Final = (2, 100)
"""Numbers of groups that a run chooses from."""

LINES: Final = {"auto, 2 to 100 groups": "unknown", "auto, 64 groups": "known", "k-means++, not private": "not private"}
TABLES: Final = ("inertia", "silhouette", "groups", "distance")


def cells(quick: bool) -> Iterator[PaperCell]:
    """Yield every figure of each set and line."""
    for data in (*GENERATED, *ELSEWHERE):
        for series, method in LINES.items():
            runs = 1 if quick or method == "not private" else 20
            for table in TABLES:
                yield PaperCell(f"table 2, {table}", data, series, 1.0, data, method, GROUPS, 1.0, runs)


@lru_cache(maxsize=2)
def population_of(data: str) -> tuple[Floats, Any]:
    """Return the rows (n, d) of a generated set, and their population."""
    from sklearn.datasets import make_blobs

    box = (-BOUND, BOUND)
    rows: Any = make_blobs(ROWS, GENERATED[data], centers=GROUPS, center_box=box, random_state=SEED)[0]
    return rows, source(rows, threads=1)


@lru_cache(maxsize=8)
def found_centers(cell: PaperCell, number: int) -> Floats:
    """Return the centres (k, d) of a run, whose figures are several cells."""
    rows, population = population_of(cell.data)
    if cell.method == "not private":
        return reference_centers(rows[:20_000], GROUPS, seed=number)
    k = RANGE if cell.method == "unknown" else GROUPS
    request = Request(k=k, epsilon=1.0, delta=sets.delta(ROWS), bounds=(-BOUND, BOUND), rows=ROWS)
    return fit(request, population).centers


def measure(cell: PaperCell, number: int) -> float:
    """Return a run's inertia per row, silhouette, number of groups, or distance of k-means' centres to its own."""
    table, rows = cell.table.removeprefix("table 2, "), population_of(cell.data)[0]
    centers = found_centers(attrs.evolve(cell, table="table 2"), number)
    if table == "groups":
        return float(len(centers))
    if table == "distance":
        return float(np.mean(distances(reference_centers(rows[:20_000], GROUPS, seed=0), centers).min(axis=1)))
    return nicv(rows, centers) if table == "inertia" else silhouette(rows, centers)


def headlines(figures: Figures) -> list[Headline]:
    """Judge runs that do not know the number of groups against k-means, which does."""
    unknown, known, plain = LINES
    made = [
        figures.between(f"inertia, {line}, against k-means without privacy", "table 2, inertia", line, plain)
        for line in (unknown, known)
    ]
    ours, theirs = figures.of("table 2, silhouette", unknown), figures.of("table 2, silhouette", plain)
    for place in ours:
        least, found = theirs[place].value - 0.05, ours[place].value
        claim, verdict = f"silhouette on {place[0]} without a number of groups", "met" if found >= least else "missed"
        made.append(Headline(claim, f"{theirs[place].value:.3f} (k-means)", f"{found:.3f}", verdict))  # type: ignore[arg-type]
    for (panel, _), mean in figures.of("table 2, groups", unknown).items():
        verdict = "met" if abs(mean.value - GROUPS) <= 0.05 * GROUPS else "missed"
        made.append(Headline(f"number of groups on {panel}", str(GROUPS), f"{mean.value:.3g}", verdict))  # type: ignore[arg-type]
    return made


PAPER: Final = Paper(
    "dpm",
    "Liebenow, Schütt, Braun, Gehrke, Thaeter, Mohammadi: DPM: Clustering sensitive data through separation (2024)",
    "epsilon = 1, delta = 1 / (n ln n), bounds of -100 and 100, zoom as by default. The paper's figures are in "
    "pictures and files that are not published, so that k-means++ without privacy stands beside ours, which "
    "knows that there are 64 groups. The distance is the mean one of k-means' centres to the nearest of ours.",
    tuple(
        PaperTable(f"table 2, {table}", f"{table.capitalize()} at epsilon = 1", "epsilon", table, "")
        for table in TABLES
    ),
    cells,
    measure,
    headlines,
    lambda cell: f"{cell.data} is not published as a table" if cell.data in ELSEWHERE else None,
)

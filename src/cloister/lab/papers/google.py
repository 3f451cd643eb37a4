"""Google's clustering (2021): cost per row against k at epsilon = 1 on the default set of its demo's generator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from cloister.core.types import AnyArray
from cloister.lab.papers.cells import Headline, PaperCell, PaperTable
from cloister.lab.papers.figures import Figures
from cloister.lab.papers.fits import request_of
from cloister.lab.papers.mixtures import mixture
from cloister.lab.papers.paper import Paper
from cloister.metrics import nicv, reference_centers
from cloister.run.fit import fit, source

GROUPS, COLUMNS, RATIO = 64, 100, 8.0
CENTRES: Final = (2, 4, 8, 16, 32, 64)
METHODS: Final = {"auto": "auto", "tree-coreset-lsh": "tree-coreset-lsh", "k-means++, not private": "not private"}
"""cloister's default, the preset of Google's method, and scikit-learn without privacy."""

ELSEWHERE: Final = {
    "letter": (16, "letter is not in the catalogue: get it from the UCI repository"),
    "gas": (64, "gas is not in the catalogue: get it from the UCI repository"),
    "mnist embeddings": (14, "the embeddings of mnist are not published"),
}


def cells(quick: bool) -> Iterator[PaperCell]:
    """Yield the costs of each k and method."""
    data = f"mixture {20_000 if quick else 100_000}"
    for k in (8, 64) if quick else CENTRES:
        for series, method in METHODS.items():
            yield PaperCell("plots", "synthetic", series, k, data, method, k, 1.0, 1 if quick else 5)
    for name in ELSEWHERE:
        yield PaperCell("plots", name, "auto", ELSEWHERE[name][0], name, "auto", ELSEWHERE[name][0], 1.0, 1)


@lru_cache(maxsize=2)
def population_of(n: int) -> tuple[AnyArray, Any]:
    """Return n rows of 64 groups whose radius is an eighth of the ball's, and their population."""
    rows, _ = mixture(n, GROUPS, COLUMNS, RATIO, 0)
    return rows, source(rows, threads=1)


def measure(cell: PaperCell, number: int) -> float:
    """Return the cost per row of a run in the unit ball, with delta = 1 / (n ln n)."""
    rows, population = population_of(int(cell.data.split()[1]))
    if cell.method == "not private":
        return nicv(rows, reference_centers(rows[:20_000], cell.k, seed=number))
    return nicv(rows, fit(request_of(cell, len(rows), "ball:1"), population).centers)


def headlines(figures: Figures) -> list[Headline]:
    """Judge against Google's program and against no privacy."""
    return [
        figures.against("auto against Google's program, k = 64", "plots", "auto", "Google's"),
        figures.against(
            "tree-coreset-lsh, Google's method here, against its program", "plots", "tree-coreset-lsh", "Google's"
        ),
        figures.between("auto against k-means++ without privacy", "plots", "auto", "k-means++, not private"),
    ]


PAPER: Final = Paper(
    "google",
    "Chang, Kamath: Practical differentially private clustering (2021), and google/differential-privacy",
    "The demo's generator by default: 100,000 rows of 100 columns in 64 groups in the unit ball, each an eighth"
    " as wide. epsilon = 1, delta = 1 / (n ln n). The quick form has two of six k.",
    (
        PaperTable(
            "plots", "Cost per row against k at epsilon = 1", "k", "cost per row", "xy", "read off pictures by eye"
        ),
    ),
    cells,
    measure,
    headlines,
    lambda cell: ELSEWHERE[cell.data][1] if cell.data in ELSEWHERE else None,
)

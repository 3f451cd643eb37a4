"""Constantly many rounds under local trust: additive error against n, what is measured with every report, constants."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import attrs
import numpy as np

from cloister.core.clustering import Coreset, Released
from cloister.core.encoding import encode_lattice
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.making import make
from cloister.core.types import AnyArray, Floats
from cloister.lab.papers.cells import Headline, Options, PaperCell, PaperTable
from cloister.lab.papers.chang import growth
from cloister.lab.papers.figures import Figures
from cloister.lab.papers.fits import request_of
from cloister.lab.papers.mixtures import at_places, mixture
from cloister.lab.papers.paper import Paper
from cloister.lab.papers.simulation import simulated
from cloister.metrics import cost
from cloister.run.fit import fit, source
from cloister.run.request import prepare

M, C = 10**6, 10**5
OURS, BEFORE, ONE, NAIVE = "weighted-centers", "nearest-centers", "one-round", "naive-noise"
SAMPLE: Final = 20_000
SMALLEST: Final = (4, 8, 16, 32)
"""Rows of the smallest place over sqrt(n): such places decide what is lost as n grows."""

UNBIASED: Final[Options] = (("clip_radius", 1.25),)
"""Half an interval, so that no row of the fullest box is clipped. The default clips more, for a bias that stays."""

POWERS: Final = {"k-means": 2, "k-median": 1}
SOLVERS: Final = {1: "kmedian++", 2: "kmeans++"}
CONSTANTS: Final[dict[str, tuple[Any, ...]]] = {
    "radii": (1, 2, 3),
    "largest_radius": (0.25, 0.35, 0.5, 1.0),
    "repetitions": (1, 2, 4, 8),
    "projections": (1, 2, 3, 4, 8),
    "near_chance": (0.3, 0.5, 0.7),
    "interval_length": (1.5, 2.5, 4.0),
    "clip_radius": (0.35, 0.7, 1.5, 3.0),
    "center_threshold": (1.0, 2.0, 3.0),
}
"""Constants that the paper leaves open, and what is tried of each."""

PLACES: Final = ((M, 10, 8, 1.0, 4), (C, 2, 8, 1.0, 4), (C, 10, 8, 2.0, 4), (C, 10, 4, 2.0, 100), (M, 10, 8, 4.0, 100))
"""Where constants are tried: n, d, k, epsilon and r."""


def cells(quick: bool) -> Iterator[PaperCell]:
    """Yield the figures."""
    sizes = [round(10 ** (4 + i / 2)) for i in ((0, 2, 4) if quick else range(5))]
    for n, smallest, power in itertools.product(sizes, SMALLEST[::3] if quick else SMALLEST, POWERS):
        data = f"places {n} 4 2 {smallest} simulated"
        for method in (OURS, BEFORE):
            panel, series = f"{smallest} sqrt(n) rows", f"{method}, {power}"
            yield PaperCell("additive error", panel, series, n, data, method, 4, 4.0, 2 if quick else 10, UNBIASED)
    yield from _measured(quick)
    for d, k in itertools.product((2, 10), (4, 8)):
        data = f"mixture {C} {k} {d} 4 drawn"
        for table in ("rounds", "bytes"):
            yield PaperCell(table, f"d = {d}", OURS, k, data, OURS, k, 1.0, 1)
    yield from _constants(quick)
    if not quick:
        yield from _regime()


def _measured(quick: bool) -> Iterator[PaperCell]:
    """Yield the costs with every report drawn."""
    numbers = ((C,), (2, 10), (4,), (1.0, 4.0)) if quick else ((C, M), (2, 10), (4, 8), (1.0, 2.0, 4.0))
    for power, n, d, k, epsilon in itertools.product(POWERS, *numbers):
        data, panel = f"mixture {n} {k} {d} 4 drawn", f"{power}, n = {n}, d = {d}, k = {k}"
        runs = 1 if quick else 3
        for method in (OURS, ONE) if quick else (OURS, ONE, NAIVE):
            yield PaperCell("measured", panel, f"{method}, {power}", epsilon, data, method, k, epsilon, runs)
        yield PaperCell("measured", panel, f"not private, {power}", epsilon, data, "not private", k, epsilon, 1)
        yield PaperCell("measured", panel, f"one centre, {power}", epsilon, data, "one centre", k, epsilon, 1)


def _constants(quick: bool) -> Iterator[PaperCell]:
    names = ("radii", "center_threshold") if quick else tuple(CONSTANTS)
    for name in names:
        for value, (n, d, k, epsilon, r) in itertools.product(CONSTANTS[name], PLACES[1:2] if quick else PLACES):
            data, panel = (
                f"mixture {n} {k} {d} {r} simulated",
                f"n = {n}, d = {d}, k = {k}, epsilon = {epsilon:g}, r = {r}",
            )
            yield PaperCell(
                "constants", panel, name, value, data, OURS, k, epsilon, 1 if quick else 3, ((name, value),)
            )


def _regime() -> Iterator[PaperCell]:
    for d, r, n, epsilon in itertools.product((2, 10), (4, 16, 100), (C, M, 10**7), (1.0, 4.0)):
        data = f"mixture {n} 8 {d} {r} simulated"
        for method in (OURS, BEFORE, ONE):
            yield PaperCell(
                "regime", f"d = {d}, r = {r}, epsilon = {epsilon:g}", method, n, data, method, 8, epsilon, 3
            )


def measure(cell: PaperCell, number: int) -> float:
    """Return a run's cost per row, cost, number of rounds, or bytes of a person's answers."""
    power = POWERS["k-median" if cell.series.endswith("k-median") else "k-means"]
    if cell.table in ("rounds", "bytes"):
        return float(rounds_and_bytes(cell)[0 if cell.table == "rounds" else 1])
    kind, total, *_, how = cell.data.split()
    rows = rows_of(cell.data, number)
    if cell.method in ("not private", "one centre"):
        centers = without_privacy(rows, cell.k if cell.method == "not private" else 1, power, number)
        return cost(rows, centers, power) / len(rows)
    request = request_of(_with_solver(cell, power), int(total), "ball:1", delta=0.0, seed=number)
    if how == "drawn":
        return cost(rows, fit(request, source(rows, threads=1)).centers, power) / len(rows)
    per_row = cost(rows, simulated(request, rows, number).centers, power) / len(rows)
    return per_row * int(total) if kind == "places" else per_row


@lru_cache(maxsize=4)
def rows_of(data: str, seed: int) -> AnyArray:
    """Return the rows (n, d) of a recipe; of a simulated one a sample."""
    kind, n, k, d, spread, how = data.split()
    shown = min(SAMPLE, int(n)) if how == "simulated" else int(n)
    if kind == "places":
        return at_places(shown, int(k), int(d), seed, float(spread) * (shown / int(n)) ** 0.5)
    return mixture(shown, int(k), int(d), float(spread), seed)[0]


def _with_solver(cell: PaperCell, power: int) -> PaperCell:
    """Give all methods the same solver of the right power."""
    parts: Options = (("solver", SOLVERS[power]),)
    if cell.method == ONE:
        parts = (("solver", "ward"),) if power == 2 else (("solver", "kmedian++"), ("grid_solver", "kmedian++"))
    return attrs.evolve(cell, options=(*cell.options, *parts))


def without_privacy(rows: AnyArray, k: int, power: int, seed: int) -> Floats:
    """Return centres (k, d) that the solver finds in a sample of the rows. NOT private."""
    sample = rows[:SAMPLE].astype(np.float64)
    solver: Any = make("NonPrivateSolver", SOLVERS[power])
    found: Floats = solver.solve(Released(Coreset(sample, np.ones(len(sample))), ()), k, PublicRng.from_seed(seed))
    return found


def rounds_and_bytes(cell: PaperCell) -> tuple[int, int]:
    """Return the number of rounds, and the most bytes that one person's answers have in all of them."""
    _, n, _, d, *_ = cell.data.split()
    request = request_of(_with_solver(cell, 2), int(n), "ball:1", delta=0.0, seed=0)
    plan, users = prepare(request, [str(j) for j in range(int(d))]), np.arange(200, dtype=np.uint64)
    total, rounds = np.zeros(len(users)), plan.forecast(PublicRng.from_seed(0))
    for asked in rounds:
        for report in encode_lattice(asked, np.zeros((len(users), int(d)), np.int64), users, NoiseRng.secret()):
            total[report.users.astype(int)] += report.answers[:1].nbytes
    return len(rounds), int(total.max())


def headlines(figures: Figures) -> list[Headline]:
    """Judge the paper's claims."""
    made = [
        growth(figures, f"{method}, {power}", claim)
        for power in POWERS
        for method, claim in (
            (OURS, "additive error near sqrt(n) (Theorem 4.11)"),
            (BEFORE, "predecessor, n^(2/3) proved"),
        )
    ]
    rounds = [mean.value for mean in figures.of("rounds", OURS).values()]
    claim = "a constant number of rounds, whatever n, d and k (Theorem 4.11)"
    if rounds:
        made.append(Headline(claim, "constant", f"{max(rounds):g}", "met" if len(set(rounds)) == 1 else "missed"))
    for power in POWERS:
        against = f"weighted-centers against one-round, {power}"
        made.append(figures.between(against, "measured", f"{OURS}, {power}", f"{ONE}, {power}"))
        against = f"weighted-centers against one centre, {power}"
        made.append(figures.between(against, "measured", f"{OURS}, {power}", f"one centre, {power}"))
    return made


PAPER: Final = Paper(
    "stemmer",
    "Stemmer: Locally private k-means clustering (2021)",
    "The paper has no experiments. Its Table 1 states rounds and errors; the additive error is measured as the "
    "cost on rows at four places in two columns (best cost 0), of which the smallest holds 4 to 32 sqrt(n) "
    "rows, at epsilon = 4, simulated from a sample's exact sums and the oracles' noise. All other tables are on"
    " mixtures of Chang et al. (r = 4), with every report drawn where nothing else is said. The published slope"
    " is a bound.",
    (
        PaperTable("additive error", "Cost on rows whose best cost is 0 (simulated)", "n", "cost", "xy"),
        PaperTable("measured", "Cost per row, every report drawn", "epsilon", "cost per row", "xy"),
        PaperTable("rounds", "Rounds of a run", "k", "rounds"),
        PaperTable("bytes", "Bytes that one person sends in all rounds", "k", "bytes"),
        PaperTable(
            "constants",
            "Cost per row by constants that the paper leaves open (simulated)",
            "value",
            "cost per row",
            "y",
        ),
        PaperTable("regime", "Cost per row against n (simulated)", "n", "cost per row", "xy"),
    ),
    cells,
    measure,
    headlines,
    lambda cell: None,
)

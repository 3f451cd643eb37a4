"""FastLloyd: figure 2 (cost against epsilon on ten sets), figures 3 and 4 (areas), figure 5 (ablation), table 3."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

import attrs

from cloister.lab.papers import sets
from cloister.lab.papers.cells import Headline, Options, PaperCell, PaperTable
from cloister.lab.papers.figures import Figures, judged
from cloister.lab.papers.fits import fitted_centers
from cloister.lab.papers.paper import Paper
from cloister.lab.papers.pooled import bytes_per_round, milliseconds
from cloister.metrics import nicv

EPSILONS: Final = sets.EPSILONS
NAMES: Final = ("SuLloyd", "GLloyd", "FastLloyd")
METHODS: Final = {
    "SuLloyd": "su-lloyd",
    "GLloyd": "gauss-lloyd",
    "FastLloyd": "fastlloyd",
    "auto": "auto",
    "Lloyd, not private": "lloyd",
}
"""Lines of figure 2: the paper's three as cloister has them, cloister's default, and no privacy."""

TEN: Final = (
    "adult",
    "birch2_25k",
    "iris",
    "breast_wisconsin_699",
    "yeast",
    "house",
    "lsun",
    "s1",
    "wine",
    "mnist_test10k",
)
QUICK_SETS: Final = ("iris", "wine", "lsun", "house")
PICTURES: Final = "pictures in the paper; the figures beside ours are of the authors' program as run by us"
ALPHAS: Final = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2)
PLAIN: Final[Options] = (("radius", "none"), ("border", "none"), ("clip_steps", False))
ABLATION: Final = [
    f"ablation {k} {d} {separation} 1"
    for k, d, separation in itertools.product(
        sets.ABLATION_GRID, sets.ABLATION_GRID, (str(one) for one in sets.ABLATION_SEPARATIONS)
    )
]
"""Appendix B's 48 sets."""

STRIDE: Final = 25
"""Step between the sets of subsequent runs, which has no common divisor with their number: half of them are mixed."""

TIMED: Final = (
    ("TimeSynth 10K", 10_000, 2),
    ("TimeSynth 10K", 10_000, 5),
    ("TimeSynth 100K", 100_000, 2),
    ("TimeSynth 100K", 100_000, 5),
    ("LSun", 400, 3),
    ("S1", 5_000, 15),
)
"""PaperTable 3's rows: data, number of rows, k; the first four in 2 and 5 columns, the others in 2."""


def cells(quick: bool) -> Iterator[PaperCell]:
    """Yield the figures."""
    yield from _figure_2(quick)
    if not quick:
        yield from _areas()
    yield from _figure_5(quick)
    yield from _table_3(quick)


def _figure_2(quick: bool) -> Iterator[PaperCell]:
    chosen, epsilons = (QUICK_SETS, (0.1, 0.5, 1.0)) if quick else (TEN, EPSILONS)
    for data in chosen:
        for epsilon, (series, method) in itertools.product(epsilons, METHODS.items()):
            runs = 6 if quick else 20 if data in ("adult", "birch2_25k", "mnist_test10k") else 100
            yield PaperCell("figure 2", data, series, epsilon, data, method, sets.clusters(data), epsilon, runs)


def _areas() -> Iterator[PaperCell]:
    """Yield figures 3 and 4: a cell for every budget, whose sum by the trapezoidal rule is the area."""
    grid = itertools.product(sets.SYNTH_CLUSTERS, sets.SYNTH_DIMENSIONS, (1, 2, 3))
    groups = [("figure 4", f"k = {k}", d, f"synth {k} {d} {seed}", k) for k, d, seed in grid]
    groups += [("figure 3a", "G2", d, f"g2-{d}-50", 2) for d in (2, 4, 8, 16, 32, 64, 128, 256)]
    groups += [("figure 3a", "G2", d, f"g2 {d} 50 1", 2) for d in (512, 1024)]
    groups += [
        ("figure 3b", "Synth-K", k, f"synth_k {k} {seed}", k)
        for k, seed in itertools.product(sets.SYNTH_K_CLUSTERS, (1, 2, 3))
    ]
    for table, panel, x, data, k in groups:
        for series in NAMES:
            yield PaperCell(table, panel, series, x, data, METHODS[series], k, 0.0, 20)


def _figure_5(quick: bool) -> Iterator[PaperCell]:
    runs, alphas = (len(ABLATION) // 2, (0.4, 0.8)) if quick else (10 * len(ABLATION), ALPHAS)
    variants = [
        (
            radius,
            f"{border}{', clipped' if clip else ''}",
            (("radius", radius), ("border", border), ("clip_steps", clip)),
        )
        for radius, border, clip in itertools.product(
            ("step", "constant"), ("none", "truncate", "fold"), (True,) if quick else (False, True)
        )
    ]
    for alpha in alphas:
        for radius, series, options in variants:
            given = (*options, ("radius_scale", alpha))
            yield PaperCell("figure 5", radius, series, alpha, "ablation 2 2 0.25 1", "fastlloyd", 0, 0.1, runs, given)
        yield PaperCell("figure 5", "step", "no radius", alpha, "ablation 2 2 0.25 1", "fastlloyd", 0, 0.1, runs, PLAIN)


def _table_3(quick: bool) -> Iterator[PaperCell]:
    for data, n, k in TIMED:
        for d in (2, 5) if data.startswith("TimeSynth") else (2,):
            shape = f"timesynth {n} {d} {k}"
            series = f"FastLloyd, d = {d}"
            yield PaperCell("table 3, time", data, series, k, shape, "milliseconds", k, 1.0, 1 if quick else 5)
            yield PaperCell("table 3, bytes", data, series, k, shape, "bytes", k, 1.0, 1)


def measure(cell: PaperCell, number: int) -> float:
    """Return a run's NICV, its area over epsilon, or the milliseconds or bytes of a round."""
    if cell.method in ("milliseconds", "bytes"):
        n, d, k = (int(text) for text in cell.data.split()[1:])
        return milliseconds(n, d, k) if cell.method == "milliseconds" else float(bytes_per_round(n, d, k))
    if cell.table == "figure 5":
        data = ABLATION[number * STRIDE % len(ABLATION)]
        cell = attrs.evolve(cell, data=data, k=int(data.split()[1]))
    if cell.epsilon:
        return nicv(sets.data_of(cell.data).rows, fitted_centers(cell))
    from scipy.integrate import trapezoid

    curve = [measure(attrs.evolve(cell, epsilon=epsilon), number) for epsilon in EPSILONS]  # equation 26
    return float(trapezoid(curve, EPSILONS))


def headlines(figures: Figures) -> list[Headline]:
    """Judge the paper's claims."""
    judgements = [
        figures.against(
            f"{name} of cloister costs what the authors' program costs (figure 2)", "figure 2", name, f"{name}*"
        )
        for name in NAMES
    ]
    judgements += [
        figures.against(
            "cloister's default against the authors' FastLloyd (figure 2)", "figure 2", "auto", "FastLloyd*"
        ),
        figures.between("FastLloyd against SuLloyd (figure 2)", "figure 2", "FastLloyd", "SuLloyd"),
        figures.between("FastLloyd against GLloyd (figure 2)", "figure 2", "FastLloyd", "GLloyd"),
        figures.between("FastLloyd against SuLloyd, areas (figure 4)", "figure 4", "FastLloyd", "SuLloyd"),
        figures.between(
            "fold against truncate, with clipped steps (figure 5)", "figure 5", "fold, clipped", "truncate, clipped"
        ),
        figures.between(
            "fold against none, with clipped steps (figure 5)", "figure 5", "fold, clipped", "none, clipped"
        ),
    ]
    step, plain = figures.of("figure 5", "fold, clipped"), figures.of("figure 5", "no radius")
    pairs = {place: (mean.value, plain[place].value) for place, mean in step.items() if place in plain}
    judgements.append(judged("step radius and folding against no radius (figure 5)", pairs))
    for quantity in ("time", "bytes"):
        ratios = {
            (panel, x, d): (mean.value, stated.value)
            for d in (2, 5)
            for (panel, x), mean in figures.of(f"table 3, {quantity}", f"FastLloyd, d = {d}").items()
            for stated in (figures.stated(f"table 3, {quantity}", f"FastLloyd, d = {d}")[panel, x],)
        }
        claim = f"{'milliseconds' if quantity == 'time' else 'bytes'} of a round, two clients (table 3)"
        judgements.append(judged(claim, {(f"{panel} {d}", x): pair for (panel, x, d), pair in ratios.items()}))
    return judgements


PAPER: Final = Paper(
    "fastlloyd",
    "Diaa, Humphries, Kerschbaum: FastLloyd: Federated, Accurate, Secure, and Tunable k-Means Clustering (2024)",
    "Columns are scaled to [-1, 1] by their least and largest value; delta is 1 / (n ln n); the public number "
    "of rows is n. NICV is the mean squared distance to the nearest centre. FastLloyd, GLloyd and SuLloyd are "
    "cloister's presets `fastlloyd`, `gauss-lloyd` and `su-lloyd`. A round of table 3 is measured in one "
    "process, without the 0.25 ms of latency per message that the paper simulates, on this machine.",
    (
        PaperTable("figure 2", "Cost against epsilon on ten sets", "epsilon", "NICV", "xy", PICTURES),
        PaperTable("figure 3a", "Area of the cost over epsilon against d, G2", "d", "area of NICV", "xy"),
        PaperTable("figure 3b", "Area of the cost over epsilon against k, Synth-K", "k", "area of NICV", "xy"),
        PaperTable("figure 4", "Area of the cost over epsilon on Synth", "d", "area of NICV", "xy"),
        PaperTable("figure 5", "Ablation at epsilon = 0.1, mean over 48 sets", "alpha", "NICV"),
        PaperTable("table 3, time", "Milliseconds of a round, two clients", "k", "ms", "y", "table 3"),
        PaperTable("table 3, bytes", "Bytes of a round, two clients, both directions", "k", "bytes", "y", "table 3"),
    ),
    cells,
    measure,
    headlines,
    lambda cell: None if cell.table.startswith("table 3") else sets.missing(cell.data),
)

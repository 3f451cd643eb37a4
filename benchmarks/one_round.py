"""One-round k-means under local trust: the tables and figures of docs/explanation/one_round.md
and one_round_accuracy.md.

    python benchmarks/one_round.py exact     every report drawn: the bars, and the paper's method beside column A
    python benchmarks/one_round.py paper     the paper's method alone, every report drawn
    python benchmarks/one_round.py grid      the rest of the grid, SIMULATED: exact cell sums plus noise as stated
    python benchmarks/one_round.py real      s1, birch2, skin, shuttle at a million rows, beside a user's other choices
    python benchmarks/one_round.py needed    rows needed to come within twice the non-private cost, SIMULATED
    python benchmarks/one_round.py speed     both halves on one thread, with and without [fast] (CLOISTER_PLAIN=1)
    python benchmarks/one_round.py figures   the paper's figures 1 and 2, from the exact runs

Rows: Gaussian mixtures as in the paper's section 5 (centre radius 1 - 1/r, expected distance from the centre 1/r).
Noise is seeded here, so that a table can be made again; every figure is cost / n on the true rows. Results are kept in
a file of JSON lines, and what is there is not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import attrs
import numpy as np
from halves import halves
from kept import Kept
from mixtures import mixture
from real_rows import real, real_cases, table_real
from simulation import Simulated

from cloister.core.lattice import CAP
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.making import drafted
from cloister.core.types import Floats
from cloister.metrics import nicv
from cloister.run.fit import fit, source
from cloister.run.request import Request, prepare

SEEDS = 10


@attrs.frozen
class Case:
    """One figure. Args: n (rows), k, d, eps, r (separation), method, options (as on the command line)."""

    n: int
    k: int = 8
    eps: float = 1.0
    r: float = 100.0
    d: int = 100
    method: str = "one-round"
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def key(self) -> str:
        return json.dumps(attrs.asdict(self), sort_keys=True)


M, C = 10**6, 10**5
STUDY = (
    (M, 8, 1.0, 100.0, 0.385, 0.077, 0.055),
    (C, 8, 1.0, 100.0, 1.208, 0.121, 0.39),
    (10**4, 8, 1.0, 100.0, 1.678, 0.247, 0.98),
    (M, 8, 0.5, 100.0, 0.846, 0.110, 0.19),
    (M, 8, 2.0, 100.0, 0.151, 0.060, 0.0142),
    (M, 8, 4.0, 100.0, 0.107, 0.067, 0.0040),
    (C, 8, 2.0, 100.0, 0.751, 0.055, 0.125),
    (C, 8, 4.0, 100.0, 0.514, 0.047, 0.037),
    (M, 4, 1.0, 100.0, 0.080, 0.014, 0.0135),
    (M, 16, 1.0, 100.0, 0.938, 0.071, 0.19),
    (M, 32, 1.0, 100.0, 1.398, 0.060, 0.52),
    (M, 8, 1.0, 16.0, 0.425, 0.059, 0.075),
    (M, 8, 1.0, 8.0, 0.487, 0.048, 0.105),
    (M, 8, 1.0, 4.0, 0.567, 0.039, 0.22),
    (M, 8, 1.0, 2.0, 0.649, 0.062, 0.47),
)
"""The study's table 2.1, of d = 100: n, k, eps, r; its column A (mean and deviation of ten runs: the paper's method
with the paper's blocks); what the new design is to reach (section 4)."""

TWELVE = tuple(row[:4] for row in STUDY)
A = {row[:4]: row[4:6] for row in STUDY}
BARS = {row[:4]: row[6] for row in STUDY}

LOW = {Case(M, 8, 1.0, 100.0, 10): 0.0075, Case(M, 8, 1.0, 8.0, 10): 0.035}
S1_LIKE = {Case(C, 15, 2.0, 0.0, 2): 0.0062, Case(M, 15, 1.0, 0.0, 2): 0.006}
"""Bars in few dimensions; r = 0 stands for 15 Gaussians of deviation 0.05, like s1."""


WIDE = {
    Case(M, 8, 1.0, 4.0, options=(("partitions", 2), ("tree.cells", 128))): 0.22,
    Case(M, 8, 1.0, 2.0, options=(("partitions", 1), ("tree.cells", 64))): 0.47,
}
"""The widest clusters with fewer cells, which the study's own K = 64 stands for."""


def request(case: Case, seed: int) -> Request:
    """The run of a case."""
    options = {**cells_of(case), **dict(case.options)}
    components = {name: options.pop(name) for name in list(options) if name in {"tree", "counts", "sums", "solver"}}
    return Request(
        k=case.k,
        method=drafted(case.method, components, options),
        epsilon=case.eps,
        bounds="ball:1",
        rows=case.n,
        seed=seed,
    )


def cells_of(case: Case) -> dict[str, Any]:
    """The study's number of cells, min(16 k^2, 4096), in total over the partitions."""
    if case.method != "one-round" or case.d <= 3:
        return {}
    plan = prepare(Request(k=case.k, method=case.method, epsilon=case.eps, bounds="ball:1", rows=case.n), columns(case))
    partitions = 2 if plan.composed.value.expected_error(plan.problem) < 0.1 else 1
    return {"tree.cells": max(256, min(16 * case.k**2, 4096) // partitions), "partitions": partitions}


def columns(case: Case) -> list[str]:
    return [str(j) for j in range(case.d)]


def exact(case: Case, seed: int) -> dict[str, float]:
    """A run in which every report is drawn."""
    rows, centers = mixture(case.n, case.k, case.d, case.r, seed)
    start = time.perf_counter()
    result = fit(request(case, seed), source(rows), noise=NoiseRng.for_tests(seed))
    return {
        "cost": nicv(rows, result.centers),
        "best": nicv(rows, centers),
        "trivial": nicv(rows, np.zeros((1, case.d))),
        "seconds": time.perf_counter() - start,
    }


def simulated(case: Case, seed: int, sample: int = 40_000) -> dict[str, float]:
    """The same from exact sums over a sample, scaled to n, plus noise at the oracles' stated variance."""
    rows, centers = mixture(min(sample, case.n), case.k, case.d, case.r, seed)
    plan = prepare(request(case, seed), columns(case))
    public = PublicRng.from_seed(seed)
    session: Any = Simulated(plan.problem, rows, public, np.random.default_rng([seed, 2]))
    found = plan.composed.value.cluster(plan.problem, session, public.child("method"))
    v = plan.composed.value.expected_error(plan.problem)
    return {
        "cost": nicv(rows, found.centers),
        "best": nicv(rows, centers),
        "trivial": nicv(rows, np.zeros((1, case.d))),
        "v": v,
    }


NEEDED = (
    ("d=2, s1-like, k=15", 15, 2, 0.0),
    ("d=10, r=4", 8, 10, 4.0),
    ("d=10, r=100", 8, 10, 100.0),
    ("d=100, r=4", 8, 100, 4.0),
    ("d=100, r=100", 8, 100, 100.0),
)


def rows_needed(k: int, d: int, r: float, eps: float, seeds: int = 4) -> float:
    """The least n on a grid of 10^(1/4) whose mean cost is at most twice the non-private one, found by halving."""

    def enough(step: int) -> bool:
        n = min(round(10 ** (step / 4)), CAP)
        runs = [simulated(Case(n, k, eps, r, d), seed) for seed in range(seeds)]
        return bool(np.mean([run["cost"] for run in runs]) <= 2 * np.mean([run["best"] for run in runs]))

    low, high = 11, 37
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return 10 ** (high / 4)


def table_needed() -> Iterator[str]:
    yield "| rows | eps = 1 | 2 | 4 |"
    yield "|---|---|---|---|"
    for name, k, d, r in NEEDED:
        yield f"| {name} | " + " | ".join(f"{rows_needed(k, d, r, eps):.1e}" for eps in (1.0, 2.0, 4.0)) + " |"


def figures(kept: Kept, folder: Path) -> None:
    """The paper's figure 1 (cost against n, eps, k) and figure 2 (against r), from the exact runs."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    panels = {
        "n": [Case(n) for n in (10**4, C, M)],
        "epsilon": [Case(M, 8, eps) for eps in (0.5, 1.0, 2.0, 4.0)],
        "k": [Case(M, k) for k in (4, 8, 16, 32)],
        "r": [Case(M, 8, 1.0, r) for r in (2.0, 4.0, 8.0, 16.0, 100.0)],
    }
    for name, shown in (("figure1", ("n", "epsilon", "k")), ("figure2", ("r",))):
        figure, axes = plt.subplots(1, len(shown), figsize=(4.2 * len(shown), 3.4), squeeze=False)
        for axis, what in zip(axes[0], shown, strict=True):
            field = {"epsilon": "eps"}.get(what, what)
            for label, method in (("one-round-lsh (the paper's)", "one-round-lsh"), ("one-round", "one-round")):
                cases = [attrs.evolve(c, method=method) for c in panels[what]]
                found = [(getattr(c, field), kept.of("exact", c)) for c in cases if len(kept.of("exact", c)) > 1]
                axis.errorbar(
                    [x for x, _ in found],
                    [v.mean() for _, v in found],
                    [v.std(ddof=1) for _, v in found],
                    marker="o",
                    markersize=4,
                    capsize=3,
                    label=label,
                )
            best = [
                (getattr(c, field), kept.of("exact", c, "best").mean())
                for c in panels[what]
                if len(kept.of("exact", c))
            ]
            axis.plot([x for x, _ in best], [y for _, y in best], "k:", label="true centres")
            axis.set(xlabel=what, xscale="log", yscale="log" if what != "r" else "linear")
            axis.set_xticks([x for x, _ in best], [f"{x:g}" for x, _ in best])
            axis.minorticks_off()
        axes[0][0].set_ylabel("cost / n")
        axes[0][0].legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 0.1))
        figure.tight_layout()
        for ending in ("svg", "png"):
            figure.savefig(folder / f"one_round_{name}.{ending}", metadata={"Date": None} if ending == "svg" else None)


def _work(item: tuple[str, Any, int]) -> dict[str, float]:
    how, case, seed = item
    if how == "real":
        return real(*case, seed)
    return exact(case, seed) if how == "exact" else simulated(case, seed)


def spread(values: Floats) -> str:
    return f"{values.mean():.4f} +- {values.std(ddof=1):.4f}" if len(values) > 1 else "-"


def exact_cases() -> dict[Case, float]:
    """The new design's cases and their bars."""
    return {**{Case(n, k, eps, r): bar for (n, k, eps, r), bar in BARS.items()}, **LOW, **S1_LIKE, **WIDE}


def paper_case(n: int, k: int, eps: float, r: float) -> Case:
    return Case(n, k, eps, r, method="one-round-lsh")


def table_exact(kept: Kept) -> Iterator[str]:
    yield "| d | n | k | eps | r | best | one centre | one-round | v/(1+v) | bar | | one-round-lsh | study's A | z |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for case, bar in exact_cases().items():
        new, best, trivial = (kept.of("exact", case, name) for name in ("cost", "best", "trivial"))
        if not len(new):
            continue
        plan = prepare(request(case, 0), columns(case))
        v = plan.composed.value.expected_error(plan.problem)
        met = "met" if new.mean() <= min(bar, trivial.mean()) else "MISSED"
        line = [
            case.d,
            f"{case.n:.0e}",
            case.k,
            case.eps,
            f"{case.r or 's1-like'}{', ' + _told(case) if case.options else ''}",
            f"{best.mean():.4f}",
            f"{trivial.mean():.3f}",
            spread(new),
            f"{v / (1 + v):.4f}",
            bar,
            met,
        ]
        yield "| " + " | ".join(map(str, [*line, *_beside(kept, case)])) + " |"


def _told(case: Case) -> str:
    return ", ".join(f"{name} {value}" for name, value in case.options)


def _beside(kept: Kept, case: Case) -> list[str]:
    """The paper's method: mean, the study's figure, and how many standard errors lie between."""
    key = (case.n, case.k, case.eps, case.r)
    if case.d != 100 or key not in A or case.options:
        return ["", "", ""]
    ours, (mean, sd) = kept.of("exact", paper_case(*key)), A[key]
    if len(ours) < 2:
        return ["-", f"{mean} +- {sd}", ""]
    z = (ours.mean() - mean) / math.hypot(ours.std(ddof=1) / math.sqrt(len(ours)), sd / math.sqrt(10))
    return [spread(ours), f"{mean} +- {sd}", f"{z:+.1f}"]


def table_grid(kept: Kept, cases: Iterable[Case]) -> Iterator[str]:
    yield "| d | n | k | r | eps = 0.5 | 1 | 2 | 4 | best |"
    yield "|---|---|---|---|---|---|---|---|---|"
    rows: dict[tuple[int, int, int, float], dict[float, Case]] = {}
    for case in cases:
        rows.setdefault((case.d, case.n, case.k, case.r), {})[case.eps] = case
    for (d, n, k, r), by_eps in rows.items():
        costs = [
            f"{kept.of('simulated', c).mean():.4f}" if len(kept.of("simulated", c)) else "-"
            for _, c in sorted(by_eps.items())
        ]
        best = kept.of("simulated", next(iter(by_eps.values())), "best")
        yield f"| {d} | {n:.0e} | {k} | {r:g} | " + " | ".join(costs) + f" | {best.mean():.4f} |"


def grid_cases() -> list[Case]:
    return [
        Case(n, k, eps, r, d)
        for d in (2, 10, 100)
        for n in (C, M)
        for k in (4, 8, 16, 32)
        for r in (2.0, 4.0, 8.0, 16.0, 100.0)
        for eps in (0.5, 1.0, 2.0, 4.0)
    ]


def table_speed(n: int = 200_000, d: int = 100) -> Iterator[str]:
    """Both halves in chunks, secret noise, CPU seconds of one thread, the best of three after a warm-up."""
    yield "| cells | encode, M users / s | decode, M reports / s |"
    yield "|---|---|---|"
    rows, _ = mixture(n, 8, d, 100.0, 0)
    for cells in (256, 512, 1024):
        plan = prepare(
            Request(
                k=8,
                method=drafted("one-round", options={"tree.cells": cells, "partitions": 1}),
                epsilon=1.0,
                bounds="ball:1",
                rows=n,
            ),
            [str(j) for j in range(d)],
        )
        encoding, decoding = halves(plan, rows)
        yield f"| {cells} | {n / encoding / 1e6:.2f} | {n / decoding / 1e6:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("exact", "paper", "grid", "real", "needed", "figures", "speed"))
    parser.add_argument(
        "--out", type=Path, default=Path("one_round.jsonl"), help="results so far; what is there is not run again"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only-print", action="store_true")
    given = parser.parse_args()
    kept = Kept(given.out, _work)
    if given.what in ("exact", "paper"):
        cases = list(exact_cases()) if given.what == "exact" else [paper_case(*key) for key in A]
        if not given.only_print:
            kept.run("exact", cases, given.seeds, given.workers)
        print("\n".join(table_exact(kept)))
    elif given.what == "grid":
        if not given.only_print:
            kept.run("simulated", grid_cases(), given.seeds, given.workers)
        print("\n".join(table_grid(kept, grid_cases())))
    elif given.what == "real":
        if not given.only_print:
            kept.run("real", real_cases(), given.seeds, given.workers)
        print("\n".join(table_real(kept, spread)))
    elif given.what == "needed":
        print("\n".join(table_needed()))
    elif given.what == "speed":
        print("\n".join(table_speed()))
    else:
        figures(kept, Path("docs/explanation"))


if __name__ == "__main__":
    main()

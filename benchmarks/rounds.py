"""Local k-means and k-median in a constant number of rounds: the tables of docs/explanation/rounds_accuracy.md.

    python benchmarks/rounds.py table       weighted-centers beside its predecessor, one round and the baselines
    python benchmarks/rounds.py slope       additive error over n on data at exactly k places (best cost 0), SIMULATED
    python benchmarks/rounds.py speed       time and memory of all rounds at n = 1e6, d = 10
    python benchmarks/rounds.py regime      where it wins and where it loses, SIMULATED: a sample's sums plus noise
    python benchmarks/rounds.py constants   what each constant does, SIMULATED

Rows: those of benchmarks/mixtures.py. Noise is seeded here, so that a table can be made again; every
figure is cost / n on the true rows (distances for k-median). Results are kept in a file of JSON lines, and what is
there is not run again. ``naive-noise`` needs ``pip install examples/cloister-baselines``.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from kept import Kept
from mixtures import mixture
from simulation import Simulated

from cloister.core.clustering import Coreset, Released
from cloister.core.encoding import encode_lattice
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.compose import compose
from cloister.core.registry.making import drafted
from cloister.core.registry.registry import registry
from cloister.core.types import AnyArray, Floats
from cloister.metrics import cost
from cloister.run.fit import fit, source
from cloister.run.request import PreparedRun, Request, prepare

M, C = 10**6, 10**5
SOLVERS = {1: "kmedian++", 2: "kmeans++"}
SAMPLE = 20_000
"""Rows that a simulated run's exact sums, and the non-private solver, are given."""

OURS, BEFORE, ONE, NAIVE = "weighted-centers", "nearest-centers", "one-round", "naive-noise"


@attrs.frozen
class Case:
    """One figure. Args: n (rows), d, k, eps, r (separation; 0: exactly k places), power (2 k-means, 1 k-median),
    method, options."""

    n: int
    d: int
    k: int
    eps: float
    r: float = 4.0
    power: int = 2
    method: str = OURS
    options: tuple[tuple[str, Any], ...] = ()
    small: float = 0.0

    @property
    def key(self) -> str:
        return json.dumps(attrs.asdict(self), sort_keys=True)


def rows_of(case: Case, n: int, seed: int) -> AnyArray:
    """Rows (n, d) float32 of a case."""
    if case.r:
        return mixture(n, case.k, case.d, case.r, seed)[0]
    return at_places(n, case, seed)


def at_places(n: int, case: Case, seed: int) -> AnyArray:
    """n rows at exactly k places, the last of which holds as many as ``small`` times the root of the case's n would be
    (as many as others, if that is 0)."""
    g = np.random.default_rng([seed, 7])
    tries = g.standard_normal((200, case.d))
    tries *= 0.8 / np.linalg.norm(tries, axis=1, keepdims=True)
    places = tries[:1]
    while len(places) < case.k:
        away = np.linalg.norm(tries[:, None] - places, axis=2).min(axis=1)
        places = np.vstack([places, tries[away.argmax()]])
    last = round(n * case.small / math.sqrt(case.n)) if case.small else n // case.k
    ids = np.where(np.arange(n) < last, case.k - 1, np.arange(n) % (case.k - 1))
    return places[g.permutation(ids)].astype(np.float32)


def request(case: Case, seed: int) -> Request:
    """The run of a case: the same solver for all methods, of the right power."""
    options, components = dict(case.options), {"solver": SOLVERS[case.power]}
    if case.method == ONE:
        components = {"solver": "ward"} if case.power == 2 else {"solver": "kmedian++", "grid_solver": "kmedian++"}
    components |= {name: options.pop(name) for name in list(options) if name in {"counts", "sums", "solver"}}
    return Request(
        k=case.k,
        method=drafted(case.method, components, options),
        epsilon=case.eps,
        delta=1e-6 if "ldp-average" in components.values() else 0.0,
        bounds="ball:1",
        rows=case.n,
        seed=seed,
    )


def planned(case: Case, seed: int = 0) -> PreparedRun:
    return prepare(request(case, seed), [str(j) for j in range(case.d)])


def solved(rows: AnyArray, case: Case, seed: int) -> Floats:
    """Centres without privacy, from a sample."""
    solver = compose(registry(), "NonPrivateSolver", SOLVERS[case.power], {}, {}).value
    some = rows[:SAMPLE].astype(np.float64)
    return solver.solve(Released(Coreset(some, np.ones(len(some))), ()), case.k, PublicRng.from_seed(seed))


def figures(rows: AnyArray, centers: Floats, case: Case, seed: int) -> dict[str, float]:
    """cost / n beside what the rows themselves would give, and one centre."""
    one = solved(rows, attrs.evolve(case, k=1), seed)
    found = {"cost": centers, "best": solved(rows, case, seed), "trivial": one}
    return {name: cost(rows, c, case.power) / len(rows) for name, c in found.items()}


def exact(case: Case, seed: int) -> dict[str, float]:
    """A run in which every report is drawn."""
    rows, start = rows_of(case, case.n, seed), time.perf_counter()
    result = fit(request(case, seed), source(rows), noise=NoiseRng.for_tests(seed))
    seconds = time.perf_counter() - start
    return figures(rows, result.centers, case, seed) | {"seconds": seconds}


def simulated(case: Case, seed: int) -> dict[str, float]:
    """The same from exact sums over a sample, scaled to n, plus noise at the oracles' stated variance."""
    rows, plan = rows_of(case, min(SAMPLE, case.n), seed), planned(case, seed)
    public = PublicRng.from_seed(seed)
    session: Any = Simulated(plan.problem, rows, public, np.random.default_rng([seed, 2]))
    found = plan.composed.value.cluster(plan.problem, session, public.child("method"))
    return figures(rows, found.centers, case, seed)


def work(item: tuple[str, Any, int]) -> dict[str, float]:
    how, case, seed = item
    return exact(case, seed) if how == "exact" else simulated(case, seed)


def spread(values: Floats) -> str:
    """Mean and its standard error."""
    if not len(values):
        return "-"
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{values.mean():.4f} ± {error:.4f}" if len(values) > 1 else f"{values.mean():.4f}"


def bytes_per_user(case: Case) -> tuple[int, int]:
    """Rounds, and the most bytes that one user's answers have in all of them (user number and stamp, 16 a report,
    apart)."""
    plan, users = planned(case), np.arange(200, dtype=np.uint64)
    rounds = plan.forecast(PublicRng.from_seed(0))
    total = np.zeros(len(users))
    for asked in rounds:
        for report in encode_lattice(asked, np.zeros((len(users), case.d), np.int64), users, NoiseRng.for_tests(0)):
            total[report.users.astype(int)] += report.answers[:1].nbytes
    return len(rounds), int(total.max())


def table_cases() -> list[Case]:
    return [
        Case(n, d, k, eps, power=power)
        for power in (2, 1)
        for n in (C, M)
        for d in (2, 10)
        for k in (4, 8)
        for eps in (1.0, 2.0, 4.0)
    ]


def rivals(case: Case) -> list[Case]:
    """What is run beside a case, itself first."""
    return [attrs.evolve(case, method=method) for method in (OURS, ONE, NAIVE)]


def table(kept: Kept) -> Iterator[str]:
    yield (
        "| | n | d | k | ε | non-private | weighted-centers | one-round | naive noise | one centre | rounds | bytes | "
        "seconds |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for case in table_cases():
        found = {r.method: kept.of("exact", r) for r in rivals(case)}
        if not len(found[OURS]):
            continue
        best, trivial, seconds = (kept.of("exact", case, name).mean() for name in ("best", "trivial", "seconds"))
        line = [
            "k-means" if case.power == 2 else "k-median",
            f"{case.n:.0e}",
            case.d,
            case.k,
            f"{case.eps:g}",
            f"{best:.4f}",
            spread(found[OURS]),
            spread(found[ONE]),
            spread(found[NAIVE]),
            f"{trivial:.3f}",
            *bytes_per_user(case),
            f"{seconds:.0f}",
        ]
        yield "| " + " | ".join(map(str, line)) + " |"


SMALL = (4.0, 8.0, 16.0, 32.0)
UNBIASED = (("clip_radius", 1.25),)
"""Half an interval: no row of the fullest box of intervals is clipped. The default clips more, for a bias that does not
vanish with n."""
SLOPE_ROWS = tuple(round(10 ** (4 + i / 2)) for i in range(5))


def slope_cases(small: tuple[float, ...]) -> list[Case]:
    return [Case(n, 2, 4, 4.0, 0, power, OURS, UNBIASED, s) for n in SLOPE_ROWS for power in (1, 2) for s in small]


def slopes(kept: Kept) -> Iterator[str]:
    """log of the cost (not over n) against log n: least squares, and the 95% interval of Student's t."""
    for name, small in (("smallest place of 4 to 32 sqrt(n) rows", SMALL), ("places of one size", (0.0,))):
        for power in (2, 1):
            points = []
            for n in SLOPE_ROWS:
                per_seed = np.mean(
                    [kept.of("simulated", Case(n, 2, 4, 4.0, 0, power, OURS, UNBIASED, s)) for s in small], axis=0
                )
                points += [(math.log(n), math.log(c * n)) for c in per_seed]
            yield f"{'k-means' if power == 2 else 'k-median'}, {name}: {_fitted(points)}"


def _fitted(points: list[tuple[float, float]]) -> str:
    from scipy.stats import linregress, t

    x, y = np.array(points).T
    found = linregress(x, y)
    half = float(t.ppf(0.975, len(x) - 2)) * found.stderr
    return f"slope {found.slope:.3f}, 95% interval [{found.slope - half:.3f}, {found.slope + half:.3f}], {len(x)} runs"


def speed() -> Iterator[str]:
    for method, power in ((OURS, 2), (OURS, 1), (BEFORE, 2)):
        case = Case(M, 10, 8, 1.0, power=power, method=method)
        rows = rows_of(case, M, 0)
        start, cpu = time.perf_counter(), time.process_time()
        fit(request(case, 0), source(rows))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        yield (
            f"| {method}, power {power} | {time.perf_counter() - start:.0f} s | {time.process_time() - cpu:.0f} s of "
            f"one core | {peak:.2f} GB at most |"
        )


def regime_cases() -> list[Case]:
    return [
        Case(n, d, 8, eps, r, 2, method)
        for d in (2, 10)
        for r in (4.0, 16.0, 100.0)
        for n in (C, M, 10**7)
        for eps in (1.0, 4.0)
        for method in (OURS, BEFORE, ONE)
    ]


def regime(kept: Kept) -> Iterator[str]:
    yield "| d | r | n | ε | best | one centre | weighted-centers | nearest-centers | one-round |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for case in regime_cases():
        if case.method != OURS or not len(kept.of("simulated", case)):
            continue
        best, trivial = (kept.of("simulated", case, name).mean() for name in ("best", "trivial"))
        costs = [kept.of("simulated", attrs.evolve(case, method=m)) for m in (OURS, BEFORE, ONE)]
        found = [f"{c.mean():.4f}" if len(c) else "-" for c in costs]
        least = min((f for f in found if f != "-"), key=float)
        shown = [f"**{f}**" if f == least else f for f in found]
        yield (
            f"| {case.d} | {case.r:g} | {case.n:.0e} | {case.eps:g} | {best:.4f} | {trivial:.3f} | "
            + " | ".join(shown)
            + " |"
        )


CONSTANTS: dict[str, tuple[Any, ...]] = {
    "radii": (1, 2, 3),
    "largest_radius": (0.25, 0.35, 0.5, 1.0),
    "repetitions": (1, 2, 4, 8),
    "projections": (1, 2, 3, 4, 8),
    "near_chance": (0.3, 0.5, 0.7),
    "interval_length": (1.5, 2.5, 4.0),
    "clip_radius": (0.35, 0.7, 1.5, 3.0),
    "center_threshold": (1.0, 2.0, 3.0),
}
PLACES = (
    Case(M, 10, 8, 1.0),
    Case(C, 2, 8, 1.0),
    Case(C, 10, 8, 2.0),
    Case(C, 10, 4, 2.0, 100.0),
    Case(M, 10, 8, 4.0, 100.0),
)


def constant_cases() -> list[Case]:
    return [
        attrs.evolve(case, options=((name, value),))
        for name, values in CONSTANTS.items()
        for value in values
        for case in PLACES
    ]


def constants(kept: Kept) -> Iterator[str]:
    yield (
        "| option | value | " + " | ".join(f"n={c.n:.0e} d={c.d} k={c.k} ε={c.eps:g} r={c.r:g}" for c in PLACES) + " |"
    )
    yield "|---|---|" + "---|" * len(PLACES)
    for name, values in CONSTANTS.items():
        for value in values:
            cells = [kept.of("simulated", attrs.evolve(case, options=((name, value),))) for case in PLACES]
            yield f"| {name} | {value:g} | " + " | ".join(f"{c.mean():.4f}" if len(c) else "-" for c in cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("table", "slope", "speed", "regime", "constants"))
    parser.add_argument(
        "--out", type=Path, default=Path("rounds.jsonl"), help="results so far; what is there is not run again"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only-print", action="store_true")
    given = parser.parse_args()
    if given.what == "speed":
        print("\n".join(speed()))
        return
    kept = Kept(given.out, work)
    how, cases, shown = {
        "table": ("exact", [r for case in table_cases() for r in rivals(case)], table),
        "slope": ("simulated", slope_cases((*SMALL, 0.0)), slopes),
        "regime": ("simulated", regime_cases(), regime),
        "constants": ("simulated", constant_cases(), constants),
    }[given.what]
    if not given.only_print:
        kept.run(how, cases, given.seeds, given.workers)
    print("\n".join(shown(kept)))


if __name__ == "__main__":
    main()

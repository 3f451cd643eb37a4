"""k-median against the rivals of the tree paper (Cohen-Addad et al. 2022, figures 2 and 3): the tables in
docs/explanation/trees.md.

    python benchmarks/median.py                                             all of it: hours
    python benchmarks/median.py --sets skin --epsilons 0.5                  figure 2 (a)
    python benchmarks/median.py --store cells.jsonl --figures pictures      goes on after an interruption; PNG files

A figure is the mean distance of a row to its nearest centre, relative to ``kmed++``: D^1 seeding of the rows
themselves, from one start, and ten Lloyd rounds of ten Weiszfeld steps, without any privacy. Rows ``one centre`` (the
rows' own median, not private) and ``midpoint`` (of the domain: reads nothing) say what is trivial. Private methods draw
secret, exact noise; the public number of rows is n, delta is 1 / (n ln n). Columns are scaled to [-1, 1] by the data:
for benchmarks only. ``CLOISTER_DATA`` names their folder. ``k-variates`` needs ``pip install
examples/cloister-baselines``. The paper's skin (SKYNTYPE) has a fourth column, the class, which is left out here.

Marked (!): figures of --mine above --limit, and figures of other private methods that are not above that of --mine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import attrs
import datasets
import numpy as np
from accuracy import data_of, head, rows_of

from cloister.core.clustering import Coreset, Released
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats
from cloister.metrics import Mean, k_median_cost, mean_interval
from cloister.plugins.solvers.plus_plus import KMedianPlusPlus
from cloister.run.fit import fit, source
from cloister.run.request import Request


@lru_cache(maxsize=2)
def population_of(name: str) -> Any:
    """A set's rows, kept on the lattice over the runs of all cells that share it."""
    return source(data_of(name).rows)


SETS = ("skin", "shuttle", "covertype_first20k", "higgs_10k")
METHODS = ("hst-median", "tree-coreset-median", "private-lloyd-median", "k-variates")
TRIVIAL = ("kmed++", "one centre", "midpoint")
CENTRES, EPSILONS = (5, 10, 20, 40), (0.25, 0.5, 1.0)
NO_BUDGET = 0.0
"""The epsilon of cells that spend none."""

Options = tuple[tuple[str, Any], ...]


@attrs.frozen
class Cell:
    """One figure. Args: data, method (registry name or one of ``TRIVIAL``), k, epsilon, runs, options, wires."""

    data: str
    method: str
    k: int
    epsilon: float
    runs: int
    options: Options = ()
    components: Options = ()


def measure(cell: Cell) -> list[float]:
    """Mean distance to the nearest centre, of each run of a cell."""
    rows = data_of(cell.data).rows
    return [k_median_cost(rows, centers_of(cell, rows)) / len(rows) for _ in range(cell.runs)]


def centers_of(cell: Cell, rows: Floats) -> Floats:
    """One run."""
    if cell.method == "midpoint":
        return np.zeros((1, rows.shape[1]))
    if cell.method in TRIVIAL:
        known = KMedianPlusPlus(starts=1, candidates=1, rounds=10, steps=10)
        return known.solve(Released(Coreset(rows, np.ones(len(rows))), ()), cell.k, PublicRng.fresh())
    request = Request(
        k=cell.k,
        method=cell.method,
        epsilon=cell.epsilon,
        delta=datasets.delta(len(rows)),
        bounds=(-1.0, 1.0),
        rows=len(rows),
        options=dict(cell.options),
        components=dict(cell.components),
    )
    return fit(request, population_of(cell.data)).centers


def run(cells: Iterable[Cell], processes: int, store: Path | None) -> dict[Cell, list[float]]:
    """Measure all cells; those that the store has are not measured again."""
    known = stored(store)
    todo = [cell for cell in dict.fromkeys(cells) if cell not in known]
    with ProcessPoolExecutor(processes) as pool:
        for done, (cell, values) in enumerate(zip(todo, pool.map(measure, todo), strict=True), 1):
            known[cell] = values
            print(f"\r{done} of {len(todo)} cells", end="", file=sys.stderr)
            if store is not None:
                with store.open("a") as file:
                    file.write(json.dumps({"cell": attrs.asdict(cell), "values": values}) + "\n")
    print(file=sys.stderr)
    return known


def stored(store: Path | None) -> dict[Cell, list[float]]:
    """The finished cells of a JSON-lines file; a line that an interruption cut off is measured again."""
    found: dict[Cell, list[float]] = {}
    if store is None or not store.exists():
        return found
    for line in store.read_text().splitlines():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        pairs = {name: tuple((a, b) for a, b in entry["cell"][name]) for name in ("options", "components")}
        found[Cell(**(entry["cell"] | pairs))] = entry["values"]
    return found


@attrs.frozen
class Table:
    """What is measured. Args: methods, centres, runs, options and wires (of --mine alone), mine (the method that is
    judged), limit."""

    methods: Sequence[str]
    centres: Sequence[int]
    runs: int
    options: Options
    components: Options
    mine: str
    limit: float

    def cell(self, name: str, method: str, k: int, epsilon: float) -> Cell:
        """The cell of a figure; what spends nothing has one for all epsilons, what has one centre one for all k."""
        if method in TRIVIAL:
            return Cell(name, method, k if method == "kmed++" else 1, NO_BUDGET, self.runs if method == "kmed++" else 1)
        own = method == self.mine
        return Cell(name, method, k, epsilon, self.runs, self.options if own else (), self.components if own else ())

    def cells(self, name: str, epsilon: float) -> list[Cell]:
        return [self.cell(name, method, k, epsilon) for k in self.centres for method in (*TRIVIAL, *self.methods)]

    def relative(self, found: dict[Cell, list[float]], name: str, method: str, k: int, epsilon: float) -> Mean:
        """A cost over that of kmed++, with the standard errors of both; of one run, which has none, with the
        other's."""
        ours, theirs = (found[self.cell(name, m, k, epsilon)] for m in (method, "kmed++"))
        of, to = mean_interval(ours), mean_interval(theirs)
        ratio = of.value / to.value
        parts = [m.standard_error / m.value for m in (of, to) if np.isfinite(m.standard_error)]
        error = ratio * float(np.linalg.norm(parts))
        return Mean(ratio, error, ratio - 2 * error, ratio + 2 * error)

    def print(self, found: dict[Cell, list[float]], name: str, epsilons: Sequence[float]) -> list[str]:
        """The table of one data set: what is trivial, then the methods at each epsilon; what it says of --mine that is
        not as wished."""
        data, missed = data_of(name), list[str]()
        print(f"\n**{name}** n={len(data.rows)} d={data.rows.shape[1]}\n")
        print("\n".join(head("method", [f"k={k}" for k in self.centres])))
        base = [mean_interval(found[self.cell(name, "kmed++", k, NO_BUDGET)]) for k in self.centres]
        print(rows_of("kmed++ (not private), its cost", [f"{m.value:.4g} ± {m.standard_error:.1g}" for m in base]))
        for epsilon, methods in ((NO_BUDGET, TRIVIAL[1:]), *((epsilon, self.methods) for epsilon in epsilons)):
            if epsilon != NO_BUDGET:
                print(rows_of(f"**ε = {epsilon:g}**", ["" for _ in self.centres]))
            for method in methods:
                figures = []
                for k in self.centres:
                    mean = self.relative(found, name, method, k, epsilon)
                    shown = f"{mean.value:.3f} ± {mean.standard_error:.2g}"
                    if self.marked(found, name, method, k, epsilon):
                        missed.append(f"{name} eps={epsilon:g} k={k} {method}: {shown}")
                        shown += " (!)"
                    figures.append(shown)
                print(rows_of(method, figures))
        return missed

    def marked(self, found: dict[Cell, list[float]], name: str, method: str, k: int, epsilon: float) -> bool:
        """Whether a figure is not as wished: --mine above its limit, or another private method not above --mine."""
        if method in TRIVIAL or self.mine not in self.methods:
            return False
        mine = self.relative(found, name, self.mine, k, epsilon).value
        if method == self.mine:
            return mine > self.limit
        return self.relative(found, name, method, k, epsilon).value <= mine

    def draw(self, found: dict[Cell, list[float]], name: str, epsilon: float, folder: Path) -> None:
        """A picture like the paper's: cost over kmed++ against k."""
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(5, 3.5))
        for method in self.methods:
            means = [self.relative(found, name, method, k, epsilon) for k in self.centres]
            axes.errorbar(
                self.centres,
                [m.value for m in means],
                [m.standard_error for m in means],
                label=method,
                capsize=3,
                marker="o",
            )
        axes.axhline(1.0, color="grey", linestyle=":", label="kmed++ (not private)")
        axes.set(
            xlabel="number of centres",
            ylabel="cost over kmed++",
            title=f"{name}, epsilon = {epsilon:g}",
            xticks=self.centres,
        )
        axes.legend(fontsize="small")
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / f"median-{name}-{epsilon:g}.png", dpi=150, bbox_inches="tight")
        plt.close(figure)


def pair(text: str) -> tuple[str, Any]:
    """path=value; numbers are numbers."""
    path, _, value = text.partition("=")
    try:
        return path, json.loads(value)
    except json.JSONDecodeError:
        return path, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--methods", nargs="*", default=METHODS, help="registry names")
    parser.add_argument("--centres", nargs="*", type=int, default=CENTRES)
    parser.add_argument("--epsilons", nargs="*", type=float, default=EPSILONS)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--store", type=Path, help="a JSON-lines file of finished cells, to go on with after an interruption"
    )
    parser.add_argument("--figures", type=Path, help="a folder for PNG files")
    parser.add_argument("--mine", default=METHODS[0], help="the method that is compared with the others")
    parser.add_argument("--limit", type=float, default=1.25, help="what it may cost, over kmed++")
    parser.add_argument("--set", nargs="*", type=pair, default=[], metavar="OPTION=VALUE", help="options of --mine")
    parser.add_argument(
        "--with", nargs="*", type=pair, default=[], metavar="SLOT=NAME", dest="components", help="slots of --mine"
    )
    o = parser.parse_args()
    table = Table(o.methods, o.centres, o.runs, tuple(o.set), tuple(o.components), o.mine, o.limit)
    blocks = [(name, epsilon) for name in o.sets for epsilon in o.epsilons]
    found = run((cell for block in blocks for cell in table.cells(*block)), o.processes, o.store)
    missed = list[str]()
    for name in o.sets:
        missed += table.print(found, name, o.epsilons)
    for block in blocks if o.figures is not None else ():
        table.draw(found, *block, o.figures)
    print(f"\n{len(missed)} marked figures (!)")
    print("\n".join(missed))


if __name__ == "__main__":
    main()

"""k-means by trees against their rivals: the first table of docs/explanation/trees.md.

    python benchmarks/trees.py                           the five sets where a start decides, epsilon = 0.25, 0.5, 1
    python benchmarks/trees.py --sets iris wine adult    others of the twelve

``hst-means`` runs with its defaults everywhere: what it does follows from k, the domain, the public number of rows and
the budget. A figure of it is marked (!) if it is above google's, or above 1.15 times the tree paper's, by more than two
standard errors. Runs, scaling, noise and CLOISTER_DATA as for accuracy.py.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Final

from accuracy import Cell, data_of, head, rows_of, run, show
from peers import PEERS

from cloister.metrics import Mean, mean_interval

SETS: Final = ("s1", "birch2_25k", "shuttle", "g10k_d32_k16", "g100k_d10_k10")
METHODS: Final = ("hst-means", "tree-means", "tree-coreset", "tree-coreset-lsh", "fastlloyd")
RIVALS: Final = ("google", "tree", "FastLloyd*", "scikit-learn")
BARS: Final = {"google": 1.0, "tree": 1.15}


def marked(data: str, epsilon: float, mean: Mean) -> str:
    """A figure of ``hst-means``, with (!) if it misses a bar."""
    missed = False
    for rival, factor in BARS.items():
        bar, error = PEERS[data][rival][epsilon]
        missed |= mean.value > factor * bar + 2 * float((mean.standard_error**2 + (factor * error) ** 2) ** 0.5)
    return show(mean) + (" (!)" if missed else "")


def table(name: str, epsilons: tuple[float, ...], found: dict[Cell, list[float]], runs: int) -> None:
    """One set's table."""
    data = data_of(name)
    print(f"\n**{name}** n={len(data.rows)} d={data.rows.shape[1]} k={data.k}, {runs} runs\n")
    print("\n".join(head("method", epsilons)))
    for method in METHODS:
        means = [mean_interval(found[Cell(name, method, epsilon, runs)]) for epsilon in epsilons]
        figures = [
            marked(name, e, m) if method == "hst-means" else show(m) for e, m in zip(epsilons, means, strict=True)
        ]
        print(rows_of(method, figures))
    for rival in RIVALS:
        row = PEERS[name][rival]
        print(
            rows_of(f"*{rival}*", (f"{row[e][0]:.3g}" + (f" ± {row[e][1]:.2g}" if row[e][1] else "") for e in epsilons))
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--epsilons", nargs="*", type=float, default=(0.25, 0.5, 1.0))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--store", type=Path, help="a folder of studies, to go on with")
    o = parser.parse_args()
    cells = [Cell(s, m, e, o.runs) for e in reversed(o.epsilons) for s in o.sets for m in METHODS]
    found = run(cells, o.processes, o.store)
    for name in o.sets:
        table(name, tuple(o.epsilons), found, o.runs)


if __name__ == "__main__":
    main()

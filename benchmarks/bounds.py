"""NICV where bounds are too wide, with zoom and without: the tables in docs/howto/bounds.md.

    python benchmarks/bounds.py                      auto, hst-means and tree-coreset, epsilon 1
    python benchmarks/bounds.py --epsilon 0.25 --methods hst-means --runs 20

Every run draws secret, exact noise and a fresh start. Figures are means over the mean with tight bounds and without
zoom, in the same process. ``CLOISTER_DATA`` names the folder with the sets.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

from cloister.lab.papers import sets as datasets
from cloister.metrics import nicv
from cloister.run.fit import fit, source
from cloister.run.request import Request

SETS = "s1", "house", "shuttle", "birch2_25k"
CASES = (("auto", 1), ("auto", 4), ("auto", 16), ("auto", 1000), ("off", 4), ("off", 16))
"""Zoom, and how many times too wide the bounds are."""


def main() -> None:
    """Print a table per method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="auto,hst-means,tree-coreset")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=16)
    given = parser.parse_args()
    for method in given.methods.split(","):
        print(f"\n| {method} | " + " | ".join(f"zoom {zoom}, {wide} x" for zoom, wide in CASES) + " |")
        print("|---" * (len(CASES) + 1) + "|")
        for name in SETS:
            data = datasets.load(name)
            population = source(data.rows)
            tight, _ = _measured(data, population, method, given, "off", 1)
            cells = [_measured(data, population, method, given, *case) for case in CASES]
            print(
                f"| {name} | " + " | ".join(f"{a / tight:.2f} ± {b / tight:.2f}" for a, b in cells) + " |", flush=True
            )


def _measured(data: Any, population: Any, method: str, given: Any, zoom: str, wide: float) -> tuple[float, float]:
    """Mean NICV and its standard error."""
    n = len(data.rows)
    request = Request(
        k=data.k, method=method, epsilon=given.epsilon, delta=datasets.delta(n), bounds=(-wide, wide), rows=n, zoom=zoom
    )
    values = [nicv(data.rows, fit(request, population).centers) for _ in range(given.runs)]
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


if __name__ == "__main__":
    main()

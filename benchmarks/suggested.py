"""How often a range of k suggests the number of groups: generated mixtures, and stored sets whose number is known.

    python benchmarks/suggested.py                             200 mixtures, one run each
    python benchmarks/suggested.py --mixtures 0 --sets s2,a2,d31,unbalance --runs 6

A mixture has 2 to 30 normal groups of unit variance in 2, 3, 5 or 10 columns, their centres at least 4, 6 or 10
standard deviations apart, of one size or of sizes that differ up to five times, in 5,000, 20,000 or 100,000 rows. Each
run is asked for 2..20, or 2..40 where there are more than 12 groups. Secret, exact noise; epsilon = 1, delta = 1e-6.
The rule was fitted on the mixtures of seeds 7 and 9, s1 and a1.
``CLOISTER_DATA`` names the folder with the stored sets.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from typing import Final

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

from cloister.core.types import Floats
from cloister.lab.papers import sets as datasets
from cloister.run.fit import fit, source
from cloister.run.request import Request

APART: Final = 4.0, 6.0, 10.0
MANY: Final = 500
"""Rows per group: figures are given for more and for fewer."""


def mixture(g: np.random.Generator, k: int, d: int, n: int, apart: float, unequal: bool) -> Floats:
    """Rows (n, d) in [-1, 1]^d, of k groups."""
    width, centers = 1.0, list[Floats]()
    while len(centers) < k:
        width, centers = 1.1 * width, []
        for _ in range(3000):
            center = g.uniform(-width, width, d)
            if len(centers) < k and all(np.linalg.norm(center - other) >= apart for other in centers):
                centers.append(center)
    sizes = np.exp(g.uniform(0, np.log(5), k)) if unequal else np.ones(k)
    rows = np.array(centers)[g.choice(k, n, p=sizes / sizes.sum())] + g.standard_normal((n, d))
    found: Floats = rows / (1.05 * np.abs(rows).max())
    return found


def suggested(rows: Floats, most: int) -> int:
    """k of one run."""
    request = Request(k=(2, most), epsilon=1.0, delta=1e-6, bounds=(-1, 1), rows=len(rows), zoom="off")
    return len(fit(request, source(rows)).centers)


def mixtures(number: int, seed: int) -> None:
    g, right, runs = np.random.default_rng(seed), Counter[tuple[float, bool]](), Counter[tuple[float, bool]]()
    for _ in range(number):
        k, d, n = (
            int(np.exp(g.uniform(np.log(2), np.log(30)))),
            int(g.choice([2, 3, 5, 10])),
            int(g.choice([5, 20, 100])),
        )
        apart, unequal = float(g.choice(APART)), bool(g.integers(2))
        kind = apart, 1000 * n >= MANY * k
        runs[kind] += 1
        right[kind] += suggested(mixture(g, k, d, 1000 * n, apart, unequal), 20 if k <= 12 else 40) == k
    for apart, many in sorted(runs):
        rows = f"{'at least' if many else 'fewer than'} {MANY} rows per group"
        print(f"{apart:g} standard deviations apart, {rows}: right in {right[apart, many]} of {runs[apart, many]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mixtures", type=int, default=200)
    parser.add_argument("--seed", type=int, default=101)
    parser.add_argument("--sets", default="")
    parser.add_argument("--runs", type=int, default=6)
    given = parser.parse_args()
    mixtures(given.mixtures, given.seed)
    for name in filter(None, given.sets.split(",")):
        data = datasets.load(name)
        most = max(10, 2 * data.k)
        print(f"{name}: k = {data.k}, of 2..{most}: {[suggested(data.rows, most) for _ in range(given.runs)]}")


if __name__ == "__main__":
    main()

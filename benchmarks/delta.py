"""What a run without delta costs: the table in docs/tutorial/choosing.md.

    python benchmarks/delta.py

Rows are generated: 20,000 of them in groups of one size, centres uniform in [-0.8, 0.8]^d, deviation 0.06. Every run of
``auto`` draws secret noise; figures are medians of ``--runs`` runs, each a set of its own, of the cost over that of
k-means without privacy.
"""

from __future__ import annotations

import argparse
import os
import warnings

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from sklearn.cluster import KMeans as NonPrivate

import cloister
from cloister.core.types import Floats
from cloister.lab.machine import machine
from cloister.metrics import nicv

SHAPES = ((30, 2), (6, 4), (6, 10))
"""Groups, columns."""
EPSILONS = (0.1, 0.25, 1.0)
DELTAS = (1e-7, 0.0)
ROWS = 20_000


def made(k: int, d: int, seed: int) -> Floats:
    g = np.random.default_rng([seed, k, d])
    centers = g.uniform(-0.8, 0.8, (k, d))
    return np.clip(centers[g.integers(0, k, ROWS)] + g.normal(0, 0.06, (ROWS, d)), -1, 1)


def ratio(rows: Floats, k: int, epsilon: float, delta: float, reference: float) -> float:
    model = cloister.KMeans(k, epsilon=epsilon, delta=delta, bounds=(-1, 1), rows=ROWS)
    return nicv(rows, model.fit(rows).cluster_centers_) / reference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=16)
    runs = parser.parse_args().runs
    warnings.simplefilter("ignore")  # of clipped rows and of small groups: they are measured
    print(machine(), "\n")
    print("| groups, columns | " + " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS) + " |")
    print("| --- |" + " --- |" * len(EPSILONS))
    for k, d in SHAPES:
        sets = [made(k, d, seed) for seed in range(runs)]
        references = [nicv(rows, NonPrivate(k, n_init=5, random_state=0).fit(rows).cluster_centers_) for rows in sets]
        cells = list[str]()
        for epsilon in EPSILONS:
            found = [
                float(
                    np.median(
                        [ratio(rows, k, epsilon, delta, cost) for rows, cost in zip(sets, references, strict=True)]
                    )
                )
                for delta in DELTAS
            ]
            cells.append(f"{found[0]:.2f}, without δ {found[1]:.2f}")
        print(f"| {k} groups, {d} columns | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

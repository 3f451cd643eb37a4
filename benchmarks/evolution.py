"""The protocol of PE-means (arXiv 2606.00342, table 2): the area under NICV over epsilon, beside the published one.

    python benchmarks/evolution.py                             auto, five runs
    python benchmarks/evolution.py --methods auto,hst-means --sets d4k4,iris --runs 20

Sets are blobs of 20,000 rows rounded to four decimals, iris and birch2; rows are centred and divided by the largest
norm, so that they lie in the ball of radius 1; delta is n^-1.1. (Centre and norm are read off the data: for benchmarks
only.) Every run draws secret, exact noise and a fresh start. ``--store`` is a JSON-lines file of all values.
``CLOISTER_DATA`` names the folder with the stored sets.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any, Final

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import datasets
import numpy as np
from scipy.integrate import trapezoid

from cloister.core.types import Floats
from cloister.metrics import nicv
from cloister.run.fit import fit, source
from cloister.run.request import Request

EPSILONS: Final = 0.25, 0.5, 1.0, 2.0, 4.0
PUBLISHED: Final = {
    "d4k4": 0.0778,
    "d4k16": 0.0445,
    "d4k64": 0.0379,
    "d16k4": 0.0955,
    "d16k16": 0.0668,
    "d16k64": 0.1183,
    "d64k4": 0.0993,
    "d64k16": 0.1192,
    "d64k64": 0.3070,
    "d128k16": 0.1942,
    "iris": 0.2894,
    "birch2": 0.0003,
}
"""Area of PE-means per set: blobs by dimension and number of centres."""


def data_of(name: str) -> tuple[Floats, int]:
    """Rows (n, d) in the ball of radius 1, and k."""
    if name.startswith("d"):
        d, k = (int(number) for number in name[1:].split("k"))
        rows = blobs(d, k)
    else:
        data = datasets.load(name)
        rows, k = datasets.raw(name), data.k
    rows = rows - rows.mean(axis=0)
    return rows / np.linalg.norm(rows, axis=1).max(), k


def blobs(d: int, k: int) -> Floats:
    from sklearn.datasets import make_blobs

    return np.round(make_blobs(20_000, d, centers=k, random_state=1)[0], 4)


def area(rows: Floats, k: int, method: str, runs: int) -> tuple[Floats, list[str]]:
    """NICV (runs, epsilons), and the methods that ran at each epsilon."""
    population, n = source(rows), len(rows)
    values, names = np.empty((runs, len(EPSILONS))), list[str]()
    for j, epsilon in enumerate(EPSILONS):
        request = Request(k=k, method=method, epsilon=epsilon, delta=n**-1.1, bounds="ball:1", rows=n)
        for i in range(runs):
            found = fit(request, population)
            values[i, j] = nicv(rows, found.centers)
        names.append(found.details["auto"]["picked"] if method == "auto" else method)
    return values, names


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="auto")
    parser.add_argument("--sets", default=",".join(PUBLISHED))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--store", type=Path)
    given = parser.parse_args()
    print("| set | published | method | area | NICV at " + ", ".join(f"{e:g}" for e in EPSILONS) + " | picked |")
    print("|---" * 6 + "|")
    for name in given.sets.split(","):
        rows, k = data_of(name)
        for method in given.methods.split(","):
            values, picked = area(rows, k, method, given.runs)
            print(row(name, method, values, picked), flush=True)
            if given.store:
                with given.store.open("a") as file:
                    file.write(json.dumps({"set": name, "method": method, "values": values.tolist()}) + "\n")


def row(name: str, method: str, values: Any, picked: list[str]) -> str:
    """A set's line: the area of the mean curve, and its standard error over runs."""
    areas = [trapezoid(curve, EPSILONS) for curve in values]
    error = np.std(areas, ddof=1) / np.sqrt(len(areas)) if len(areas) > 1 else np.inf
    curve = ", ".join(f"{value:.3g}" for value in values.mean(axis=0))
    mark = "" if np.mean(areas) <= PUBLISHED[name] else " (!)"
    return (
        f"| {name} | {PUBLISHED[name]:g} | {method} | {np.mean(areas):.4g} ± {error:.1g}{mark} | {curve} | "
        f"{', '.join(dict.fromkeys(picked))} |"
    )


if __name__ == "__main__":
    main()

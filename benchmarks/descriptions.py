"""How near described groups are to the rows: the figures in docs/tutorial/describing.md.

    python benchmarks/descriptions.py               epsilon 1, 40 runs
    python benchmarks/descriptions.py --epsilon 0.5 --runs 100

Of every table: the part of the shares that lie within two stated errors of the exact ones (of the rows that are nearest
to the released centre), the part of the groups whose most telling value is the exact one, and the cost of the centres
(NICV) over that of a run with the whole budget and without a description, beside that of a run with 85% of it. Every
run draws secret, exact noise. ``CLOISTER_DATA`` names the folder with adult.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pandas as pd

from cloister.lab.hospital import WARDS, hospital
from cloister.metrics import nicv
from cloister.run.fit import fit, source
from cloister.run.layers.histograms import Descriptions, descriptions_of
from cloister.run.request import Request
from cloister.run.result import Result


@attrs.frozen
class Case:
    """A table, what it is clustered by, its public bounds and categories, and what groups are described by."""

    name: str
    rows: pd.DataFrame
    k: int
    columns: list[str]
    bounds: Mapping[str, tuple[float, float]]
    categories: Mapping[str, list[str]]
    described: list[str]


def cases(folder: str | None) -> Iterator[Case]:
    made = hospital(20_000, 1)
    numbers, wards = list(made.bounds), [str(ward) for ward in WARDS]
    frame = pd.DataFrame(dict(made.columns))
    yield Case("hospital", frame, 4, numbers[:4], made.bounds, {"ward": wards}, ["ward", "emergency", *numbers[-2:]])
    if folder:
        with np.load(Path(folder) / "adult.npz") as held:
            names = ["age", "fnlwgt", "education", "gain", "loss", "hours"]
            adult = pd.DataFrame(held["X"].astype(float), columns=names).assign(rich=held["y"].astype(str))
        ranges = ((17, 90), (0, 1_500_000), (1, 16), (0, 100_000), (0, 4500), (1, 99))
        bounds = {name: (float(low), float(high)) for name, (low, high) in zip(names, ranges, strict=True)}
        yield Case("adult", adult, 3, names, bounds, {"rich": ["0", "1"]}, ["rich", "age", "education", "hours"])
    yield wide(20_000, 3)


def wide(n: int, seed: int) -> Case:
    """Sixty columns beside four that are clustered by: eight follow the groups more or less, and 52 do not."""
    g = np.random.default_rng(seed)
    groups = g.choice(5, n, p=[0.3, 0.25, 0.2, 0.15, 0.1])
    columns: dict[str, Any] = {f"x{j}": g.uniform(-3, 3, 5)[groups] + g.normal(size=n) * 0.4 for j in range(4)}
    categories = dict[str, list[str]]()
    for j in range(60):
        loyal = g.random(n) < (0.3 + 0.08 * j if j < 8 else 0.0)
        if j % 2:
            columns[f"y{j}"] = np.where(loyal, g.permutation(5)[groups] * 2.0, g.uniform(0, 10, n))
        else:
            codes = np.where(loyal, g.permutation(5)[groups], g.integers(0, 6, n))
            columns[f"y{j}"], categories[f"y{j}"] = np.array(list("abcdef"))[codes], list("abcdef")
    bounds = {f"x{j}": (-5.0, 5.0) for j in range(4)} | {f"y{j}": (0.0, 10.0) for j in range(1, 60, 2)}
    described = [f"y{j}" for j in range(60)]
    return Case("60 columns", pd.DataFrame(columns), 5, [f"x{j}" for j in range(4)], bounds, categories, described)


def run(case: Case, epsilon: float, described: bool) -> Result:
    chosen = case.described if described else []
    categories = {name: values for name, values in case.categories.items() if name in chosen}
    population = source(
        case.rows, columns=case.columns, bounds=case.bounds, categories=categories or None, described=chosen, threads=1
    )
    request = Request(k=case.k, epsilon=epsilon, delta=1e-6, rows=len(case.rows), bounds=case.bounds, describe=chosen)
    return fit(request, population)


def exact(case: Case, result: Result, found: Descriptions) -> list[np.ndarray]:
    """Shares (k, m) of each described column among the rows nearest to each centre."""
    units = np.ones(len(case.columns)) if result.units is None else result.units
    rows = case.rows[case.columns].to_numpy(float)
    near = (((rows[:, None] - result.centers) / units) ** 2).sum(axis=2).argmin(axis=1)
    shares = list[np.ndarray]()
    for column in found.columns:
        cells = case.rows[column.name]
        if column.edges is None:
            codes = cells.astype(str).str.lower() if cells.dtype == bool else cells.astype(str)
            listed = {label: i for i, label in enumerate(column.labels)}
            places = codes.map(lambda cell, listed=listed: listed.get(cell, len(listed) - 1)).to_numpy()
        else:
            places = np.clip(np.searchsorted(column.edges, cells, side="right") - 1, 0, len(column.labels) - 1)
        counts = np.zeros((case.k, len(column.labels)))
        np.add.at(counts, (near, places), 1)
        shares.append(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
    return shares


def judged(case: Case, result: Result) -> tuple[float, float, float]:
    """Part of the shares within two errors, the largest miss in errors, and the part of the groups whose most telling
    value is the exact one."""
    found = descriptions_of(result)
    assert found is not None
    truth = exact(case, result, found)
    units = np.ones(len(case.columns)) if result.units is None else result.units
    rows = case.rows[case.columns].to_numpy(float)
    near = (((rows[:, None] - result.centers) / units) ** 2).sum(axis=2).argmin(axis=1)
    sizes = np.bincount(near, minlength=case.k) / len(rows)
    misses = np.concatenate(
        [(np.abs(c.shares - t) / c.errors).ravel() for c, t in zip(found.columns, truth, strict=True)]
    )
    right = []
    for group in range(case.k):
        above = [t[group] - sizes @ t for t in truth]
        best = max(range(len(above)), key=lambda j, above=above: np.abs(above[j]).max())
        told = found.telling(group)
        right.append(
            bool(told)
            and told[0][0].name == found.columns[best].name
            and told[0][1] == int(np.abs(above[best]).argmax())
        )
    return float((misses <= 2).mean()), float(misses.max()), float(np.mean(right))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=40)
    given = parser.parse_args()
    print("| table | within two errors | largest, in errors | most telling value | centres | with 85% of the budget |")
    print("|---|---|---|---|---|---|")
    for case in cases(os.environ.get("CLOISTER_DATA")):
        rows = case.rows[case.columns].to_numpy(float)
        results = [run(case, given.epsilon, True) for _ in range(given.runs)]
        within, worst, telling = np.array([judged(case, result) for result in results]).T
        cost = np.mean([nicv(rows, r.centers) for r in results])
        plain = np.mean([nicv(rows, run(case, given.epsilon, False).centers) for _ in range(given.runs)])
        less = np.mean([nicv(rows, run(case, 0.92 * given.epsilon, False).centers) for _ in range(given.runs)])
        print(
            f"| {case.name} | {within.mean():.1%} | {worst.max():.1f} | {telling.mean():.1%} | {cost / plain:.3f} | "
            f"{less / plain:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

"""Whether stated errors hold: released figures beside those of the released centres' own rows.

    python benchmarks/honesty.py                        auto, generated shapes and public sets
    python benchmarks/honesty.py --methods all          every method that auto may pick, by name
    python benchmarks/honesty.py --only far --series 3  shapes whose name holds a text, drawn anew
    python benchmarks/honesty.py --draw runs.jsonl      the picture of docs/explanation/errors.md, from runs of --out

A cell is a table and an epsilon. It holds if nine of ten figures of its runs lie within two stated errors of what the
rows nearest to the released centres have (rows clipped to the public bounds, distances in the run's units). Cost is
over that of exact Lloyd rounds from the groups that the rows were drawn from. delta is 1 / (n ln n).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import attrs
import numpy as np
import shapes
from shapes import Shape

import cloister
from cloister import metrics
from cloister.core.errors import CloisterError, InvalidInput, UtilityWarning
from cloister.core.types import Floats
from cloister.lab.papers import sets as datasets

EPSILONS: Final = (0.1, 0.3, 1.0, 2.0)
METHODS: Final = ("grid-means", "radius-means", "shrunk-lloyd", "hst-means", "damped-lloyd", "one-round")
PUBLIC: Final = ("iris", "wine", "house", "s1", "birch2_25k", "digits8x8", "adult", "shuttle", "unbalance", "a2")
ROUNDS: Final = 30


@attrs.frozen
class Run:
    """What one run stated, and what was so. Args: method (picked), centers and sizes (deviations in stated errors),
    cost (over exact rounds), errors (mean stated error of a coordinate, over the domain's half width), warned."""

    method: str
    centers: tuple[float, ...]
    sizes: tuple[float, ...]
    cost: float
    errors: float
    warned: bool


def public() -> Iterator[Shape]:
    """The stored sets, scaled to [-1, 1]."""
    for name in PUBLIC:
        data = datasets.load(name)
        rows = np.asarray(data.rows, np.float64)
        start = _kmeans(rows, data.k)
        yield Shape(name, rows, data.k, ((-1.0, 1.0),) * rows.shape[1], len(rows), start)


def _kmeans(rows: Floats, k: int) -> Any:
    from sklearn.cluster import KMeans

    return KMeans(k, n_init=3, random_state=0).fit_predict(rows)


def frame_of(shape: Shape) -> tuple[Any, Floats, dict[str, Any]]:
    """What the estimator takes, its features (n, D) clipped to the bounds, and its parameters."""
    numbers = [j for j in range(shape.rows.shape[1]) if j not in shape.categories]
    low, high = np.array(shape.bounds).T
    clipped = np.clip(shape.rows[:, numbers], low, high)
    if not shape.categories:
        return shape.rows, clipped, {"bounds": shape.bounds}
    import pandas as pd

    table = pd.DataFrame({f"x{j}": shape.rows[:, j] for j in numbers})
    features, categories = [clipped], {}
    for j, values in shape.categories.items():
        codes = shape.rows[:, j].astype(int)
        categories[f"c{j}"] = [f"v{value}" for value in range(values)]
        table[f"c{j}"] = np.array(categories[f"c{j}"])[codes]
        features.append(np.eye(values)[codes])
    bounds = {f"x{j}": pair for j, pair in zip(numbers, shape.bounds, strict=True)}
    return table, np.hstack(features), {"bounds": bounds, "categories": categories}


def measured(shape: Shape, method: str, epsilon: float, trust: str | None = None) -> Run:
    """One run with fresh noise."""
    table, features, given = frame_of(shape)
    delta = 0.0 if trust else 1 / (shape.public_rows * math.log(shape.public_rows))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = cloister.KMeans(
            shape.k, method=method, epsilon=epsilon, delta=delta, rows=shape.public_rows, trust=trust, **given
        ).fit(table)
    result = model.result_
    if "centers_error" not in result.details:
        raise InvalidInput("the run states no errors")
    units = np.ones(features.shape[1]) if result.units is None else result.units
    labels = metrics.labels(features, result.centers, None, result.units)
    counts = np.bincount(labels, minlength=shape.k)
    has = counts > 0
    means = np.zeros(result.centers.shape)
    for j in range(features.shape[1]):
        means[:, j] = np.bincount(labels, features[:, j], shape.k) / np.maximum(counts, 1)
    errors = np.maximum(np.asarray(result.details["centers_error"]), 1e-12)
    off = np.abs(result.centers - means)[has] / errors[has]
    sizes = np.abs(result.weights - counts) / np.maximum(np.asarray(result.details["weights_error"]), 1e-12)
    exact = features / units
    best = _lloyd(exact, shape.groups, shape.k)
    cost = metrics.cost(exact, result.centers / units) / best
    spans = np.ptp(features, axis=0)
    return Run(
        result.method["name"],
        tuple(off.ravel().tolist()),
        tuple(sizes.tolist()),
        cost,
        float(np.median(errors[has] / np.maximum(spans, 1e-12))),
        any(issubclass(warning.category, UtilityWarning) for warning in caught),
    )


_BEST: dict[tuple[int, bytes], float] = {}


def _lloyd(rows: Floats, groups: Any, k: int) -> float:
    """Cost after exact Lloyd rounds from the means of these groups."""
    key = id(groups), rows.std(axis=0).tobytes()
    if key not in _BEST:
        labels = groups
        for _ in range(ROUNDS):
            counts = np.maximum(np.bincount(labels, minlength=k), 1)
            means = np.column_stack([np.bincount(labels, rows[:, j], k) / counts for j in range(rows.shape[1])])
            before, labels = labels, metrics.labels(rows, means)
            if (before == labels).all():
                break
        _BEST[key] = metrics.cost(rows, means)
    return _BEST[key]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="auto", help="names separated by commas, or all")
    parser.add_argument("--epsilons", default=",".join(map(str, EPSILONS)))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="shapes whose name holds this text (| between several)")
    parser.add_argument("--series", type=int, default=0, help="draw the shapes anew")
    parser.add_argument("--most-rows", type=int, default=10**7)
    parser.add_argument("--trust", default=None)
    parser.add_argument("--no-public", action="store_true")
    parser.add_argument("--out", type=Path, default=None, help="JSON lines, one a run")
    parser.add_argument("--draw", type=Path, default=None, help="draw the runs of such a file, and stop")
    said = parser.parse_args()
    if said.draw:
        draw(said.draw, Path("docs/explanation/errors.svg"))
        return
    methods = ("auto", *METHODS) if said.methods == "all" else said.methods.split(",")
    tables = list(shapes.generated(said.series)) + ([] if said.no_public else list(public()))
    tables = [t for t in tables if any(x in t.name for x in said.only.split("|")) and len(t.rows) <= said.most_rows]
    out = said.out.open("a") if said.out else None
    total = {method: [] for method in methods}
    for shape in tables:
        for epsilon in map(float, said.epsilons.split(",")):
            for method in methods:
                try:
                    runs = [measured(shape, method, epsilon, said.trust) for _ in range(said.runs)]
                except CloisterError as error:
                    print(f"{shape.name}, epsilon {epsilon:g}, {method}: {error}"[:200], file=sys.stderr)
                    continue
                cell = summary(runs)
                total[method].append(cell)
                print(f"{shape.name:50.50s} {epsilon:4g} {method:12s} {text(cell)} {runs[0].method}", flush=True)
                if out:
                    for run in runs:
                        out.write(
                            json.dumps({"shape": shape.name, "epsilon": epsilon, "asked": method, **attrs.asdict(run)})
                            + "\n"
                        )
                    out.flush()
    for method, cells in total.items():
        if cells:
            print(method, overall(cells))


def summary(runs: list[Run]) -> dict[str, float]:
    """Figures of a cell."""
    centers = np.array([x for run in runs for x in run.centers])
    sizes = np.array([x for run in runs for x in run.sizes])
    return {
        "centers": float((centers <= 2).mean()),
        "sizes": float((sizes <= 2).mean()),
        "worst": float(max(centers.max(), sizes.max())),
        "worst_unwarned": max((max(*r.centers, *r.sizes) for r in runs if not r.warned), default=0.0),
        "cost": math.exp(np.mean([math.log(run.cost) for run in runs])),
        "errors": float(np.mean([run.errors for run in runs])),
        "warned": float(np.mean([run.warned for run in runs])),
    }


def text(cell: dict[str, float]) -> str:
    """A cell as one line."""
    flag = "  " if min(cell["centers"], cell["sizes"]) >= 0.9 else "! "
    return (
        f"{flag}centers {cell['centers']:.2f} sizes {cell['sizes']:.2f} worst {cell['worst']:5.1f} "
        f"unwarned {cell['worst_unwarned']:5.1f} cost {cell['cost']:6.3f} error {cell['errors']:.4f} "
        f"warned {cell['warned']:.1f}"
    )


def draw(runs: Path, target: Path) -> None:
    """Draw how many coordinates of centres lie within how many stated errors, by the method asked for."""
    from matplotlib.figure import Figure
    from scipy.stats import norm

    found = dict[str, list[float]]()
    for line in runs.read_text("utf-8").splitlines():
        run = json.loads(line)
        found.setdefault(run["asked"], []).extend(run["centers"])
    figure, at = Figure(figsize=(7, 3.5), layout="constrained"), np.linspace(0, 5, 201)
    axes = figure.subplots()
    for name, values in found.items():
        inside = np.searchsorted(np.sort(values), at, side="right") / len(values)
        axes.plot(at, 100 * inside, label=name, linewidth=2.5 if name == "auto" else 1.2)
    axes.plot(at, 100 * (2 * norm.cdf(at) - 1), "k:", label="normal law")
    axes.axvline(2, color="0.7", linewidth=0.8)
    axes.set(xlabel="stated errors", ylabel="% of coordinates within", xlim=(0, 5), ylim=(0, 101))
    axes.legend(loc="lower right", fontsize="small")
    figure.savefig(target, metadata={"Date": None})


def overall(cells: list[dict[str, float]]) -> str:
    """All cells of a method as one line."""
    good = {name: sum(cell[name] >= 0.9 for cell in cells) for name in ("centers", "sizes")}
    both = sum(min(cell["centers"], cell["sizes"]) >= 0.9 for cell in cells)
    mean = {name: np.mean([cell[name] for cell in cells]) for name in ("centers", "sizes")}
    cost = math.exp(np.mean([math.log(cell["cost"]) for cell in cells]))
    error = math.exp(np.mean([math.log(max(cell["errors"], 1e-9)) for cell in cells]))
    return (
        f"{len(cells)} cells: {both} hold (centers {good['centers']}, sizes {good['sizes']}); "
        f"mean {mean['centers']:.3f}, {mean['sizes']:.3f}; worst {max(c['worst'] for c in cells):.1f}, unwarned "
        f"{max(c['worst_unwarned'] for c in cells):.1f}; cost {cost:.3f}; stated error {error:.5f}"
    )


if __name__ == "__main__":
    main()

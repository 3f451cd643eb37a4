"""NICV of the Lloyd family beside its rivals: the tables in docs/explanation/accuracy.md and lloyd_accuracy.md.

    python benchmarks/accuracy.py auto              the default, beside our other methods, the rivals and the midpoint
    python benchmarks/accuracy.py auto --only --pure   the default without a delta
    python benchmarks/accuracy.py peers             the twelve sets, against the measured rivals
    python benchmarks/accuracy.py more              yeast, breast cancer, G2 (d = 2 ... 256)
    python benchmarks/accuracy.py synth             Synth (k = 2 ... 32, d = 2 ... 512) and Synth-K (k to 128): AUC
    python benchmarks/accuracy.py ablation          radius scale and post-processing at epsilon = 0.1 (figure 5)

Every run draws secret, exact noise and a fresh start; only the data sets' own seeds are fixed. The public number of
rows is n and delta is 1 / (n ln n), as in the paper. ``CLOISTER_DATA`` names the folder with the real sets, which
``cloister data get`` fills as far as its catalogue goes (datasets.py). All runs are made by ``cloister.lab.comparing``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import attrs
import auto_tables
import calibration
import datasets
import numpy as np
import peers
from datasets import EPSILONS, DataSet
from scipy.integrate import trapezoid

from cloister.lab.comparing import Contender, Study, Terms, compare
from cloister.metrics import Mean, mean_interval

METHODS = ("su-lloyd", "gauss-lloyd", "fastlloyd")
BAR = {"su-lloyd": "SuLloyd*", "gauss-lloyd": "GLloyd*", "fastlloyd": "FastLloyd*"}
SLACK = 1.10
G2 = tuple(f"g2-{d}-{sd}" for d in (2, 8, 32, 128, 256) for sd in (10, 50, 100))


@attrs.frozen
class Cell:
    """One figure of a table. Args: data (name or generator call), method, epsilon, runs, options, pure (no delta)."""

    data: str
    method: str
    epsilon: float
    runs: int
    options: tuple[tuple[str, Any], ...] = ()
    pure: bool = False


@lru_cache(maxsize=2)
def data_of(name: str) -> DataSet:
    """A data set by name, or by the words of a generator: 'synth 4 8 1', 'synth_k 16 1', 'ablation 4 8 0.25 1',
    'calibration 3', 'few 3'."""
    kind, *words = name.split()
    if not words:
        return datasets.load(name)
    numbers = [float(w) if "." in w else int(w) for w in words]
    maker = {"calibration": calibration.mixture, "few": calibration.few}.get(kind) or getattr(datasets, kind)
    found: DataSet = maker(*numbers)
    return found


def contender_of(cell: Cell) -> Contender:
    """The method of a cell. Pure noise has no use for a delta; only what is private has a trust model."""
    trust = None if cell.method == "lloyd" else "central"
    delta = 0.0 if cell.pure or cell.method == "su-lloyd" else None
    return Contender(cell.method, dict(cell.options), trust=trust, delta=delta)


def run(cells: Iterable[Cell], processes: int, store: Path | None) -> dict[Cell, list[float]]:
    """NICV of each run of all cells, but for those of methods that refuse them, by ``cloister.lab.comparing``.

    Args: store (a folder that keeps a study per data set; what is in them is not measured again).
    """
    if store is not None:
        store.mkdir(parents=True, exist_ok=True)
    found, groups = dict[Cell, list[float]](), defaultdict[tuple[str, int], list[Cell]](list)
    for cell in cells:
        groups[cell.data, cell.runs].append(cell)
    for number, ((name, _), group) in enumerate(groups.items(), 1):
        out = None if store is None else store / f"{name.replace(' ', '-')}.jsonl"
        title = f"set {number} of {len(groups)}, {name}"
        for study, part in _studies(name, group, processes, out, title):
            values = {(cell.label, cell.epsilon): list(cell.nicv) for cell in study.cells if cell.nicv}
            keys = {cell: (contender_of(cell).label, cell.epsilon) for cell in part}
            found |= {cell: values[key] for cell, key in keys.items() if key in values}
    print(file=sys.stderr)
    return found


def _studies(
    name: str, group: list[Cell], processes: int, out: Path | None, title: str
) -> Iterator[tuple[Study, list[Cell]]]:
    """The studies of one set and number of runs: one for all methods that are wanted at the same epsilons."""
    data = data_of(name)
    by_label = {contender_of(cell).label: contender_of(cell) for cell in group}
    parts = defaultdict[tuple[float, ...], list[str]](list)
    for label in by_label:
        parts[tuple(c.epsilon for c in group if contender_of(c).label == label)].append(label)
    for epsilons, labels in parts.items():
        yield (
            compare(
                data.rows,
                Terms(k=data.k, bounds=(-1.0, 1.0)),
                epsilons=epsilons,
                methods=[by_label[label] for label in labels],
                runs=group[0].runs,
                workers=processes,
                out=out,
                progress=lambda done, total: print(f"\r{title}: {done} of {total} runs ", end="", file=sys.stderr),
            ),
            [cell for cell in group if contender_of(cell).label in labels],
        )


def runs_for(n: int) -> int:
    """How many runs a figure is the mean of."""
    return 100 if n <= 10_000 else 20


def show(mean: Mean) -> str:
    return f"{mean.value:.3g} ± {mean.standard_error:.2g}"


def rows_of(title: str, figures: Iterable[str]) -> str:
    return f"| {title} | " + " | ".join(figures) + " |"


def head(first: str, names: Iterable[Any]) -> Iterator[str]:
    titles = [str(name) for name in names]
    yield rows_of(first, titles)
    yield rows_of("---", ["---"] * len(titles))


def against_peers(processes: int, store: Path | None, names: tuple[str, ...], scale: float) -> None:
    """The twelve sets: a table each, and every figure that misses the bar."""
    cells, missed = [], []
    for name in names:
        runs = max(2, round(scale * runs_for(len(data_of(name).rows))))
        cells += [Cell(name, method, eps, runs) for eps in EPSILONS for method in METHODS]
        cells.append(Cell(name, "lloyd", 1.0, min(runs, 20)))
    found = run(cells, processes, store)
    for name in names:
        data = data_of(name)
        mine = {(c.method, c.epsilon): mean_interval(v) for c, v in found.items() if c.data == name and not c.options}
        rivals = dict(peers.PEERS[name])
        flat = [f"lloyd {show(mine['lloyd', 1.0])}"]
        flat += [f"{one} {rivals.pop(one)[EPSILONS[0]][0]:.3g}" for one in auto_tables.NOT_RIVALS]
        print(f"\n**{name}** n={len(data.rows)} d={data.rows.shape[1]} k={data.k}; {', '.join(flat)}\n")
        print("\n".join(head("method", EPSILONS)))
        for method in METHODS:
            figures = []
            for eps in EPSILONS:
                mean = mine[method, eps]
                mark = ""
                if method in BAR:
                    bar, error = peers.PEERS[name][BAR[method]][eps]
                    limit = SLACK * bar + 2 * float(np.hypot(mean.standard_error, error))
                    if mean.value > limit:
                        mark = " (!)"
                        missed.append(
                            f"{name} {method} eps={eps}: {show(mean)} against {bar:g} ± {error:g}, limit {limit:.3g}"
                        )
                figures.append(show(mean) + mark)
            print(rows_of(method, figures))
        for rival, row in rivals.items():
            print(
                rows_of(
                    f"*{rival}*", (f"{row[e][0]:.3g}" + (f" ± {row[e][1]:.2g}" if row[e][1] else "") for e in EPSILONS)
                )
            )
    print(
        f"\n{len(missed)} of {len(names) * len(METHODS) * len(EPSILONS)} figures miss {SLACK} x the rival + 2 "
        f"standard errors"
    )
    print("\n".join(missed))


def default(
    processes: int, store: Path | None, names: tuple[str, ...], scale: float, only: bool, pure: bool, out: Path
) -> None:
    """Auto, and unless ``only`` it is wanted the methods that it picks from; the picture, unless ``pure`` noise is."""
    methods = ["auto"] if only else ["auto", *auto_tables.others()]
    cells = [
        Cell(name, method, eps, auto_tables.runs_of(len(data_of(name).rows), scale), pure=pure)
        for name in names
        for method in methods
        for eps in auto_tables.EPSILONS
    ]
    measured = run(cells, processes, store)
    found = {(c.data, c.method, c.epsilon): values for c, values in measured.items()}
    print("\n".join(auto_tables.table(found, names)))
    if not pure:
        auto_tables.draw(found, names, out)


def areas(title: str, names: Mapping[str, list[str]], processes: int, store: Path | None, runs: int) -> None:
    """AUC over epsilon (equation 26) per method, averaged over the sets of each row."""
    cells = [
        Cell(name, m, eps, runs) for group in names.values() for name in group for eps in EPSILONS for m in METHODS
    ]
    found = run(cells, processes, store)
    print(f"\n**{title}**: AUC of NICV over epsilon, mean of {runs} runs per set\n")
    print("\n".join(head("set", METHODS)))
    for label, group in names.items():
        figures = []
        for method in METHODS:
            curves = [[float(np.mean(found[Cell(name, method, eps, runs)])) for eps in EPSILONS] for name in group]
            figures.append(f"{np.mean([trapezoid(curve, EPSILONS) for curve in curves]):.4g}")
        print(rows_of(label, figures))


def ablation(processes: int, store: Path | None, runs: int) -> None:
    """The paper's figure 5: NICV over that of no radius and no post-processing, epsilon = 0.1, mean over 48 sets."""
    grid = datasets.ABLATION_GRID
    sets = [f"ablation {k} {d} {sep} 1" for k in grid for d in grid for sep in datasets.ABLATION_SEPARATIONS]
    alphas = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2)
    plain = (("border", "none"), ("clip_steps", False), ("radius", "none"))
    variants = {"no radius": plain}
    for radius in ("step", "constant"):
        for border in ("none", "truncate", "fold"):
            for clip in (False, True):
                for alpha in alphas:
                    label = f"{radius}, {border}{', clipped' if clip else ''}"
                    variants[f"{label}|{alpha}"] = (
                        ("border", border),
                        ("clip_steps", clip),
                        ("radius", radius),
                        ("radius_scale", alpha),
                    )
    found = run([Cell(s, "fastlloyd", 0.1, runs, o) for s in sets for o in variants.values()], processes, store)
    base = {s: np.mean(found[Cell(s, "fastlloyd", 0.1, runs, plain)]) for s in sets}
    print("\n**Ablation** (epsilon = 0.1, NICV relative to no radius and no post-processing)\n")
    print("\n".join(head("radius, border", alphas)))
    for label in dict.fromkeys(v.split("|")[0] for v in variants if "|" in v):
        ratios = [
            np.mean([np.mean(found[Cell(s, "fastlloyd", 0.1, runs, variants[f"{label}|{a}"])]) / base[s] for s in sets])
            for a in alphas
        ]
        print(rows_of(label, (f"{r:.3f}" for r in ratios)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("auto", "peers", "more", "synth", "ablation"))
    parser.add_argument("--sets", nargs="*", help="only these sets (auto, peers)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--store", type=Path, help="a folder of studies, to go on with after an interruption")
    parser.add_argument("--runs", type=int, default=20, help="runs per figure (more, synth, ablation)")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual number of runs (auto, peers)")
    parser.add_argument("--only", action="store_true", help="auto alone, without our other methods (auto)")
    parser.add_argument("--pure", action="store_true", help="without a delta (auto)")
    parser.add_argument(
        "--picture", type=Path, default=Path("docs/explanation/accuracy_auto.svg"), help="file to draw (auto)"
    )
    o = parser.parse_args()
    if o.what == "auto":
        default(o.processes, o.store, tuple(o.sets or datasets.TWELVE), o.scale, o.only, o.pure, o.picture)
    elif o.what == "peers":
        against_peers(o.processes, o.store, tuple(o.sets or datasets.TWELVE), o.scale)
    elif o.what == "more":
        areas(
            "Further real sets", {n: [n] for n in ("yeast", "breast_wisconsin_699", *G2)}, o.processes, o.store, o.runs
        )
    elif o.what == "synth":
        grid = {
            f"k={k} d={d}": [f"synth {k} {d} {s}" for s in (1, 2, 3)]
            for k in datasets.SYNTH_CLUSTERS
            for d in datasets.SYNTH_DIMENSIONS
        }
        areas("Synth", grid, o.processes, o.store, o.runs)
        areas(
            "Synth-K",
            {f"k={k} d=2": [f"synth_k {k} {s}" for s in (1, 2, 3)] for k in datasets.SYNTH_K_CLUSTERS},
            o.processes,
            o.store,
            o.runs,
        )
    else:
        ablation(o.processes, o.store, o.runs)


if __name__ == "__main__":
    main()

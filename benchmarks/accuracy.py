"""NICV of the default beside its rivals: the tables in docs/explanation/accuracy.md.

    python benchmarks/accuracy.py                  beside our other methods, the rivals and the midpoint
    python benchmarks/accuracy.py --only --pure    without a delta

Every run draws secret, exact noise and a fresh start; only the data sets' own seeds are fixed. The public number of
rows is n and delta is 1 / (n ln n), as in the papers. ``CLOISTER_DATA`` names the folder with the real sets, which
``cloister data get`` fills as far as its catalogue goes. All runs are made by ``cloister.lab.comparing``. The papers'
own tables are made by ``cloister reproduce``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import attrs
import auto_tables
import calibration

from cloister.lab.comparing import Contender, Study, Terms, compare
from cloister.lab.papers import sets as datasets
from cloister.lab.papers.sets import DataSet


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", help="only these sets")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--store", type=Path, help="a folder of studies, to go on with after an interruption")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual number of runs")
    parser.add_argument("--only", action="store_true", help="auto alone, without our other methods")
    parser.add_argument("--pure", action="store_true", help="without a delta")
    parser.add_argument("--picture", type=Path, default=Path("docs/explanation/accuracy_auto.svg"), help="file to draw")
    o = parser.parse_args()
    default(o.processes, o.store, tuple(o.sets or datasets.TWELVE), o.scale, o.only, o.pure, o.picture)


if __name__ == "__main__":
    main()

"""How near rows of ``cloister sample`` are to the rows: the table in docs/explanation/synthetic.md.

    python benchmarks/synthetic.py                       ours, and independent columns
    python benchmarks/synthetic.py --rivals PYTHON       also MST and AIM, by an interpreter that has smartnoise-synth

Figures are the mean total variation over all one-way and all two-way marginals, with numbers in 16 equal parts of their
public bounds, of as many drawn rows as there are rows; means of ``--runs`` runs with secret noise, delta = 1e-6.
"Without privacy" draws every column by the rows' own marginal, or takes another sample of whole rows, with replacement.

The rivals get whole numbers, the same parts, of which those that no row has are left out: read off the rows, which a
private run could not do. Their rows are drawn one by one: the rounding that mbi 1.1.0 does by default makes columns
dependent that are not.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from cloister.core.types import Ints
from cloister.lab.hospital import BOUNDS, WARDS, hospital
from cloister.lab.machine import machine
from cloister.lab.sampling import sample
from cloister.run.fit import fit, source
from cloister.run.request import Request

PARTS, DELTA, EPSILONS = 16, 1e-6, (0.5, 1.0, 3.0)
NUMBERS, SHARES = (8, 32), (0.15, 0.5)
"""Of groups, and of the budget for their description."""

ADULT = {
    "age": (0.0, 100.0),
    "weight": (0.0, 1.5e6),
    "education": (1.0, 16.0),
    "gain": (0.0, 1e5),
    "loss": (0.0, 5000.0),
    "hours": (0.0, 100.0),
}
"""Public facts of the census' columns of numbers."""

RIVAL = """
import sys, warnings
warnings.simplefilter("ignore")
import pandas as pd
from mbi.markov_random_field import MarkovRandomField
from snsynth import Synthesizer
rounded = MarkovRandomField.synthetic_data
MarkovRandomField.synthetic_data = lambda self, rows=None: rounded(self, rows, "sample")
name, epsilon, delta, path = sys.argv[1:]
rows = pd.read_csv(path)
made = Synthesizer.create(name, epsilon=float(epsilon), delta=float(delta))
found = made.fit_sample(rows, preprocessor_eps=0.0, categorical_columns=list(rows.columns))
found.astype(int).to_csv(path, index=False)
"""


class Table:
    """Rows, the bounds of their numbers and the values of their categories, other than true and false."""

    def __init__(self, rows: pd.DataFrame, bounds: Mapping[str, tuple[float, float]], values: Mapping[str, list[str]]):
        self.rows, self.bounds, self.values = rows, bounds, values

    def codes(self, rows: pd.DataFrame) -> dict[str, Ints]:
        """The value or the part of each cell."""
        found = dict[str, Ints]()
        for name in self.rows:
            if name in self.bounds:
                low, high = self.bounds[name]
                found[name] = (
                    (np.ceil((rows[name] - low) / (high - low) * PARTS) - 1).clip(0, PARTS - 1).to_numpy(np.int64)
                )
            else:
                listed = {value: i for i, value in enumerate(self.values.get(name, ["False", "True"]))}
                found[name] = rows[name].astype(str).map(listed).fillna(len(listed)).to_numpy(np.int64)
        return found


def tables() -> Iterator[tuple[str, Table]]:
    made = pd.DataFrame(dict(hospital(20_000, 0).columns)).drop(columns=["mrn", "visit", "heart_rate", "temperature"])
    yield "hospital", Table(made, {name: BOUNDS[name] for name in made if name in BOUNDS}, {"ward": WARDS.tolist()})
    with np.load(Path(os.environ["CLOISTER_DATA"], "adult.npz")) as stored:
        adult = pd.DataFrame(stored["X"].astype(float), columns=list(ADULT)).assign(income=stored["y"].astype(str))
    yield "adult", Table(adult, ADULT, {"income": ["0", "1"]})


def away(mine: dict[str, Ints], its: dict[str, Ints]) -> tuple[float, float]:
    """Mean total variation over one-way and over two-way marginals."""

    def distance(a: Ints, b: Ints) -> float:
        size = 1 + max(int(a.max()), int(b.max()))
        shares = [np.bincount(codes, minlength=size) / len(codes) for codes in (a, b)]
        return float(np.abs(shares[0] - shares[1]).sum() / 2)

    ones = [distance(mine[name], its[name]) for name in mine]
    twos = [distance(mine[a] * 100 + mine[b], its[a] * 100 + its[b]) for a, b in combinations(mine, 2)]
    return float(np.mean(ones)), float(np.mean(twos))


def _ours(table: Table, k: int, share: float, epsilon: float, seed: int) -> dict[str, Ints]:
    """Clustered by the numbers, described by all columns, and drawn again."""
    asked = list(table.rows.columns)
    request = Request(
        k=k,
        epsilon=epsilon,
        delta=DELTA,
        bounds=table.bounds,
        rows=len(table.rows),
        describe=asked,
        describe_share=share,
    )
    population = source(table.rows, columns=list(table.bounds), categories=table.values, described=asked)
    made, left = sample(fit(request, population), len(table.rows), seed)
    assert not left
    return table.codes(pd.DataFrame(dict(made.columns)))


def _rival(python: str, name: str, table: Table, epsilon: float, _: int) -> dict[str, Ints]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.csv")
        pd.DataFrame(table.codes(table.rows)).to_csv(path, index=False)
        subprocess.run([python, "-c", RIVAL, name, str(epsilon), str(DELTA), str(path)], check=True, stdout=sys.stderr)
        return {str(column): cells.to_numpy(np.int64) for column, cells in pd.read_csv(path).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rivals", metavar="PYTHON", help="an interpreter that has smartnoise-synth")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rival-runs", type=int, default=2, help="they take a minute or more each")
    parser.add_argument("--only", help="one table")
    o = parser.parse_args()
    warnings.simplefilter("ignore")  # of small groups: they are measured
    print(machine(), "\n")
    print("| table | rows drawn by | " + " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS) + " |")
    print("| --- | --- |" + " --- |" * len(EPSILONS))
    for name, table in tables():
        if o.only in (None, name):
            compared(name, table, o.runs, o.rival_runs, o.rivals)


def compared(name: str, table: Table, runs: int, rival_runs: int, python: str | None) -> None:
    """The lines of one table."""
    exact, n, g = table.codes(table.rows), len(table.rows), np.random.default_rng(0)

    def line(how: str, drawn: Callable[[float, int], dict[str, Ints]], runs: int = runs) -> None:
        cells = list[str]()
        for epsilon in EPSILONS:
            one, two = np.mean([away(exact, drawn(epsilon, run)) for run in range(runs)], axis=0)
            cells.append(f"{one:.3f}, {two:.3f}")
        print(f"| {name} | {how} | {' | '.join(cells)} |", flush=True)

    for k in NUMBERS:
        for share in SHARES:
            line(f"`sample`, k = {k}, {share:.0%} for the description", partial(_ours, table, k, share))
    line("`sample`, k = 1, 90%: independent columns", partial(_ours, table, 1, 0.9))
    for which in ("mst", "aim") if python else ():
        line(f"{which.upper()} (smartnoise-synth)", partial(_rival, python, which, table), rival_runs)
    line("independent columns, not private", lambda *_: {c: cells[g.integers(0, n, n)] for c, cells in exact.items()})
    line("whole rows, not private", lambda *_: _whole(exact, g.integers(0, n, n)))


def _whole(exact: dict[str, Ints], which: Ints) -> dict[str, Ints]:
    return {name: cells[which] for name, cells in exact.items()}


if __name__ == "__main__":
    main()

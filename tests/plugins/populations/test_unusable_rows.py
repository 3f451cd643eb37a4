"""Rows that cannot be used, where everybody reports: the number of reports is not a secret, and must not tell one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cloister.core.domains import Box
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Local, Shuffled
from cloister.run.fit import fit, source
from cloister.run.request import Request
from cloister.testing.checks.populations import RecordingChannel
from cloister.testing.stubs import ModuloBuckets

SQUARE = Box((-1.0,) * 2, (1.0,) * 2)


@pytest.mark.parametrize("trust", [Local, Shuffled])
@pytest.mark.parametrize("kind", ["array", "frame", "csv", "parquet"])
def test_the_number_of_reports_does_not_tell_that_a_cell_is_missing(kind: str, trust: Any, tmp_path: Path) -> None:
    """Neighbours are one cell apart: as many report, the others' reports are what they were, and hers is of no
    bucket."""
    rows, cells = np.random.default_rng(3).uniform(-1, 1, (400, 2)), ModuloBuckets((2**20,))
    part = OpenedQuestion(cells, None, None, RecordingChannel())
    found = []
    for some in (rows, np.where(np.arange(800).reshape(400, 2) == 10, np.nan, rows)):
        frame = pd.DataFrame(some, columns=["x", "y"])
        frame.to_csv(tmp_path / "a.csv", index=False)
        frame.to_parquet(tmp_path / "a.parquet")
        given: Any = {"array": some, "frame": frame}.get(kind, tmp_path / f"a.{kind}")
        population = source(given, columns=["x", "y"] if kind != "array" else None, missing="drop")
        assert population.people == 400
        (called,) = population.gather(Round(0, trust, SQUARE, (part,)), NoiseRng.for_tests(1))
        found.append((len(called.users), int((called.items < 0).sum()), called.pairs))
    (all_of, none, before), (again, one, after) = found
    assert (all_of, none, again, one) == (400, 0, 400, 1)
    assert trust is Shuffled or len(before - after) == 1


def test_released_counts_of_a_local_run_do_not_tell_that_a_cell_is_missing() -> None:
    """A count is a whole number of steps, less a share of the number of reports: what is left tells that number."""
    rows = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    holed = rows.copy()
    holed[5, 0] = np.nan

    def residues(some: np.ndarray) -> set[float]:
        asked = Request(
            k=2, method="grid-means", epsilon=1.0, delta=0.0, bounds="-1:1", rows=400, trust="local", seed=1
        )
        runs = [json.loads(fit(asked, source(some, missing="drop")).text()) for _ in range(4)]
        counts = np.concatenate([np.ravel(run["details"]["cell_weights"]) for run in runs])
        apart = np.abs(np.subtract.outer(counts, counts))
        step = apart[apart > 1e-6].min()
        return set(np.round(np.minimum(counts % step, step - counts % step), 3).tolist())

    assert residues(holed) == residues(rows)

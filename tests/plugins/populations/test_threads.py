"""Passes over rows by any number of threads give the same answers: exact totals, and noise that knows no threads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng
from cloister.run.fit import fit, source
from cloister.run.request import Request


def rows() -> np.ndarray:
    """Several chunks, with rows that are dropped."""
    rng = np.random.default_rng(1)
    drawn = rng.normal(0, 0.2, (40_000, 8)) + rng.choice([-0.5, 0.5], (40_000, 1))
    drawn[::997, 3] = np.nan
    return drawn


def released(given: Any, method: str, threads: int, trust: dict[str, str] | None = None) -> tuple[str, int]:
    told = list[int]()
    request = Request(
        k=3, method=method, epsilon=2.0, delta=1e-6, bounds=(-1.0, 1.0), rows=40_000, seed=2, components=trust or {}
    )
    population = source(given, "*" if isinstance(given, str) else None, "drop", told.append, threads=threads)
    result = fit(request, population, noise=NoiseRng.for_tests(3))
    return json.dumps(result.as_dict()), sum(told)


@pytest.mark.parametrize("method", ["fastlloyd", "hst-means", "tree-coreset", "one-round"])
def test_results_do_not_depend_on_the_number_of_threads(method: str) -> None:
    one = released(rows(), method, 1)
    assert released(rows(), method, 2) == one
    assert released(rows(), method, 5) == one


def test_nor_do_those_from_files(tmp_path: Path) -> None:
    """The next chunk of a file takes the memory of the one before, which a thread may still be working on."""
    table = pa.table({f"x{j}": column for j, column in enumerate(rows().T)})
    pa.parquet.write_table(table, tmp_path / "rows.parquet")
    one = released(str(tmp_path / "rows.parquet"), "fastlloyd", 1)
    for threads in (2, 5):
        assert released(str(tmp_path / "rows.parquet"), "fastlloyd", threads) == one


def test_threads_go_with_the_engine_that_has_no_workers(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.zeros((10, 2)))
    with pytest.raises(InvalidInput, match="threads go with engine 'serial'"):
        source(str(tmp_path / "rows.npy"), None, "refuse", engine="processes", threads=2)
    with pytest.raises(InvalidInput, match="threads is 0"):
        source(np.zeros((10, 2)), None, "refuse", threads=0)

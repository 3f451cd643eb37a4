"""Passes over rows by any number of threads give the same answers: exact totals, and noise that knows no threads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cloister.core.randomness import NoiseRng
from cloister.plugins.populations import arrays
from cloister.rows.files import parts, sources
from cloister.run.fit import fit, source
from cloister.run.request import Request


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Several lots of chunks, with rows that are dropped."""
    for module in (arrays, parts):
        monkeypatch.setattr(module, "chunk_rows", lambda dimension: 500)
    rng = np.random.default_rng(1)
    drawn = rng.normal(0, 0.2, (12_000, 6)) + rng.choice([-0.5, 0.5], (12_000, 1))
    drawn[::997, 3] = np.nan
    return drawn


def released(given: Any, method: str, threads: int) -> tuple[str, int]:
    told = list[int]()
    request = Request(k=3, method=method, epsilon=2.0, delta=1e-6, bounds=(-1.0, 1.0), rows=12_000, seed=2)
    population = source(
        given, columns="*" if isinstance(given, str) else None, missing="drop", progress=told.append, threads=threads
    )
    result = fit(request, population, noise=NoiseRng.for_tests(3))
    return json.dumps(result.as_dict()), sum(told)


@pytest.mark.parametrize("method", ["fastlloyd", "tree-coreset"])
def test_results_do_not_depend_on_the_number_of_threads(method: str, rows: np.ndarray) -> None:
    assert released(rows, method, 1) == released(rows, method, 2) == released(rows, method, 5)


def test_nor_do_those_from_files(rows: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file in one part the next chunk takes the memory of the one before, which a thread may still be working on;
    of one in several parts each thread has parts of its own, and where those are few, others beside it."""
    table, path = pa.table({f"x{j}": column for j, column in enumerate(rows.T)}), str(tmp_path / "rows.parquet")
    found = list[tuple[str, int]]()
    for group in (12_000, 5000, 300):
        pa.parquet.write_table(table, path, row_group_size=group)
        monkeypatch.setattr(sources, "STRETCH", group)
        found += [released(path, "fastlloyd", threads) for threads in (1, 2, 5)]
    assert all(each == found[0] for each in found)

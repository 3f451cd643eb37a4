"""Engines whose workers are started once per file of tests, and files of rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cloister.rows.workers.dask_cluster import Dask
from cloister.rows.workers.engine import Engine, Processes, Serial
from tests.rows.workers.engine_rows import some_rows, write


@pytest.fixture(scope="module")
def shared() -> Iterator[dict[str, Engine]]:
    """Engines whose workers are started once."""
    found: dict[str, Engine] = {"serial": Serial(), "processes": Processes(2), "dask": Dask(2)}
    yield found
    for engine in found.values():
        engine.close()


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Files of every kind: many row groups, one row, none."""
    folder = tmp_path / "rows"
    folder.mkdir()
    sizes = {
        "a.parquet": 730,
        "b.csv": 211,
        "c.feather": 90,
        "d.parquet": 0,
        "e.csv.gz": 45,
        "f.parquet": 1,
        "g.csv": 1,
    }
    return [write(folder / name, some_rows(n, seed)) for seed, (name, n) in enumerate(sizes.items())]


@pytest.fixture
def many(tmp_path: Path) -> list[Path]:
    return [write(tmp_path / f"part-{i:02}.parquet", some_rows(300, i)) for i in range(12)]

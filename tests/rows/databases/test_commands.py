"""Commands over a database that a program speaks to by its address: those whose rows are a party's."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("grpc")

from tests.federated.test_processes import Site

ROWS = np.random.default_rng(3).normal(0, 0.4, (600, 2))


def test_parties_with_databases_and_files_pool_as_a_curator_would(tmp_path: Path) -> None:
    """One party's rows are in a database, and another's are read by a process of its own."""
    site = Site(tmp_path, ROWS, rounds=2)
    for name, rows in (("north", ROWS[:300]), ("south", ROWS[300:400])):
        pq.write_table(pa.table({"0": rows[:, 0], "1": rows[:, 1]}), tmp_path / f"{name}.parquet")
    with duckdb.connect(str(tmp_path / "lake.db")) as lake:
        lake.execute(f"CREATE TABLE ours AS FROM '{tmp_path / 'south.parquet'}' ORDER BY 1")
    coordinator, port = site.coordinate()
    spread = "--data", "north.parquet", "--engine", "processes", "--workers", "1"
    parties = [
        site.join("north", port, *spread, rows=False),
        site.join("south", port, "--data", f"duckdb:///{tmp_path / 'lake.db'}", "--table", "ours", rows=False),
        site.join("west", port),
    ]
    site.check(coordinator, *parties)

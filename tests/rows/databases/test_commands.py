"""Commands over a database that a program speaks to by its address: those whose rows are a party's, or people's."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("grpc")

from cloister.collection.client.encoder import PlanEncoder, State, read
from cloister.collection.wire.batches import form_of
from tests.federated.test_processes import Site
from tests.in_process import cloister
from tests.rows.databases.postgres import OWNER, Postgres

ROWS = np.random.default_rng(3).normal(0, 0.4, (600, 2))


@pytest.fixture(params=["duckdb", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with a sixth of the rows, by people's numbers and in no order."""
    order = np.random.default_rng(4).permutation(100)
    table = pa.table({"0": ROWS[300:400, 0][order], "1": ROWS[300:400, 1][order], "number": order})
    if request.param == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        postgres.put("ours", table)
        return f"postgres://{OWNER}@/postgres?host={postgres.server.home}"
    pq.write_table(table, tmp_path / "ours.parquet")
    with duckdb.connect(str(tmp_path / "lake.db")) as lake:
        lake.execute(f"CREATE TABLE ours AS FROM '{tmp_path / 'ours.parquet'}'")
    return f"duckdb:///{tmp_path / 'lake.db'}"


def test_parties_with_databases_and_files_pool_as_a_curator_would(address: str, tmp_path: Path) -> None:
    """One party's rows are in a database, and another's are read by a process of its own."""
    site = Site(tmp_path, ROWS, rounds=2)
    pq.write_table(pa.table({"0": ROWS[:300, 0], "1": ROWS[:300, 1]}), tmp_path / "north.parquet")
    coordinator, port = site.coordinate()
    spread = "--data", "north.parquet", "--engine", "processes", "--workers", "1"
    parties = [
        site.join("north", port, *spread, rows=False),
        site.join("south", port, "--data", address, "--table", "ours", rows=False),
        site.join("west", port),
    ]
    site.check(coordinator, *parties)


def test_people_of_a_database_report_under_their_own_numbers(address: str, tmp_path: Path) -> None:
    plan = (
        "plan",
        "-k",
        "2",
        "--epsilon",
        "2",
        "--rows",
        "200",
        "--bounds",
        "ball:2",
        "--columns",
        "0,1",
        "--out",
        "plan",
    )
    assert cloister(*plan, folder=tmp_path).returncode == 0
    asked = "encode", "plan", address, "--table", "ours", "--out", "reports", "--state", "mine.state"
    assert "no places for user numbers to follow from" in cloister(*asked, folder=tmp_path).stderr
    done = cloister(*asked, "--user-column", "number", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "reports").iterdir()
    published = read(tmp_path / "plan")
    assert form_of(published.hash, published.round()).parse(path.read_bytes()).users.tolist() == list(range(100))
    kept = PlanEncoder(published).encode(np.zeros((100, 2)), np.arange(100), State(tmp_path / "mine.state"))
    assert np.array_equal(form_of(published.hash, published.round()).parse(path.read_bytes()).answers, kept.answers)

"""All rounds of a run are of the same rows, or it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import duckdb
import ibis
import numpy as np
import pytest

from cloister.core.domains import Box
from cloister.core.errors import InvalidInput
from cloister.core.nearest import NearestCenter
from cloister.core.questions import count
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases import database
from cloister.rows.databases.dialect import Dialect
from cloister.rows.databases.duckdb import DUCKDB
from cloister.testing.stubs import Dealt
from tests.rows.databases.rounds import answers, same

HELD = "stream"
"""The way in which rows are read once."""

pytestmark = pytest.mark.usefixtures("way")

DOMAIN = Box((-1.0,) * 2, (1.0,) * 2)
NEAR = NearestCenter(DOMAIN.snap(np.array([[-0.5, 0.0], [0.5, 0.0]])), DOMAIN.max_norm)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with rows, a view of them, and one of a file of them."""
    connection = duckdb.connect(str(tmp_path / "lake.db"))
    connection.execute("CREATE TABLE rows AS SELECT range / 100.0 - 1 AS x, (range % 7) / 10.0 AS y FROM range(200)")
    connection.execute("CREATE VIEW seen AS SELECT x, y FROM rows")
    connection.execute(f"COPY rows TO '{tmp_path}/rows.csv'")
    connection.execute(f"CREATE VIEW read AS SELECT * FROM read_csv('{tmp_path}/rows.csv')")
    yield connection
    connection.close()


def population(lake: Any, name: str = "rows", **more: Any) -> SqlTable:
    return SqlTable(ibis.duckdb.from_connection(lake).table(name), "*", **more)


def counted(some: SqlTable) -> list[int]:
    (values,) = answers(some, DOMAIN, (count, NEAR))
    return [int(value) for value in values]


CHANGES = (
    "INSERT INTO rows VALUES (0.5, 0)",
    "DELETE FROM rows WHERE x > 0.9",
    "UPDATE rows SET x = x + 0.001 WHERE x BETWEEN 0.4 AND 0.405",
    "UPDATE rows SET y = 0.1, x = 0.1 WHERE x > 0.98",
)


@pytest.mark.parametrize("name", ["rows", "seen"])
@pytest.mark.parametrize("materialise", [False, True])
def test_who_writes_meanwhile_changes_no_round(lake: Any, name: str, materialise: bool) -> None:
    with population(lake, name, materialise=materialise) as some:
        some.check()
        before = counted(some)
        for change in CHANGES:
            lake.cursor().execute(change)
            assert counted(some) == before == [101, 99], change
        assert some.people == 200
    assert lake.execute("SELECT count(*) FROM rows").fetchone() == (192,)


def test_her_own_transaction_is_the_snapshot_and_hers_to_end(lake: Any) -> None:
    lake.execute("BEGIN TRANSACTION")
    lake.execute("INSERT INTO rows VALUES (0.2, 0)")
    with population(lake) as some:
        some.check()
        assert some.people == 201
    lake.execute("ROLLBACK")
    assert lake.execute("SELECT count(*) FROM rows").fetchall() == [(200,)]


def test_a_connection_is_used_as_before_when_the_run_is_over(lake: Any) -> None:
    for materialise in (False, True):
        with population(lake, materialise=materialise) as some:
            some.check()
        lake.execute("INSERT INTO rows VALUES (0.2, 0)")
        assert lake.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchall() == [(0,)]
    assert lake.execute("SELECT count(*) FROM rows").fetchall() == [(202,)]


@pytest.mark.parametrize("asked", [NEAR, Dealt((2,))], ids=["compiled", "streamed"])
@pytest.mark.parametrize("kept", [0, 1], ids=["as many rows", "fewer rows"])
def test_a_view_that_changes_in_spite_of_the_snapshot_is_found(
    lake: Any, tmp_path: Path, asked: Any, kept: int, way: str
) -> None:
    file = tmp_path / "rows.csv"
    with population(lake, "read") as some:
        some.check()
        before = answers(some, DOMAIN, (count, asked))
        lines = file.read_text().splitlines()
        file.write_text("\n".join([*lines[: len(lines) - 1 - kept], "0.25,0.25"]))
        if way == HELD:
            assert same(answers(some, DOMAIN, (count, asked)), before)
        else:
            with pytest.raises(InvalidInput, match=r"not what they were when this run began.*--materialise"):
                answers(some, DOMAIN, (count, asked))
    with population(lake, "read", materialise=True) as some:
        rows = counted(some)
        file.unlink()
        assert counted(some) == rows


def test_fewer_rows_are_found_without_hashes(
    lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setitem(database.DIALECTS, "duckdb", attrs.evolve(DUCKDB, hashed=None))
    file = tmp_path / "rows.csv"
    with population(lake, "read") as some:
        assert counted(some) == [101, 99]
        file.write_text("\n".join(file.read_text().splitlines()[:-1]))
        if way == HELD:
            assert counted(some) == [101, 99]
        else:
            with pytest.raises(InvalidInput, match="not what they were"):
                counted(some)


def test_rows_made_at_random_are_found_and_copied_or_held_once(lake: Any, way: str) -> None:
    lake.execute("CREATE VIEW dice AS SELECT random() AS x, 0.5 AS y FROM range(500)")
    with population(lake, "dice") as some:
        if way == HELD:
            assert counted(some) == counted(some)
        else:
            some.check()
            with pytest.raises(InvalidInput, match="not what they were"):
                counted(some)
    with population(lake, "dice", materialise=True) as some:
        assert counted(some) == counted(some)


@pytest.mark.parametrize("lacking", [["begin"], ["hashed"], ["begin", "hashed"]])
def test_an_engine_with_neither_snapshot_nor_hashes_is_refused_before_a_row_is_read(
    lake: Any, lacking: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    less = attrs.evolve(DUCKDB, **{name: getattr(Dialect(), name) for name in lacking})
    monkeypatch.setitem(database.DIALECTS, "duckdb", less)
    if len(lacking) == 2:
        lake.execute("CREATE VIEW broken AS SELECT error('a row was read')::DOUBLE AS x, 1.0 AS y FROM rows")
        with pytest.raises(InvalidInput, match=r"no snapshot.*no hash of rows.*--materialise"):
            population(lake, "broken").check()
    with population(lake, materialise=len(lacking) == 2) as some:
        some.check()
        assert some.people == 200


@pytest.mark.parametrize(("x", "y"), [(-0.0, 0.0), (0.1, 0.1)])
def test_equal_rows_have_one_hash(lake: Any, x: float, y: float) -> None:
    def mark(value: float) -> bytes:
        lake.execute(f"CREATE OR REPLACE TABLE one AS SELECT '{value!r}'::DOUBLE AS x, 0.5 AS y")
        with population(lake, "one") as some:
            return some.marks(bytes(32))["the rows"]

    assert mark(x) == mark(y)
    assert mark(x) != mark(0.7)


@pytest.mark.parametrize("column", ["x", "y"])
def test_a_cell_that_changes_is_found_in_every_column(lake: Any, column: str) -> None:
    some = population(lake)
    some.check()
    some.close()
    lake.execute(f"UPDATE rows SET {column} = {column} + 1e-9 WHERE x = 0.5")
    with some, pytest.raises(InvalidInput, match="not what they were"):
        counted(some)


def test_a_pass_that_was_cut_short_is_made_again(lake: Any) -> None:
    lake.execute("INSERT INTO rows SELECT x / 2, y FROM rows, range(400)")
    with population(lake) as some:
        some.check()
        some._held = None
        chunks = some.chunks()
        next(chunks)
        chunks.close()
        assert sum(counted(some)) == 200 * 401

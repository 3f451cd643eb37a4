"""All rounds of a run are of the same rows, or it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pytest

from cloister.core.domains import Box
from cloister.core.nearest import NearestCenter
from cloister.core.questions import count
from cloister.plugins.populations.sql_table import SqlTable
from tests.sql.rounds import answers

DOMAIN = Box((-1.0,) * 2, (1.0,) * 2)
NEAR = NearestCenter(DOMAIN.snap(np.array([[-0.5, 0.0], [0.5, 0.0]])), DOMAIN.max_norm)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with rows, and a view of them."""
    connection = duckdb.connect(str(tmp_path / "lake.db"))
    connection.execute("CREATE TABLE rows AS SELECT range / 100.0 - 1 AS x, (range % 7) / 10.0 AS y FROM range(200)")
    connection.execute("CREATE VIEW seen AS SELECT x, y FROM rows")
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


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["rows", "seen"])
@pytest.mark.parametrize("materialise", [False, True])
def test_who_writes_meanwhile_changes_no_round(lake: Any, name: str, change: str, materialise: bool) -> None:
    with population(lake, name, materialise=materialise) as some:
        some.check()
        before = counted(some)
        lake.cursor().execute(change)
        assert counted(some) == before == [101, 99]
        assert some.people == 200
    rows = lake.execute("SELECT count(*) FROM rows").fetchone()
    assert rows == (200 + change.startswith("INSERT") - 9 * change.startswith("DELETE"),)

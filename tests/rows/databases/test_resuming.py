"""Runs over databases go on with the rows that they began with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.core.errors import Refused
from cloister.plugins.populations.sql_table import SqlTable
from tests.run.test_resuming import cut_off, run

pytestmark = pytest.mark.usefixtures("way")

KEY = bytes(range(32))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger.open(tmp_path / "budget.db", create=True)
    book.declare("mine", 10.0, 1e-5)
    return book


@pytest.fixture
def lake() -> Any:
    backend = ibis.duckdb.connect()
    rows = np.random.default_rng(0).normal(0, 0.3, (2000, 2))
    backend.con.register("given", pa.table({"x": rows[:, 0], "y": rows[:, 1]}))
    backend.raw_sql("CREATE TABLE visits AS SELECT * FROM given")
    backend.con.unregister("given")
    return backend


def visits(lake: Any, name: str = "visits", **more: Any) -> SqlTable:
    return SqlTable(lake.table(name), "*", **more)


@pytest.mark.parametrize(
    ("change", "name", "differs"),
    [
        ("UPDATE visits SET x = x + 0.001 WHERE x = (SELECT max(x) FROM visits)", "visits", "the rows differ"),
        ("DELETE FROM visits WHERE x = (SELECT max(x) FROM visits)", "visits", "the number of rows, the rows differ"),
        ("CREATE TABLE others AS SELECT * FROM visits", "others", "the table differ"),
        ("ALTER TABLE visits ADD COLUMN z DOUBLE", "visits", None),
    ],
)
def test_a_run_does_not_go_on_with_a_table_that_changed(
    ledger: Ledger, lake: Any, change: str, name: str, differs: str | None
) -> None:
    with SqlTable(lake.table("visits"), ["x", "y"]) as before:
        cut = cut_off(ledger, before)
    lake.raw_sql(change)
    with SqlTable(lake.table(name), ["x", "y"]) as changed:
        if differs is not None:
            with pytest.raises(Refused, match=f"they have moved: {differs}"):
                run(ledger, changed, resume=cut)
        run(ledger, changed, resume=cut, same_rows=differs is not None)
    assert ledger.runs()[-1].state == "done"


def test_rows_are_known_again_in_any_order_and_in_a_copy(ledger: Ledger, lake: Any) -> None:
    with visits(lake) as some:
        marks, cut = some.marks(KEY), cut_off(ledger, some)
        assert some.marks(bytes(32))["the rows"] != marks["the rows"]
    lake.raw_sql("CREATE OR REPLACE TABLE visits AS SELECT * FROM visits ORDER BY y")
    with visits(lake) as ordered:
        assert ordered.marks(KEY) == marks
    with visits(lake, materialise=True) as copied:
        run(ledger, copied, resume=cut)
    assert ledger.runs()[-1].state == "done"


def test_the_same_rows_of_other_users_are_other_rows(lake: Any) -> None:
    """A run would keep others of them."""
    lake.raw_sql("CREATE TABLE named AS SELECT x, y, row_number() OVER (ORDER BY x) % 700 AS who FROM visits")
    with SqlTable(lake.table("named"), ["x", "y"], users="who") as some:
        before = some.marks(KEY)
    lake.raw_sql("UPDATE named SET who = 699 - who")
    with SqlTable(lake.table("named"), ["x", "y"], users="who") as some:
        after = some.marks(KEY)
    assert [what for what in before if before[what] != after[what]] == ["the rows"]

"""What an engine answers that no rows could give is refused, and quoted nowhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cloister.core.domains import Box
from cloister.core.errors import CloisterError
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Rows, count, vector_sum
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases import database
from cloister.rows.databases.duckdb import DUCKDB
from tests.rows.databases.rounds import answers

DOMAIN = Box((-1.0,) * 2, (1.0,) * 2)
NEAR = NearestCenter(DOMAIN.snap(np.array([[-0.5, 0.0], [0.5, 0.0]])), DOMAIN.max_norm)
ASKED: Any = ((count, NEAR), (vector_sum, Rows.of(NEAR, DOMAIN)))


def other(name: str, change: Callable[[list[Any]], list[Any]]) -> Callable[[pa.Table], pa.Table]:
    """An answer with another column of this name."""
    return lambda answer: answer.set_column(
        answer.column_names.index(name), name, pa.array(change(answer[name].to_pylist()))
    )


WRONG: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a bucket is missing": lambda answer: answer.slice(1),
    "a bucket comes twice": other("id", lambda ids: [ids[0]] * len(ids)),
    "a bucket has no id": other("id", lambda ids: [None, *ids[1:]]),
    "an id is beyond all": other("id", lambda ids: [99, *ids[1:]]),
    "an id is below -1": other("id", lambda ids: [-5, *ids[1:]]),
    "fewer rows than none": other("rows", lambda rows: [rows[0] + 500, rows[1] - 500, *rows[2:]]),
    "no sum": other("s0", lambda sums: [None, *sums[1:]]),
    "a sum with a fraction": other("s0", lambda sums: [sums[0] + 0.5, *sums[1:]]),
    "a sum that is a text": other("s1", lambda sums: ["secret" for _ in sums]),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_answer_that_no_rows_could_give_is_refused(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(expression: Any) -> pa.Table:
        found = DUCKDB.stream(expression, 2**16).read_all()
        return WRONG[what](found) if "s1" in found.column_names else found

    rows = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    engine = ibis.duckdb.connect()
    engine.con.register("rows", pa.table({"x": rows[:, 0], "y": rows[:, 1]}))
    with SqlTable(engine.table("rows"), "*") as table:
        found = answers(table, DOMAIN, *ASKED)
        assert found[0].sum() == 300
        monkeypatch.setitem(database.DIALECTS, "duckdb", attrs.evolve(DUCKDB, answer=answer))
    with SqlTable(engine.table("rows"), "*") as table, pytest.raises(CloisterError) as caught:
        answers(table, DOMAIN, *ASKED)
    assert "secret" not in str(caught.value)


def test_the_kind_of_a_failure_is_told_but_not_the_engine_s_words(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"x": np.linspace(-1, 1, 10**5)}), tmp_path / "rows.parquet")
    engine = ibis.duckdb.connect()
    view = engine.read_parquet(tmp_path / "rows.parquet")
    engine.raw_sql("SET memory_limit = '1KB'")
    told = pytest.raises(CloisterError, match=r"duckdb could not answer \(\w+\): nothing was answered")
    with SqlTable(view, "*") as table, told:
        table.check()

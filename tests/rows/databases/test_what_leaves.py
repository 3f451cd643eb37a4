"""What an engine is asked, and what it answers: the promises of ``docs/howto/sql.md``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from ibis.backends.duckdb import Backend

from cloister.rows.databases.duckdb import DUCKDB
from cloister.run.fit import fit, source
from cloister.run.request import Request
from tests.rows.databases.hostile import as_table

ROWS = np.random.default_rng(0).uniform(-1, 1, (3000, 2))


@pytest.mark.parametrize(
    ("method", "materialise"), [("fastlloyd", True), ("su-lloyd", False), ("hst-means", False), ("grid-means", False)]
)
def test_queries_only_read_and_quote_no_cell_and_their_answers_are_integers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: Callable[..., None], method: str, materialise: bool
) -> None:
    lake = tmp_path / "lake.db"
    with duckdb.connect(str(lake)) as con:
        con.from_arrow(as_table(ROWS)).create("visits")
    said, answers, told = list[str](), list[pa.Table](), list[str]()
    run, before = Backend.raw_sql, lake.read_bytes()

    def recorded(backend: Any, query: Any, **others: Any) -> Any:
        said.append(query if isinstance(query, str) else query.sql("duckdb"))
        return run(backend, query, **others)

    def streamed(expression: Any, size: int) -> Any:
        said.append(expression.get_backend().compile(expression))
        answers.append(DUCKDB.stream(expression, size).read_all())
        return answers[-1].to_reader()

    monkeypatch.setattr(Backend, "raw_sql", recorded)
    dialect(stream=streamed)
    address = f"duckdb://{lake}"
    with source(address, columns="*", table="visits", materialise=materialise, told=told.append) as population:
        fit(Request(k=4, epsilon=1.0, delta=1e-6, bounds="-1:1", rows=3000, method=method, seed=1), population)
    assert told == []
    assert lake.read_bytes() == before
    assert [path.name for path in lake.parent.iterdir()] == ["lake.db"]
    kinds = {type(sqlglot.parse_one(text, dialect="duckdb")).__name__ for text in said if "BEGIN" not in text}
    assert kinds <= {"Select", "Rollback", "Describe", "Create", "Drop"}
    changes = [text for text in said if text.startswith(("CREATE", "DROP"))]
    assert len(changes) == 2 * materialise
    assert all('TEMPORARY TABLE "cloister_' in text or 'DROP TABLE "cloister_' in text for text in changes)
    text = "\n".join(said)
    assert not any(repr(float(cell)) in text for cell in ROWS.ravel())
    whole = [answer for answer in answers if "rows" in answer.column_names]
    assert whole
    assert all(pa.types.is_integer(f.type) or pa.types.is_decimal(f.type) for a in whole for f in a.schema)

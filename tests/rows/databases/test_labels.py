"""Labels in SQL: those that ``cloister predict`` writes, to the last row."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloister.core.errors import InvalidInput
from cloister.rows.columns import select
from cloister.rows.databases.database import Database, dialect_of
from cloister.rows.databases.features import table_columns
from cloister.rows.databases.labels import declare_table, label_table, offline_backend, statement
from cloister.rows.labelling import Labelling
from cloister.rows.options import Reading
from tests.in_process import ran
from tests.rows.databases.engines import TestEngine
from tests.rows.databases.hostile import as_table

ODD = [-0.0, 5e-324, -1e-200, 1e-150, 1e17, -1e300, 1.7976931348623157e308, -1.7976931348623157e308]


@pytest.mark.parametrize(("whole", "d", "k"), [(True, 8, 20), (False, 3, 7), (False, 1, 1)])
def test_labels_are_those_of_the_formula_on_any_numbers(engine: TestEngine, whole: bool, d: int, k: int) -> None:
    rng = np.random.default_rng((d, k))
    rows = rng.integers(-3, 4, (2000, d)).astype(float) if whole else rng.normal(size=(2000, d))
    centers = rng.integers(-3, 4, (k, d)).astype(float) if whole else rng.normal(size=(k, d))
    rows[::7, 0], rows[::31, -1] = rng.choice(ODD, len(rows[::7])), np.nan
    rows[::37, 0], rows[::41, -1] = np.inf, -np.inf
    table = engine.put("rows", as_table(rows).append_column("n", [np.arange(len(rows))]))
    labelling = Labelling.of(centers, None if whole else rng.uniform(0.01, 100, d))
    usable = np.isfinite(rows).all(axis=1)
    wanted = np.full(len(rows), -1)
    wanted[usable] = labelling.labels(rows[usable])
    chosen = select(table_columns(table), Reading(columns=[f"x{j}" for j in range(d)]))
    found = Database(table).answer(label_table(table, chosen, labelling, dialect_of(table.get_backend()), ["n"]))
    assert found["cluster"].to_numpy()[np.argsort(found["n"].to_numpy())].tolist() == wanted.tolist()
    assert (wanted == -1).sum() > 50


def test_a_query_keeps_the_columns_that_are_named_whatever_their_names(engine: TestEngine) -> None:
    names = ["c0", 'a"b', "v0", "k0", "n; DROP TABLE rows", "self", "exprs", "named_exprs", "value"]
    table = engine.put("rows", pa.table({name: [1.0, 2.0, 4.0] for name in names}))
    labelling = Labelling.of(np.array([[1.0], [4.0]]))
    chosen = select(table_columns(table), Reading(columns=["c0"]))
    dialect = dialect_of(table.get_backend())
    answer = Database(table).answer(label_table(table, chosen, labelling, dialect))
    assert answer.column_names == [*names, "cluster"]
    assert sorted(answer.to_pydict()["cluster"]) == [0, 0, 1]
    with pytest.raises(InvalidInput, match="too long for a view"):
        label_table(table, chosen, Labelling.of(np.arange(20_000.0)[:, None]), dialect)


def test_the_query_that_is_printed_gives_the_labels_of_predict(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "n": np.arange(3000),
            "age": rng.integers(0, 100, 3000),
            "stay": rng.exponential(9, 3000).astype("f4"),
            "ward": [None, *rng.choice(["A", "B", "C"], 2999).tolist()],
            "urgent": rng.integers(0, 2, 3000).astype(bool),
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    with duckdb.connect(str(tmp_path / "lake.db")) as con:
        con.from_arrow(table).create("visits")
    (tmp_path / "bounds.toml").write_text("age = [0, 100]\nstay = [0, 60]\nurgent = [0, 1]\n")
    how = "--epsilon 4 --delta 1e-6 --rows 3000 -k 6 --bounds bounds.toml --missing drop --category ward=A,B"
    ran(f"fit rows.parquet {how} --out result.json", tmp_path)
    ran("predict result.json rows.parquet --missing drop --keep n -o labels.parquet", tmp_path)
    labels = pq.read_table(tmp_path / "labels.parquet")
    assert set(labels["cluster"].to_pylist()) >= {-1, 0, 1}
    ask = "predict result.json --sql --keep n --table"
    looked, unlooked, as_json = (
        ran(line, tmp_path).stdout
        for line in (
            f"{ask} visits duckdb:///lake.db",
            f"{ask} lake.main.visits --dialect duckdb",
            f"{ask} visits --json",
        )
    )
    assert json.loads(as_json)["private"] is False
    with duckdb.connect(str(tmp_path / "lake.db"), read_only=True) as con:
        for query in (looked, unlooked, json.loads(as_json)["sql"]):
            found = con.execute(query).fetchall()
            assert sorted(found) == list(zip(labels["n"].to_pylist(), labels["cluster"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("name", "driver"),
    [("duckdb", "duckdb"), ("postgres", "psycopg"), ("pyspark", "pyspark"), ("snowflake", "ibis")],
)
def test_a_dialect_quotes_names(name: str, driver: str) -> None:
    pytest.importorskip(driver)
    backend = offline_backend(name)
    table = declare_table({'a"b`c': False, "ward": True}, "s.visits")
    chosen = select(table_columns(table), Reading(columns=['a"b`c']))
    query = label_table(table, chosen, Labelling.of(np.eye(2)[:, :1]), dialect_of(backend))
    text = statement(backend, query, 's.v"w`')
    assert text.startswith({"pyspark": 'CREATE VIEW `s`.`v"w``` AS'}.get(name, 'CREATE VIEW "s"."v""w`" AS'))
    assert {"pyspark": '`a"b``c`'}.get(name, '"a""b`c"') in text

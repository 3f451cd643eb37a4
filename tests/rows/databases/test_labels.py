"""Labels in SQL: those that ``cloister predict`` writes, to the last row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloister.core.errors import InvalidInput
from cloister.rows.columns import select
from cloister.rows.databases.database import Database, dialect_of
from cloister.rows.databases.features import table_columns
from cloister.rows.databases.labels import labelled, statement, unconnected, unseen
from cloister.rows.labelling import Labelling
from tests.in_process import cloister
from tests.rows.databases.engines import TestEngine

ODD = [-0.0, 5e-324, -1e-200, 1e-150, 1e17, -1e300, 1.7976931348623157e308, -1.7976931348623157e308]


def found(table: Any, labelling: Labelling, names: list[str]) -> dict[int, int]:
    """Labels by the column 'n'."""
    chosen = select(table_columns(table), names)
    answer = Database(table).answer(labelled(table, chosen, labelling, dialect_of(table.get_backend()), ["n"]))
    return dict(zip(answer["n"].to_pylist(), answer["cluster"].to_pylist(), strict=True))


@pytest.mark.parametrize(("whole", "d", "k"), [(True, 8, 20), (False, 3, 7), (False, 1, 1)])
def test_labels_are_those_of_the_formula_on_any_numbers(engine: TestEngine, whole: bool, d: int, k: int) -> None:
    rng = np.random.default_rng((d, k))
    rows = rng.integers(-3, 4, (2000, d)).astype(float) if whole else rng.normal(size=(2000, d))
    centers = rng.integers(-3, 4, (k, d)).astype(float) if whole else rng.normal(size=(k, d))
    rows[::7, 0], rows[::31, -1] = rng.choice(ODD, len(rows[::7])), np.nan
    rows[::37, 0], rows[::41, -1] = np.inf, -np.inf
    names = [f"x{j}" for j in range(d)]
    columns = {name: pa.array(rows[:, j], from_pandas=True) for j, name in enumerate(names)}
    table = engine.put("rows", pa.table({"n": np.arange(len(rows)), **columns}))
    labelling = Labelling.of(centers, None if whole else rng.uniform(0.01, 100, d))
    usable = np.isfinite(rows).all(axis=1)
    wanted = np.full(len(rows), -1)
    wanted[usable] = labelling.labels(rows[usable])
    assert found(table, labelling, names) == dict(enumerate(wanted.tolist()))
    assert (wanted == -1).sum() > 50


def test_a_query_keeps_the_columns_that_are_named_whatever_their_names(engine: TestEngine) -> None:
    names = ["c0", 'a"b', "v0", "k0", "n; DROP TABLE rows", "self", "exprs", "named_exprs", "value"]
    table = engine.put("rows", pa.table({name: [1.0, 2.0, 4.0] for name in names}))
    labelling = Labelling.of(np.array([[1.0], [4.0]]))
    chosen = select(table_columns(table), ["c0"])
    dialect = dialect_of(table.get_backend())
    answer = Database(table).answer(labelled(table, chosen, labelling, dialect))
    assert answer.column_names == [*names, "cluster"]
    assert sorted(answer.to_pydict()["cluster"]) == [0, 0, 1]
    with pytest.raises(InvalidInput, match="too long for a view"):
        labelled(table, chosen, Labelling.of(np.arange(20_000.0)[:, None]), dialect)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows in a database and in a file, and a result of them."""
    folder = tmp_path_factory.mktemp("labels")
    rng = np.random.default_rng(0)
    ward = rng.choice(["A", "B", "C"], 3000).tolist()
    ward[5] = None
    table = pa.table(
        {
            "n": np.arange(3000),
            "age": rng.integers(0, 100, 3000),
            "stay": rng.exponential(9, 3000).astype("f4"),
            "ward": ward,
            "urgent": rng.integers(0, 2, 3000).astype(bool),
        }
    )
    pq.write_table(table, folder / "rows.parquet")
    with duckdb.connect(str(folder / "lake.db")) as con:
        con.register("given", table)
        con.execute("CREATE TABLE visits AS SELECT * FROM given")
        con.execute("CREATE SCHEMA found")
    (folder / "bounds.toml").write_text("age = [0, 100]\nstay = [0, 60]\nurgent = [0, 1]\n")
    fit = "fit rows.parquet --epsilon 4 --delta 1e-6 --rows 3000"
    ran(folder, f"{fit} -k 6 --bounds bounds.toml --missing drop --category ward=A,B --out result.json")
    ran(folder, f"{fit} -k 4 --columns age,stay --bounds 0:100,0:60 --out plain.json")
    return folder


def ran(folder: Path, line: str) -> str:
    """What a command prints."""
    done = cloister(*line.split(), folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def of_file(folder: Path, result: str = "result.json") -> list[tuple[int, int]]:
    """What ``cloister predict`` writes."""
    ran(folder, f"predict {result} rows.parquet --missing drop --keep n -o labels.parquet")
    labels = pq.read_table(folder / "labels.parquet")
    return list(zip(labels["n"].to_pylist(), labels["cluster"].to_pylist(), strict=True))


def asked(folder: Path, query: str) -> list[tuple[int, int]]:
    with duckdb.connect(str(folder / "lake.db"), read_only=True) as con:
        return sorted(con.execute(query).fetchall())


def test_the_query_that_is_printed_gives_the_labels_of_predict(folder: Path) -> None:
    wanted = of_file(folder)
    assert {label for _, label in wanted} >= {-1, 0, 1}
    assert asked(folder, ran(folder, "predict result.json duckdb:///lake.db --sql --table visits --keep n")) == wanted
    unlooked = ran(folder, "predict result.json --sql --table lake.main.visits --keep n --dialect duckdb")
    assert asked(folder, unlooked) == wanted
    as_json = json.loads(ran(folder, "predict result.json --sql --table visits --keep n --json"))
    assert asked(folder, as_json["sql"]) == wanted
    assert as_json["private"] is False


@pytest.mark.parametrize("name", ["duckdb", "postgres", "pyspark", "snowflake"])
def test_a_dialect_quotes_names(name: str) -> None:
    pytest.importorskip({"postgres": "psycopg"}.get(name, name if name != "snowflake" else "ibis"))
    backend = unconnected(name)
    table = unseen({'a"b`c': False, "ward": True}, "s.visits")
    chosen = select(table_columns(table), ['a"b`c'])
    query = labelled(table, chosen, Labelling.of(np.eye(2)[:, :1]), dialect_of(backend))
    text = statement(backend, query, 's.v"w`')
    assert text.startswith({"pyspark": 'CREATE VIEW `s`.`v"w``` AS'}.get(name, 'CREATE VIEW "s"."v""w`" AS'))
    assert {"pyspark": '`a"b``c`'}.get(name, '"a""b`c"') in text

"""Two texts are one where their characters are: whatever collation a column, a session or an address gives them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import duckdb
import ibis
import pyarrow as pa
import pytest

from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases import database
from cloister.rows.databases.duckdb import DUCKDB
from cloister.run.fit import source
from tests.rows.databases.engines import TestEngine

ALIKE = ["Bo", "bo", "BO", "b\u00f3", "B\u00d3", "bo\u0301", "7", "7.0", "7.0\u0301", "TRUE", "true", "a", "\u00e4"]
"""Some of these are one name to every collation below; 7 and 7.0 are one name to us."""

NAMES = len(ALIKE) - 1
LISTED = ["bo", "7", "true", "a"]
TABLE = pa.table({"x": [float(i) for i in range(len(ALIKE))], "c": ALIKE})

COLLATIONS = ("NOCASE", "NOACCENT", "NOCASE.NOACCENT")


def refuse_what_is_taken_for_another(population: Any) -> None:
    """Every name keeps a row of its own."""
    population.check()
    population.keep(1, PublicRng.from_seed(1))
    found = population._database.answer(population._usable.table)
    assert len(found) == NAMES
    assert len(set(found["user"].to_pylist())) == NAMES


def features(population: Any) -> list[Any]:
    found = population._database.answer(population._usable.table)
    return sorted(zip(*(found[f"c{j}"].to_pylist() for j in range(len(LISTED) + 1)), strict=True))


def wanted() -> list[Any]:
    return sorted(map(tuple, Arrays(TABLE, ["x"], categories={"c": LISTED}).table().tolist()))


@contextmanager
def collated(how: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Arguments of ``source`` for a DuckDB whose session has a collation, by an address or by its owner."""
    with duckdb.connect(str(folder / "lake.db")) as lake:
        lake.register("given", TABLE)
        lake.execute("CREATE TABLE visits AS SELECT * FROM given")
    if how.startswith("?"):
        yield {"rows": f"duckdb://{folder}/lake.db{how}", "table": "visits"}
        return
    backend = ibis.duckdb.connect(folder / "lake.db")
    backend.raw_sql(f"SET default_collation='{how}'")
    yield {"rows": backend.table("visits")}
    backend.disconnect()


@pytest.mark.parametrize("how", [*COLLATIONS, "?default_collation=NOCASE"])
def test_a_session_s_collation_makes_nobody_somebody_else(how: str, tmp_path: Path) -> None:
    with collated(how, tmp_path) as given:
        with source(**given, columns=["x"], missing="refuse", users="c") as population:
            refuse_what_is_taken_for_another(population)
        with source(**given, columns=["x"], missing="refuse", categories={"c": LISTED}) as population:
            assert features(population) == wanted()


def test_a_column_s_collation_makes_nobody_somebody_else(engine: TestEngine) -> None:
    table = engine.collated("alike", TABLE)
    with SqlTable(table, ["x"], users="c") as population:
        refuse_what_is_taken_for_another(population)
    with SqlTable(table, ["x"], categories={"c": LISTED}) as population:
        assert features(population) == wanted()


@pytest.mark.parametrize("how", ["NOCASE", "NOACCENT"])
def test_an_engine_that_compares_texts_as_a_collation_does_is_refused(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(database.DIALECTS, "duckdb", attrs.evolve(DUCKDB, utf8=lambda text: text))
    with (
        collated(how, tmp_path) as given,
        source(**given, columns=["x"], missing="refuse") as population,
        pytest.raises(InvalidInput, match="it gets texts that name users wrong"),
    ):
        population.check()

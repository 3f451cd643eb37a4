"""Tables that cannot be used, and names that look like SQL."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from cloister.core.domains import Box
from cloister.core.errors import InvalidInput, UnknownName
from cloister.core.nearest import NearestCenter
from cloister.core.questions import count, vector_sum
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.sql_table import SqlTable
from tests.rows.databases.engines import TestEngine
from tests.rows.databases.rounds import answers

SQUARE = Box((-1.0,) * 2, (1.0,) * 2)
CENTERS = SQUARE.snap(np.random.default_rng(1).uniform(-1, 1, (5, 2)))
ROWS = np.random.default_rng(0).uniform(-1.2, 1.2, (300, 2))


def asked() -> tuple[tuple[object, object], ...]:
    near = NearestCenter(CENTERS, SQUARE.max_norm, None)
    return (count, near), (vector_sum, near.offsets())


def test_a_column_that_is_not_there_is_told_with_the_nearest_names(engine: TestEngine) -> None:
    table = engine.put("rows", pa.table({"glucose": [1.0], "age": [2.0]}))
    for given in (
        {"columns": ["glucos"]},
        {"bounded": ["glucos"]},
        {"columns": ["age"], "categories": {"glucos": [1]}},
    ):
        with pytest.raises(UnknownName, match=r"'glucos'.*glucose"):
            SqlTable(table, **given)
    with pytest.raises(UnknownName, match=r"user column.*'glucos'.*glucose"):
        SqlTable(table, ["age"], users="glucos")
    with pytest.raises(InvalidInput, match=r"which columns\? There are glucose .numbers., age"):
        SqlTable(table)


@pytest.mark.parametrize("missing", ["refuse", "drop"])
@pytest.mark.parametrize("cells", [[], [None, None], [math.nan, math.inf]])
def test_a_table_of_no_rows_that_can_be_used_is_refused(engine: TestEngine, cells: list[float], missing: str) -> None:
    table = engine.put(
        "nothing", pa.table({"x": pa.array([1.0] * len(cells), "float64"), "y": pa.array(cells, "float64")})
    )
    with SqlTable(table, ["x", "y"], missing) as population:  # type: ignore[arg-type]
        said = "some cells are missing" if cells and missing == "refuse" else "there are no rows to use"
        with pytest.raises(InvalidInput, match=said):
            population.check()
        found = answers(population, SQUARE, *asked())  # a round of no rows is no error: the number of rows is private
        assert all(not each.any() for each in found)


def test_one_missing_cell_is_refused_unless_such_rows_are_dropped(engine: TestEngine) -> None:
    table = engine.put("rows", pa.table({"x": [1.0, 2.0, None], "y": [1, None, 3]}))
    with pytest.raises(InvalidInput, match="some cells are missing or infinite"), SqlTable(table, "*") as population:
        population.check()
    with SqlTable(table, "*", "drop") as population:
        population.check()
        assert population.people == 1


HOSTILE = [
    '"; DROP TABLE victim; --',
    "'; DROP TABLE victim; --",
    "`; DROP TABLE victim; --`",
    "a.b",
    '"',
    "''",
    "a b",
    "select",
    "order",
    "\u00e9",
    "\U0001f600",
    "x" * 60,
    "id_",
    "c0",
    "c1",
    "v0",
    "v1",
    "id",
    "rows",
    "mark",
    "s0",
    "s1",
    "used",
    "user",
    "place",
    "kept",
    "t0",
    "*",
    "a*",
    "?",
    "%s",
    "%(a)s",
    "{x}",
    "$1",
    ":a",
    "\\",
    "a\\",
    "--",
    "/*",
    "a\nb",
    "Case",
]


def test_hostile_names_of_columns_are_names(engine: TestEngine) -> None:
    victim = engine.put("victim", pa.table({"x": [1.0]}))
    rows = np.random.default_rng(0).uniform(-1.2, 1.2, (50, len(HOSTILE)))
    domain = Box((-1.0,) * len(HOSTILE), (1.0,) * len(HOSTILE))
    near = NearestCenter(domain.snap(rows[:4].clip(-1, 1)), domain.max_norm, None)
    with SqlTable(engine.put("rows", pa.table(dict(zip(HOSTILE, rows.T, strict=True)))), HOSTILE) as population:
        population.check()
        found = answers(population, domain, (count, near), (vector_sum, near.offsets()))
    wanted = answers(Arrays(rows), domain, (count, near), (vector_sum, near.offsets()))
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
    with SqlTable(victim, ["x"]) as left:
        assert left.people == 1


def test_hostile_names_of_tables_are_names(engine: TestEngine) -> None:
    victim = engine.put("victim", pa.table({"x": [1.0]}))
    for many, name in enumerate(HOSTILE[:12]):
        with SqlTable(engine.put(name, pa.table({name: [2.0] * (many + 1)})), [name]) as population:
            assert population.people == many + 1, name
    with SqlTable(victim, ["x"]) as left:
        assert left.people == 1


def test_names_of_columns_are_told_apart_as_the_engine_does(engine: TestEngine) -> None:
    """Names that differ by case are two columns, or the engine refuses such a table."""
    try:
        table = engine.put("cases", pa.table({"Age": ROWS[:, 0], "age": ROWS[:, 1]}))
    except Exception:
        return
    if list(table.columns) != ["Age", "age"]:
        return
    with SqlTable(table, ["age", "Age"]) as population:
        found = answers(population, SQUARE, *asked())
    wanted = answers(Arrays(ROWS[:, ::-1].copy()), SQUARE, *asked())
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))

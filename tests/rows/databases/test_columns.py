"""Columns of any type in a database are the features that files make of them, to the last bit."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cloister.core.domains import Box
from cloister.core.errors import InvalidInput
from cloister.core.nearest import NearestCenter
from cloister.core.questions import count, vector_sum
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.files import Files
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.categories import canonical, categories_of
from tests.rows.databases.engines import TestEngine
from tests.rows.databases.rounds import answers, same

WIDE = [2**53 + 1, 2**53 + 3, 2**62 + 2**9 + 1, -(2**63), 2**63 - 1, 0, 3, None]
"""Whole numbers that a double does not hold: ties to even, both ways."""


SHORT = (8, 32)


def decimals(digits: int, scale: int) -> pa.Array:
    g, largest = np.random.default_rng(digits), 10**digits - 1
    numbers = [largest, -largest, 0, 1, None, *(int(a * largest) for a in g.uniform(-1, 1, 200))]
    return pa.array([None if n is None else Decimal(f"{n}E-{scale}") for n in numbers], pa.decimal128(digits, scale))


NUMBERS: dict[str, pa.Array] = {
    **{f"int{bits}": pa.array([-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, None], f"int{bits}") for bits in SHORT},
    **{f"uint{bits}": pa.array([2**bits - 1, 0, None], f"uint{bits}") for bits in SHORT},
    "int64": pa.array(WIDE, "int64"),
    "uint64": pa.array([2**64 - 1, 2**64 - 2**10, 2**64 - 2**10 - 1, 2**63 + 2**10, 2**53 + 1, None], "uint64"),
    "float32": pa.array([0.1, -0.0, 3.4e38, 1e-45, math.nan, math.inf, None], "float32"),
    "float64": pa.array([0.1, -0.0, 1.7e308, 5e-324, 1e-310, math.nan, -math.inf, None], "float64"),
    "booleans": pa.array([True, False, None]),
    **{f"decimal{d}_{s}": decimals(d, s) for d, s in [(4, 2), (15, 3), (15, 15), (18, 4), (18, 18), (30, 12), (38, 0)]},
}


def features(population: SqlTable) -> np.ndarray:
    """The rows that can be used, as the engine gives them."""
    with population:
        stage = population._usable
        found = population._database.answer(stage.table)
        return np.column_stack([found[name].to_numpy() for name in stage.row])


def ordered(rows: np.ndarray) -> list[tuple[float, ...]]:
    return sorted(map(tuple, rows.tolist()))


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_every_type_are_the_doubles_of_files(engine: TestEngine, name: str, tmp_path: Path) -> None:
    table = pa.table({"x": NUMBERS[name]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    found = features(SqlTable(engine.put("numbers", table), ["x"], "drop"))
    wanted = Files(tmp_path / "a.parquet", ["x"], "drop").table()
    assert [x.hex() for x in np.sort(found[:, 0])] == [x.hex() for x in np.sort(wanted[:, 0])]


TEXTS = [
    *("3", "3.000", "3.00001", "3.0 ", " 3", "30.0", "+3", "-3.0", "3e0", "-0.0", "03.0", "9007199254740993.0", "3.50"),
    *("True", "true", "tRuE", "true ", "False", "NaN", "nan", "NULL", "A", "a", "A ", "\u00c4", "A\u0308", "", " "),
    *("it's", 'a"b', "a\\", "a\\\\", "\\'", "%", "_", "a%", "$1", "{}", "?", ":a", "'; DROP TABLE categories; --"),
    *("a\nb", "a\r\nb", "3\n", "3.0\n", "\n", "\U0001f600", "x" * 3000, None),
]
LISTED = [
    *("3", "30", "-3", "0", "-0", "03", "9007199254740993", "3.5", "true", "false", "NaN", "A", "A ", "\u00c4"),
    *("it's", 'a"b', "a\\", "\\'", "%", "_", "$1", "{}", "?", ":a", "'; DROP TABLE categories; --"),
    *("a\nb", "3\n", "\U0001f600", "x" * 3000),
]

FEW = sorted({"".join(letters) for n in range(4) for letters in itertools.product("-03.", repeat=n)})
"""All short texts of the characters that numbers are written with."""

MANY = Counter(canonical(text) for text in FEW if text)

CATEGORIES: dict[str, tuple[pa.Array, list[Any]]] = {
    "texts": (pa.array(TEXTS), LISTED),
    "short texts": (
        pa.array(FEW),  # against each value that several of them are, and some others
        [value for value in MANY if MANY[value] > 1] + ["-0", "03", "00", ".", "-", "0.3", "-30"],
    ),
    "whole numbers": (
        pa.array([3, 30, 0, -3, 2**63 - 1, -(2**63), None]),
        [3, "0", "-3", str(2**63), 2**63 - 1, "-0", "A"],
    ),
    "booleans": (pa.array([True, False, None]), ["true", "1", "FALSE"]),
    "floats": (
        pa.array([3.0, -0.0, 0.0, 0.1, 1e22, 1e-5, 2.0**53, math.nan, math.inf, -math.inf, None]),
        [3, 0, "0.1", "1e22", 10**22, "1e-05", "0.00001", str(2**53 + 1), str(2**53), "nan", "inf", "A", "-0"],
    ),
    "decimals": (
        pa.array([Decimal(n) for n in ("3.00", "3.10", "0.00", "-3.00", "30.03")] + [None], pa.decimal128(6, 2)),
        [3, "3.10", "3.1", 0, "-3", "-0", 30],
    ),
}


@pytest.mark.parametrize("name", CATEGORIES)
def test_categories_are_equal_where_they_are_over_files(engine: TestEngine, name: str) -> None:
    cells, listed = CATEGORIES[name]
    table = pa.table({"row": range(len(cells)), "c": cells})
    asked: dict[str, Any] = {"columns": ["row"], "missing": "drop", "categories": {"c": listed}}
    found = features(SqlTable(engine.put("categories", table), **asked))
    assert ordered(found) == ordered(Arrays(table, **asked).table())


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
def test_decimals_without_a_scale_are_equal_where_those_of_python_are(engine: TestEngine) -> None:
    """PostgreSQL's alone have none: 1.5 and 1.50 are one number in two spellings, and each is what it is by itself."""
    cells = ["1.5", "1.50", "3", "3.00", "0.000", "1" + "0" * 400, "1" + "0" * 900, "NaN", None]
    engine.put("spelt", pa.table({"row": range(len(cells)), "c": cells}))
    engine.run("ALTER TABLE spelt ALTER c TYPE numeric USING c::numeric")
    listed = ["1.5", "1.50", 3, 0, 10**400]
    found = features(SqlTable(engine.again("spelt"), ["row"], "drop", categories={"c": listed}))
    (category,) = categories_of({"c": listed})
    codes = category.codes([None if cell is None else Decimal(cell) for cell in cells])
    wanted = [(float(row), *(float(code == j) for j in range(5))) for row, code in enumerate(codes) if code == code]
    assert ordered(found) == wanted


OTHERS: dict[str, tuple[pa.Array, str]] = {
    "text": (pa.array(["1", "2"]), "does not hold numbers: leave it out"),
    "dates": (pa.array([1, 2], "date32"), "is a date: turn it into a number"),
    "lists": (pa.array([[1.0], [2.0]]), "is of another type: turn it into a number"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_holds_no_numbers_is_refused_by_its_type_and_passed_over_by_patterns(
    engine: TestEngine, name: str
) -> None:
    cells, said = OTHERS[name]
    table = engine.put("others", pa.table({"x": [1.0, 2.0], "c": cells, "visit_id": [1, 2], "y": [True, False]}))
    with pytest.raises(InvalidInput, match=f"column 'c' (does not hold numbers but )?{said}"):
        SqlTable(table, ["x", "c"])
    with pytest.raises(InvalidInput, match="no column of numbers matches"):
        SqlTable(table, "c*")
    assert SqlTable(table, "*").columns == ("x", "y")
    if name != "text":
        with pytest.raises(InvalidInput, match="categories are texts, whole numbers or booleans"):
            SqlTable(table, ["x"], categories={"c": ["1"]})


def test_what_a_file_s_statistics_leave_out_is_missing_in_views_of_it(tmp_path: Path) -> None:
    """Parquet's statistics say nothing of NaN, and DuckDB leaves comparisons out that they seem to answer."""
    x, who, ward = np.linspace(-1, 1, 90), np.arange(90.0) % 9, np.arange(90.0) % 3
    x[5], who[6], ward[7] = np.nan, np.nan, np.nan
    pyarrow.parquet.write_table(pa.table({"x": x, "who": who, "ward": ward}), tmp_path / "rows.parquet")
    view = ibis.duckdb.connect().read_parquet(str(tmp_path / "rows.parquet"))
    for columns, options, usable in (
        (["x"], {}, 89),
        (["ward"], {"categories": {"ward": ["1", "2"]}}, 89),
        (["x", "ward"], {"users": "who"}, 87),
    ):
        with SqlTable(view, columns, "drop", **options) as table:
            table.check()
            assert table.people == usable, columns
        with SqlTable(view, columns, **options) as table, pytest.raises(InvalidInput, match="missing or infinite"):
            table.check()


SQUARE = Box((-1.0,) * 2, (1.0,) * 2)
CENTERS = SQUARE.snap(np.random.default_rng(1).uniform(-1, 1, (5, 2)))
ROWS = np.random.default_rng(0).uniform(-1.2, 1.2, (300, 2))


def asked() -> tuple[tuple[object, object], ...]:
    near = NearestCenter(CENTERS, SQUARE.max_norm, None)
    return (count, near), (vector_sum, near.offsets())


NOTHING: list[tuple[list[Any], Any]] = [([], "refuse"), ([None, None], "refuse"), ([math.nan, math.inf], "drop")]


@pytest.mark.parametrize(("cells", "missing"), NOTHING)
def test_a_table_of_no_rows_that_can_be_used_is_refused(engine: TestEngine, cells: list[float], missing: Any) -> None:
    columns = {"x": pa.array([1.0] * len(cells), "float64"), "y": pa.array(cells, "float64")}
    with SqlTable(engine.put("nothing", pa.table(columns)), ["x", "y"], missing) as population:
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
    *('"; DROP TABLE victim; --', "'; DROP TABLE victim; --", "`; DROP TABLE victim; --`", "a.b", '"', "''", "a b"),
    *("select", "Case", "\u00e9", "\U0001f600", "x" * 60, "*", "?", "%s", "%(a)s", "{x}", "$1", ":a", "a\\", "a\nb"),
    *("--", "/*", "id_", "c0", "v0", "id", "rows", "mark", "s0", "used", "user", "place", "kept", "t0"),
]


def test_hostile_names_of_columns_and_tables_are_names(engine: TestEngine) -> None:
    victim = engine.put("victim", pa.table({"x": [1.0]}))
    rows = np.random.default_rng(0).uniform(-1.2, 1.2, (50, len(HOSTILE)))
    domain = Box((-1.0,) * len(HOSTILE), (1.0,) * len(HOSTILE))
    near = NearestCenter(domain.snap(rows[:4].clip(-1, 1)), domain.max_norm, None)
    with SqlTable(engine.put("rows", pa.table(dict(zip(HOSTILE, rows.T, strict=True)))), HOSTILE) as population:
        population.check()
        found = answers(population, domain, (count, near), (vector_sum, near.offsets()))
    wanted = answers(Arrays(rows), domain, (count, near), (vector_sum, near.offsets()))
    assert same(found, wanted)
    for name in HOSTILE[:12]:
        with SqlTable(engine.put(name, pa.table({name: [2.0]})), [name]) as population:
            assert population.people == 1, name
    with SqlTable(victim, ["x"]) as left:
        assert left.people == 1

"""Columns of any type in a database are the features that files make of them, to the last bit."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.files import Files
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.categories import canonical, categories_of
from cloister.rows.options import Reading
from cloister.run.fit import source
from tests.rows.databases.engines import TestEngine
from tests.rows.databases.rounds import with_users


def decimals(digits: int, scale: int) -> pa.Array:
    g, largest = np.random.default_rng(digits), 10**digits - 1
    numbers = [largest, -largest, 0, 1, None, *(int(a * largest) for a in g.uniform(-1, 1, 200))]
    return pa.array([None if n is None else Decimal(f"{n}E-{scale}") for n in numbers], pa.decimal128(digits, scale))


NUMBERS: dict[str, pa.Array] = {
    **{f"int{bits}": pa.array([-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, None], f"int{bits}") for bits in (8, 32)},
    **{f"uint{bits}": pa.array([2**bits - 1, 0, None], f"uint{bits}") for bits in (8, 32)},
    # whole numbers that a double does not hold: ties to even, both ways
    "int64": pa.array([2**53 + 1, 2**53 + 3, 2**62 + 2**9 + 1, -(2**63), 2**63 - 1, 0, 3, None], "int64"),
    "uint64": pa.array([2**64 - 1, 2**64 - 2**10, 2**64 - 2**10 - 1, 2**63 + 2**10, 2**53 + 1, None], "uint64"),
    "float32": pa.array([0.1, -0.0, 3.4e38, 1e-45, math.nan, math.inf, None], "float32"),
    "float64": pa.array([0.1, -0.0, 1.7e308, 5e-324, 1e-310, math.nan, -math.inf, None], "float64"),
    "booleans": pa.array([True, False, None]),
    **{f"decimal{d}_{s}": decimals(d, s) for d, s in [(4, 2), (15, 3), (15, 15), (18, 4), (18, 18), (30, 12), (38, 0)]},
}


def features(population: Any) -> list[tuple[float, ...]]:
    """The rows that can be used, in the order of all of them."""
    with population:
        return sorted(map(tuple, population.table().tolist()))


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_every_type_are_the_doubles_of_files(engine: TestEngine, name: str, tmp_path: Path) -> None:
    table = pa.table({"x": NUMBERS[name]})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    asked: dict[str, Any] = {"columns": ["x"], "missing": "drop"}
    found = features(SqlTable(engine.put("numbers", table), Reading(**asked)))
    assert [x.hex() for (x,) in found] == [
        x.hex() for (x,) in features(Files(tmp_path / "a.parquet", Reading(**asked)))
    ]


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
    table = pa.table({"row": range(len(cells)), "c": cells, "beside": range(len(cells))})
    for described in (None, ["c", "beside"]):
        asked: dict[str, Any] = {"missing": "drop", "categories": {"c": listed}, "described": described}
        population = SqlTable(engine.put("categories", table), Reading(columns=["row"], **asked))
        assert population.columns == Arrays(table, Reading(columns=["row"], **asked)).columns
        assert features(population) == features(Arrays(table, Reading(columns=["row"], **asked)))


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
def test_decimals_without_a_scale_are_equal_where_those_of_python_are(engine: TestEngine) -> None:
    """PostgreSQL's alone have none: 1.5 and 1.50 are one number in two spellings, and each is what it is by itself."""
    cells = ["1.5", "1.50", "3", "3.00", "0.000", "1" + "0" * 400, "1" + "0" * 900, "NaN", None]
    engine.put("spelt", pa.table({"row": range(len(cells)), "c": cells}))
    engine.run("ALTER TABLE spelt ALTER c TYPE numeric USING c::numeric")
    listed = ["1.5", "1.50", 3, 0, 10**400]
    found = features(
        SqlTable(engine.again("spelt"), Reading(columns=["row"], missing="drop", categories={"c": listed}))
    )
    (category,) = categories_of({"c": listed})
    codes = category.codes([None if cell is None else Decimal(cell) for cell in cells])
    wanted = np.column_stack([np.arange(len(cells)), *category.one_hot(codes)])
    assert found == [tuple(row) for row in wanted.tolist() if not math.isnan(row[1])]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (pa.array(["1", "2"]), "does not hold numbers: leave it out"),
        (pa.array([1, 2], "date32"), "is a date: turn it into a number"),
        (pa.array([[1.0], [2.0]]), "is of another type: turn it into a number"),
    ],
    ids=["text", "dates", "lists"],
)
def test_what_holds_no_numbers_is_refused_by_its_type_and_passed_over_by_patterns(
    engine: TestEngine, cells: pa.Array, said: str
) -> None:
    table = engine.put("others", pa.table({"x": [1.0, 2.0], "c": cells, "visit_id": [1, 2], "y": [True, False]}))
    with pytest.raises(InvalidInput, match=f"column 'c' (does not hold numbers but )?{said}"):
        SqlTable(table, Reading(columns=["x", "c"]))
    assert SqlTable(table, Reading(columns="*")).columns == ("x", "y")


def test_what_a_file_s_statistics_leave_out_is_missing_in_views_of_it(tmp_path: Path) -> None:
    """Parquet's statistics say nothing of NaN, and DuckDB leaves comparisons out that they seem to answer."""
    x, who, ward = np.linspace(-1, 1, 90), np.arange(90.0) % 9, np.arange(90.0) % 3
    x[5], who[6], ward[7] = np.nan, np.nan, np.nan
    pyarrow.parquet.write_table(pa.table({"x": x, "who": who, "ward": ward}), tmp_path / "rows.parquet")
    view = ibis.duckdb.connect().read_parquet(str(tmp_path / "rows.parquet"))
    for columns, options, usable in (
        (["x"], {}, 89),
        (["ward"], {"categories": {"ward": ["1", "2"]}}, 89),
        (["x", "ward"], {"user_column": "who"}, 87),
    ):
        with SqlTable(view, Reading(columns=columns, missing="drop", **options)) as table:
            table.check()
            assert table._all_facts.rows == usable, columns


MISSING, NONE = "some cells are missing or infinite", "there are no rows to use"


@pytest.mark.parametrize(
    ("cells", "missing", "said"),
    [
        ([], "refuse", NONE),
        ([None, None], "refuse", MISSING),
        ([1.0, None], "refuse", MISSING),
        ([math.nan, math.inf], "drop", NONE),
    ],
    ids=["no rows", "no cells", "one is missing", "all are dropped"],
)
def test_missing_cells_are_refused_unless_such_rows_are_dropped_and_some_are_left(
    engine: TestEngine, cells: list[float], missing: Any, said: str
) -> None:
    table = pa.table({"x": pa.array(cells, "float64")})
    with (
        SqlTable(engine.put("cells", table), Reading(columns="*", missing=missing)) as population,
        pytest.raises(InvalidInput, match=said),
    ):
        population.check()


HOSTILE = [
    *('"; DROP TABLE victim; --', "'; DROP TABLE victim; --", "`; DROP TABLE victim; --`", "a.b", '"', "''", "a b"),
    *("select", "Case", "\u00e9", "\U0001f600", "x" * 60, "*", "?", "%s", "%(a)s", "{x}", "$1", ":a", "a\\", "a\nb"),
    *("--", "/*", "id_", "c0", "v0", "id", "rows", "mark", "s0", "used", "user", "place", "kept", "t0"),
]


def test_hostile_names_of_columns_and_tables_are_names(engine: TestEngine) -> None:
    victim = engine.put("victim", pa.table({"x": [1.0]}))
    rows = np.random.default_rng(0).uniform(-1.2, 1.2, (50, len(HOSTILE)))
    with SqlTable(
        engine.put("rows", pa.table(dict(zip(HOSTILE, rows.T, strict=True)))), Reading(columns=HOSTILE)
    ) as population:
        population.check()
        assert features(population) == features(Arrays(rows))
    for name in HOSTILE[:12]:
        with SqlTable(engine.put(name, pa.table({name: [2.0]})), Reading(columns=[name])) as population:
            assert population.people == 1, name
    with SqlTable(victim, Reading(columns=["x"])) as left:
        assert left.people == 1


# two texts are one where their characters are: whatever collation a column, a session or an address gives them


ALIKE = ["Bo", "bo", "BO", "b\u00f3", "B\u00d3", "bo\u0301", "7", "7.0", "7.0\u0301", "TRUE", "true", "a", "\u00e4"]
"""Some of these are one name to every collation below; 7 and 7.0 are one name to us."""

ALIKE_TABLE = pa.table({"x": [float(i) for i in range(len(ALIKE))], "c": ALIKE})


def tells_texts_apart(made: Callable[..., Any]) -> None:
    """Every name keeps a row of its own, and categories are those of memory. Args: made, a population of x."""
    with made(user_column="c") as population:
        population.check()
        population.keep(1, PublicRng.from_seed(1))
        found = with_users(population)
        assert len(found) == len(set(found["user"].to_pylist())) == len(ALIKE) - 1
    listed = {"c": ["bo", "7", "true", "a"]}
    assert features(made(categories=listed)) == features(Arrays(ALIKE_TABLE, Reading(columns=["x"], categories=listed)))


@contextmanager
def collated(how: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Arguments of ``source`` for a DuckDB whose session has a collation, by an address or by its owner."""
    with duckdb.connect(str(folder / "lake.db")) as lake:
        lake.from_arrow(ALIKE_TABLE).create("visits")
    if how.startswith("?"):
        yield {"rows": f"duckdb://{folder}/lake.db{how}", "table": "visits"}
        return
    backend = ibis.duckdb.connect(folder / "lake.db")
    backend.raw_sql(f"SET default_collation='{how}'")
    yield {"rows": backend.table("visits")}
    backend.disconnect()


@pytest.mark.parametrize("how", ["NOCASE", "NOACCENT", "NOCASE.NOACCENT", "?default_collation=NOCASE"])
def test_a_session_s_collation_makes_nobody_somebody_else(how: str, tmp_path: Path) -> None:
    with collated(how, tmp_path) as given:
        tells_texts_apart(partial(source, **given, columns=["x"]))


def test_a_column_s_collation_makes_nobody_somebody_else(engine: TestEngine) -> None:
    table = engine.collated("alike", ALIKE_TABLE)
    tells_texts_apart(lambda **more: SqlTable(table, Reading(columns=["x"], **more)))


@pytest.mark.parametrize("how", ["NOCASE", "NOACCENT"])
def test_an_engine_that_compares_texts_as_a_collation_does_is_refused(
    how: str, tmp_path: Path, dialect: Callable[..., None]
) -> None:
    dialect(utf8=lambda text: text)
    with (
        collated(how, tmp_path) as given,
        source(**given, columns=["x"], missing="refuse") as population,
        pytest.raises(InvalidInput, match="it gets texts that name users wrong"),
    ):
        population.check()

"""Which rows of a user are kept in a database: at most so many, by her own rows alone, in every round the same."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cloister.core.domains import Box
from cloister.core.errors import InvalidInput, Refused
from cloister.core.nearest import NearestCenter
from cloister.core.questions import count, vector_sum
from cloister.core.randomness import PublicRng
from cloister.plugins.populations import sql_rows
from cloister.plugins.populations.files import Files
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases.database import Database, EngineFailed
from cloister.rows.databases.users import chosen
from tests.alarms import Alarm
from tests.rows.databases.engines import TestEngine
from tests.rows.databases.rounds import answers, same

pytestmark = pytest.mark.usefixtures("way")

SQUARE = Box((-1.0,) * 2, (1.0,) * 2)
KEY = PublicRng.from_seed(1)


def people(n: int = 600, of: int = 40, seed: int = 0) -> pa.Table:
    """Users with one row to many, some rows equal, some that cannot be used."""
    g = np.random.default_rng(seed)
    x, y = g.integers(-9, 9, n) / 8, g.choice([-0.5, 0.0, -0.0, 0.25], n)
    x[g.random(n) < 0.05] = np.nan
    return pa.table({"x": x, "who": (of * g.random(n) ** 2).astype(np.int64), "y": y, "row": np.arange(n)})


def kept(engine: TestEngine, table: pa.Table, most: int = 3, key: PublicRng = KEY, copied: bool = False) -> list[Any]:
    """The rows that are kept, with their users, in the order of all of it."""
    put = engine.put("people", table)
    with SqlTable(put, ["x", "y"], "drop", users="who", materialise=copied) as population:
        population.check()
        population.keep(most, key)
        found = population._database.answer(population._usable.table)
        return sorted(zip(*(found[name].to_pylist() for name in ("user", "c0", "c1")), strict=True))


def shuffled(table: pa.Table, seed: int) -> pa.Table:
    return table.take(np.random.default_rng(seed).permutation(table.num_rows))


def test_every_user_keeps_so_many_rows_or_all(engine: TestEngine) -> None:
    table = people()
    whole = table.filter(np.isfinite(table["x"].to_numpy()))
    for most in (1, 3, 10**9):
        rows = Counter(whole["who"].to_pylist())
        found = kept(engine, table, most)
        assert Counter(user for user, *_ in found) == {user: min(n, most) for user, n in rows.items()}
        there = Counter(zip(*(whole[name].to_pylist() for name in ("who", "x", "y")), strict=True))
        assert not Counter(found) - there, "a row is kept that is not there, or more often than it is"


@pytest.mark.parametrize("copied", [False, True])
def test_taking_a_user_away_changes_which_rows_of_no_other_are_kept(engine: TestEngine, copied: bool) -> None:
    """The adversary removes any one user, and the rows come in any order: all others keep the very rows that they
    kept, so that what is kept of neighbours differs by at most ``most`` rows."""
    table = people()
    every = kept(engine, table)
    assert kept(engine, table, copied=copied) == every
    for gone in (0, 25):
        left = shuffled(table.filter(table["who"].to_numpy() != gone), gone)
        assert kept(engine, left, copied=copied) == [row for row in every if row[0] != gone]
    assert kept(engine, table, key=PublicRng.from_seed(2)) != every


@pytest.mark.alarm(1e-8)
def test_every_row_is_kept_as_often_also_where_rows_are_equal(engine: TestEngine, alarm: Alarm) -> None:
    """4 of 10 rows of 4,000 users, six of whose rows are equal. What a user keeps of equal rows differs by at most 1:
    the variance is at most 1/4."""
    values = np.array([-1.0, -0.5, 0, 0, 0, 0, 0, 0, 0.5, 1.0])
    table = pa.table({"x": np.tile(values, 4000), "y": np.zeros(40_000), "who": np.repeat(np.arange(4000), 10)})
    found = Counter(x for _, x, _ in kept(engine, table, 4))
    assert sum(found.values()) == 16_000
    for value, rows in Counter(values.tolist()).items():
        alarm.near(found[value], 1600 * rows, math.sqrt(4000 / 4), of=5)


def test_values_decide_over_a_database_which_of_her_rows_are_kept_and_their_order_over_files(
    engine: TestEngine, tmp_path: Path
) -> None:
    """As the page of users has it. Rows are told apart by y; x, which comes first in the order of cells, is negated."""
    x, who = np.tile(np.arange(8) / 8, 50), np.repeat(np.arange(50), 8)
    table = pa.table({"x": x, "who": who, "y": np.tile(np.arange(8) / 8, 50)})
    other = table.set_column(0, "x", pa.array(-x))
    assert kept(engine, table) == kept(engine, shuffled(table, 1))
    assert {(user, y) for user, _, y in kept(engine, other)} != {(user, y) for user, _, y in kept(engine, table)}

    def of_files(rows: pa.Table) -> list[Any]:
        pyarrow.parquet.write_table(rows, tmp_path / "a.parquet")
        files = Files(tmp_path / "a.parquet", ["x", "y"], "drop", users="who")
        files.keep(3, KEY)
        near = NearestCenter(SQUARE.snap(np.column_stack([np.zeros(8), np.arange(8) / 8])), SQUARE.max_norm, None)
        (counts,) = answers(files, SQUARE, (count, near))
        return list(counts)

    assert of_files(table) == of_files(other)
    assert of_files(table) != of_files(shuffled(table, 1))


def test_rounds_answer_of_the_kept_rows_and_are_those_of_files_where_all_are_kept(
    engine: TestEngine, tmp_path: Path
) -> None:
    table = people()
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    near = NearestCenter(SQUARE.snap(np.random.default_rng(1).uniform(-1, 1, (5, 2))), SQUARE.max_norm, None)
    asked = (count, near), (vector_sum, near.offsets())
    put = engine.put("people", table)
    for most in (3, 600):
        files = Files(tmp_path / "a.parquet", ["x", "y"], "drop", users="who")
        files.keep(most, KEY)
        wanted = answers(files, SQUARE, *asked)
        with SqlTable(put, ["x", "y"], "drop", users="who") as population:
            with pytest.raises(Refused, match=r"keep\(most, rng\) comes first"):
                answers(population, SQUARE, *asked)
            population.check()
            assert population.people == files.people
            population.keep(most, KEY)
            found = answers(population, SQUARE, *asked)
            again = answers(population, SQUARE, *asked)
            assert population.people == files.people
        assert same(found, again)
        assert found[0].sum() == wanted[0].sum()
        if most == 600:
            assert same(found, wanted)


def test_rows_are_chosen_once_in_a_run_and_in_a_table_that_goes_with_it(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, told, chose, copies = engine.put("people", people()), list[str](), list[Any](), list[Any]()

    def counted(*of: Any) -> Any:
        chose.append(of)
        return chosen(*of)

    monkeypatch.setattr(sql_rows, "chosen", counted)
    near = NearestCenter(SQUARE.snap(np.zeros((2, 2))), SQUARE.max_norm, None)
    with SqlTable(put, ["x", "y"], "drop", users="who", told=told.append) as population:
        population.check()
        population.keep(3, KEY)
        first = answers(population, SQUARE, (count, near))
        assert same(answers(population, SQUARE, (count, near)), first)
        assert len(chose) == 1
        copies.append(population._begun())
        population.close()
        assert same(answers(population, SQUARE, (count, near)), first)
        assert len(chose) == 2
    assert told == []
    with pytest.raises(EngineFailed):
        population._database.answer(copies[0].count().as_table())


def test_where_no_table_can_be_made_every_round_chooses_the_same_rows(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, told, found = engine.put("people", people()), list[str](), list[Any]()
    near = NearestCenter(SQUARE.snap(np.zeros((2, 2))), SQUARE.max_norm, None)
    for copied in (True, False):
        if not copied:
            monkeypatch.setattr(Database, "kept", lambda self, rows: None)
        with SqlTable(put, ["x", "y"], "drop", users="who", told=told.append) as population:
            population.check()
            population.keep(3, KEY)
            found += [answers(population, SQUARE, (count, near)) for _ in range(2)]
    assert all(same(each, found[0]) for each in found)
    assert len(told) == 1
    assert "no temporary table" in told[0]


NAMES: dict[str, tuple[pa.Array, int]] = {
    "texts": (
        pa.array(["7", "7.0", "7.00", "07", "07.0", " 7", "-7", "-7.0", "1-7.0", "7-.0", ".0", "-.0", "7.", ""]),
        10,
    ),
    "words": (
        pa.array(["a", "A", "a ", "\u00e9", "e\u0301", "a'b", "a\\b", "a\nb", "\U0001f600", "%", None, "NaN"]),
        11,
    ),
    "whole numbers": (pa.array([2**63 - 1, 2**63 - 2, -1, 0, None, 0]), 4),
    "large numbers": (pa.array([2**64 - 1, 2**64 - 2, 0, None], "uint64"), 3),
    "floats": (pa.array([2.0**53 - 1, 2.0**53 - 2, -0.0, 0.0, math.nan, None]), 3),
    "short floats": (pa.array([2.0**24 - 1, 7.0, 7.0, math.nan], "float32"), 2),
    "decimals": (pa.array([Decimal("7.00"), Decimal("-7.00"), Decimal("70.00"), None], pa.decimal128(20, 2)), 3),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_are_told_apart_as_over_files(engine: TestEngine, name: str, tmp_path: Path) -> None:
    """With one row of each kept, as many are left as there are names. A row that names nobody has a missing cell."""
    cells, many = NAMES[name]
    table = pa.table({"x": np.linspace(-1, 1, len(cells)), "y": np.zeros(len(cells)), "who": cells})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    near = NearestCenter(SQUARE.snap(np.zeros((1, 2))), SQUARE.max_norm, None)
    put, people = engine.put("names", table), list[int]()
    asked: Any = {"columns": ["x", "y"], "missing": "drop", "users": "who"}
    for each in (Files(tmp_path / "a.parquet", **asked), SqlTable(put, **asked)):
        with each:
            each.check()
            people.append(each.people)
            each.keep(1, KEY)
            assert answers(each, SQUARE, (count, near))[0].sum() == many
    assert people[0] == people[1]
    with SqlTable(put, ["x"], users="who") as population, pytest.raises(InvalidInput, match="some cells are missing"):
        population.check()


ODD_NAMES = [
    pa.array([1.5, 1.0]),
    pa.array([2.0**53 + 2, 1.0]),
    pa.array([math.inf, 1.0]),
    pa.array([2.0**24 + 2, 1.0], "float32"),
    pa.array([Decimal("0.5"), Decimal("1.0")], pa.decimal128(20, 1)),
    pa.array([True, False]),
    pa.array([1, 2], "date32"),
    pa.array([b"7", b"8"]),
]


@pytest.mark.parametrize("cells", ODD_NAMES, ids=lambda cells: str(cells.type))
def test_what_may_name_two_people_is_refused(engine: TestEngine, cells: pa.Array) -> None:
    table = engine.put("names", pa.table({"x": [math.nan, 1.0], "who": cells}))
    for act in (SqlTable.check, lambda population: population.keep(1, KEY)):
        refused = pytest.raises(InvalidInput, match="a user is named by a whole number")
        with refused, SqlTable(table, ["x"], "drop", users="who") as population:
            act(population)

"""Which rows of a user are kept in a database: at most so many, by her own rows alone, in every round the same."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cloister.core.errors import InvalidInput, Refused
from cloister.core.randomness import PublicRng
from cloister.plugins.populations.files import Files
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases.database import Database, EngineFailed
from cloister.rows.options import Reading
from tests.alarms import Alarm
from tests.rows.databases.engines import TestEngine
from tests.rows.databases.rounds import by_cells, in_square, same, shuffled, with_users

pytestmark = pytest.mark.usefixtures("way")

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
    with SqlTable(
        put, Reading(columns=["x", "y"], missing="drop", user_column="who", materialise=copied)
    ) as population:
        population.check()
        population.keep(most, key)
        found = with_users(population)
        return by_cells(found.select(["user", "c0", "c1"]))


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


def test_rows_are_chosen_in_a_table_that_goes_with_the_run_or_every_round_chooses_the_same(
    engine: TestEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as of files, and none before somebody says how many."""
    pyarrow.parquet.write_table(people(), tmp_path / "a.parquet")
    asked: dict[str, Any] = {"columns": ["x", "y"], "missing": "drop", "user_column": "who"}
    files = Files(tmp_path / "a.parquet", Reading(**asked))
    files.keep(3, KEY)
    put, told, found = engine.put("people", people()), list[str](), list[Any]()
    for copied in (True, False):
        if not copied:
            monkeypatch.setattr(Database, "kept", lambda self, rows: None)
        with SqlTable(put, Reading(**asked, told=told.append)) as population:
            with pytest.raises(Refused, match=r"before gather\(\): rows have a user column"):
                in_square(population)
            population.check()
            population.keep(3, KEY)
            found += [in_square(population) for _ in range(2)]
            assert population._all_facts.rows == len(files.table())
            copy = population._usable.table
            population.close()
            found.append(in_square(population))
        if copied:
            assert told == []
            with pytest.raises(EngineFailed):
                population._database.answer(copy.count().as_table())
    assert all(same(each, found[0]) for each in found)
    assert found[0][0].sum() == in_square(files)[0].sum()
    (said,) = told
    assert "no temporary table" in said


def test_a_limit_may_change_and_later_rounds_keep_to_it(engine: TestEngine) -> None:
    """Names that come twice number nobody, unless one row of each is kept."""
    cells = np.linspace(-1, 1, 200)
    put = engine.put("people", pa.table({"x": cells, "y": -cells, "who": np.arange(200) // 4}))
    with SqlTable(put, Reading(columns=["x", "y"], user_column="who")) as population:
        population.check()
        for most in (4, 1, 3):
            population.keep(most, KEY)
            assert in_square(population)[0].sum() == 50 * most
            with nullcontext() if most == 1 else pytest.raises(InvalidInput, match="two rows name one user"):
                population.number_by_name()


NAMES: dict[str, pa.Array] = {
    "texts": pa.array(["7", "7.0", "7.00", "07", "07.0", " 7", "-7", "-7.0", "1-7.0", "7-.0", ".0", "-.0", "7.", ""]),
    "words": pa.array(["a", "A", "a ", "\u00e9", "e\u0301", "a'b", "a\\b", "a\nb", "\U0001f600", "%", None, "NaN"]),
    "whole numbers": pa.array([2**63 - 1, 2**63 - 2, -1, 0, None, 0]),
    "large numbers": pa.array([2**64 - 1, 2**64 - 2, 0, None], "uint64"),
    "floats": pa.array([2.0**53 - 1, 2.0**53 - 2, -0.0, 0.0, math.nan, None]),
    "short floats": pa.array([2.0**24 - 1, 7.0, 7.0, math.nan], "float32"),
    "decimals": pa.array([Decimal("7.00"), Decimal("-7.00"), Decimal("70.00"), None], pa.decimal128(20, 2)),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_are_told_apart_as_over_files(engine: TestEngine, name: str, tmp_path: Path) -> None:
    """With one row of each kept, as many are left as there are names; with all kept, those that name somebody. A row
    that names nobody has a missing cell."""
    cells = NAMES[name]
    table = pa.table({"x": np.linspace(-1, 1, len(cells)), "y": np.zeros(len(cells)), "who": cells})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    put, found = engine.put("names", table), list[list[int]]()
    asked: Any = {"columns": ["x", "y"], "missing": "drop", "user_column": "who"}
    for each in (Files(tmp_path / "a.parquet", Reading(**asked)), SqlTable(put, Reading(**asked))):
        with each:
            each.check()
            found.append([])
            for most in (1, 10**9):
                each.keep(most, KEY)
                found[-1].append(int(in_square(each)[0].sum()))
    assert found[0] == found[1]
    with (
        SqlTable(put, Reading(columns=["x"], user_column="who")) as population,
        pytest.raises(InvalidInput, match="some cells are missing"),
    ):
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
        refused = pytest.raises(InvalidInput, match="neither texts nor whole numbers")
        with refused, SqlTable(table, Reading(columns=["x"], missing="drop", user_column="who")) as population:
            act(population)

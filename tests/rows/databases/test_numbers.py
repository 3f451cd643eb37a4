"""Users of a database's rows have numbers of their own, or none at all: what one row holds moves nobody else's."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest

from cloister.core.budget import Budget
from cloister.core.errors import InvalidInput
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.trust import Central, Local, Shuffled
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.options import Reading
from cloister.run.fit import fit
from cloister.run.request import Request
from cloister.testing.checks.populations import RecordingChannel
from cloister.testing.stubs import ModuloBuckets
from tests.rows.databases.engines import TestEngine, mostly
from tests.rows.databases.rounds import SQUARE, shuffled

SHARES = Budget("pure", 1.0).split_users(PublicRng.from_seed(4), 1.0, 1.0, 2.0)
"""Of the users, disjoint."""


def roll(trust: Any = Local, shared: bool = True) -> Round[Any]:
    """Who is asked each of four questions, and which row she has: all users the first, a share the others, if any."""
    cells = ModuloBuckets((2**20,))
    among = [None, *(share.user_share for share in SHARES if shared)]
    return Round(0, trust, SQUARE, tuple(OpenedQuestion(cells, None, share, RecordingChannel()) for share in among))


def called(population: Any) -> list[set[tuple[int, int]]]:
    """By question, everybody who is asked: her number, and the bucket of her row."""
    return [answer.pairs for answer in population.gather(roll(), NoiseRng.for_tests(1))]


def people(n: int = 800) -> pa.Table:
    """Rows (key, name, x, y), in no order."""
    g = np.random.default_rng(5)
    keys = g.permutation(n) - n // 2
    return pa.table(
        {"key": keys, "name": [f"Bo {key}" for key in keys], "x": g.uniform(-1, 1, n), "y": g.uniform(-1, 1, n)}
    )


def replaced(table: pa.Table, at: int, x: float) -> pa.Table:
    """The neighbour: one person has another row, and the engine holds rows in another order."""
    cells = table["x"].to_numpy().copy()
    cells[at] = x
    return shuffled(table.set_column(table.column_names.index("x"), "x", pa.array(cells)), at)


@mostly("duckdb", "postgres")
@pytest.mark.parametrize(("users", "materialise"), [("key", False), ("name", True)])
def test_one_row_is_replaced_and_nobody_else_s_answer_moves(engine: TestEngine, users: str, materialise: bool) -> None:
    """The adversary replaces a row by one that comes first, and one that comes last, in any order of the cells: all
    others keep their numbers, and with them the questions that they are asked. A name is one number, whoever stores
    it."""
    table = people()

    def asked(of: pa.Table) -> list[set[tuple[int, int]]]:
        given = {"user_column": users, "materialise": materialise}
        with SqlTable(engine.put("numbered", of), Reading(columns=["x", "y"], missing="drop", **given)) as population:
            population.check()
            population.number_by_name()
            return called(population)

    one = asked(table)
    assert len({number for number, _ in one[0]}) == len(table)
    assert sum(map(len, one[1:])) == len(table)
    for at, x in ((7, -1.0), (8, 1.0), (9, np.nan)):
        other = asked(replaced(table, at, x))
        assert len(one[0] - other[0]) == 1
        assert sum(len(mine - theirs) for mine, theirs in zip(one[1:], other[1:], strict=True)) == 1


@pytest.mark.parametrize(("trust", "shared"), [(Local, False), (Local, True), (Shuffled, False), (Central, True)])
def test_rows_without_names_are_asked_nothing_that_belongs_to_a_user(
    engine: TestEngine, trust: Any, shared: bool
) -> None:
    """Neither under a trust model whose people answer one by one, nor where the users are shared out."""
    with SqlTable(engine.put("unnumbered", people()), Reading(columns=["x", "y"])) as population:
        population.check()
        with pytest.raises(InvalidInput, match="no places by which their users could be numbered"):
            population.gather(roll(trust, shared), NoiseRng.for_tests(1))


@mostly("duckdb", "postgres")
@pytest.mark.parametrize("trust", [Local, Shuffled])
def test_whoever_has_no_usable_row_or_no_name_reports_too_and_is_in_no_bucket(engine: TestEngine, trust: Any) -> None:
    """One cell, or one name, is missing: as many report, all of them with a number of their own, in every round the
    same, and nobody else's moves."""
    table = people()
    names = [None if at in (3, 5) else name for at, name in enumerate(table["name"].to_pylist())]
    missing = replaced(table, 7, np.nan).set_column(1, "name", shuffled(pa.table({"name": names}), 7)["name"])
    found = []
    for given in (table, missing):
        with SqlTable(
            engine.put("unusable", given), Reading(columns=["x", "y"], missing="drop", user_column="name")
        ) as population:
            population.check()
            rolls = [population.gather(roll(trust, False), NoiseRng.for_tests(1))[0] for _ in range(2)]
            assert population.people == len(table)
        assert all(len(set(each.users.tolist())) == len(table) for each in rolls)
        found.append(rolls[0])
        if trust is Local:
            assert rolls[0].pairs == rolls[1].pairs
    assert [int((each.items < 0).sum()) for each in found] == [0, 3]
    if trust is Local:
        assert len(found[0].pairs - found[1].pairs) == 3


@mostly("duckdb")
def test_two_rows_of_one_name_are_refused_also_where_one_of_them_cannot_be_used(engine: TestEngine) -> None:
    """She would report twice."""
    table = pa.table({"name": ["a", "b", "a"], "x": [0.1, 0.2, np.nan], "y": [0.1, 0.2, 0.3]})
    with SqlTable(
        engine.put("twice", table), Reading(columns=["x", "y"], missing="drop", user_column="name")
    ) as population:
        population.check()
        with pytest.raises(InvalidInput, match="two rows name one user"):
            called(population)


def test_two_rows_of_one_name_are_refused(engine: TestEngine) -> None:
    """Each would be a report of hers, at the price of one. Bo and bo are two."""
    for names, refused in ((["a", "b", "a"], True), (["7", "7.0", "8"], True), (["Bo", "bo", "b\u00f3"], False)):
        table = engine.put("twice", pa.table({"name": names, "x": [0.1, 0.2, 0.3], "y": [0.1, 0.2, 0.3]}))
        with SqlTable(table, Reading(columns=["x", "y"], user_column="name")) as population:
            population.check()
            if refused:
                with pytest.raises(InvalidInput, match="two rows name one user"):
                    called(population)
            else:
                assert len(called(population)[0]) == 3


@mostly("duckdb", "postgres")
def test_a_number_is_the_name_s_whatever_type_it_is_stored_as(engine: TestEngine) -> None:
    keys = people()["key"]
    texts = pa.array([str(key) for key in keys.to_pylist()])
    found = []
    for names in (keys, keys.cast("float64"), keys.cast(pa.decimal128(21, 2)), texts):
        table = shuffled(people().set_column(0, "key", names), len(found))
        with SqlTable(engine.put("typed", table), Reading(columns=["x", "y"], user_column="key")) as population:
            population.check()
            found.append(called(population))
    assert all(each == found[0] for each in found)


REQUEST = Request(method="grid-means", k=2, epsilon=1.0, bounds="-1:1", rows=800, seed=1, trust="local")


@mostly("duckdb", "postgres")
def test_a_run_whose_people_answer_one_by_one_needs_a_key_before_a_row_is_read(engine: TestEngine) -> None:
    table = engine.put("runs", people())
    for trust in ("local", "shuffled"):
        with SqlTable(table, Reading(columns=["x", "y"])) as population:
            with pytest.raises(InvalidInput, match=r"--user-column NAME.*or choose central components"):
                fit(attrs.evolve(REQUEST, trust=trust, rows=10**6, delta=1e-6), population)
            assert population._seen is None, "rows were read"
    with SqlTable(table, Reading(columns=["x", "y"], user_column="key")) as population:
        assert fit(REQUEST, population).privacy.headline.startswith("(replace one row)")
    again = engine.put("runs_twice", pa.concat_tables([people(), people()]))
    with (
        SqlTable(again, Reading(columns=["x", "y"], user_column="key")) as population,
        pytest.raises(InvalidInput, match="two rows name one"),
    ):
        fit(REQUEST, population)

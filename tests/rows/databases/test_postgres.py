"""PostgreSQL: its snapshot, its types, the rights that are enough, and what it does not tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest

from cloister.core.domains import Box
from cloister.core.errors import InvalidInput
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Rows, count, vector_sum
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases.postgres import POSTGRES, statement
from tests.rows.databases.postgres import Postgres
from tests.rows.databases.rounds import answers, same

DOMAIN = Box((-1.0,) * 2, (1.0,) * 2)
NEAR = NearestCenter(DOMAIN.snap(np.array([[-0.5, 0.0], [0.0, 0.5], [0.5, -0.5]])), DOMAIN.max_norm, None)
ROWS = np.random.default_rng(0).normal(0, 0.5, (1000, 2))


def asked(population: Any) -> list[Any]:
    return answers(population, DOMAIN, (count, NEAR), (vector_sum, Rows.of(NEAR, DOMAIN)))


def put(postgres: Postgres, rows: np.ndarray = ROWS, name: str = "rows") -> Any:
    return postgres.put(name, pa.table({f"x{j}": column for j, column in enumerate(rows.T)}))


@pytest.fixture
def con(postgres: Postgres) -> Any:
    """The connection of the tables."""
    return postgres.backend.con


def counted(table: Any) -> int:
    """How many rows Ibis finds by itself."""
    return int(table.count().to_pyarrow().as_py())


def status(con: Any) -> str:
    return str(con.info.transaction_status.name)


# by stream


def test_a_trial_over_made_up_rows_says_which_pass_is_faster_and_reads_none(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its C psycopg is too slow, and what to install is said."""
    put(postgres)
    quick, why = POSTGRES.streams(postgres.backend, 3)
    if psycopg.pq.__impl__ == "python":
        assert not quick
        assert "pip install 'psycopg[binary]'" in why
    monkeypatch.setattr(psycopg.pq, "__impl__", "c")
    asked, con = list[str](), postgres.backend.con

    def noted(*of: Any) -> str:
        asked.append(statement(*of))
        return asked[-1]

    monkeypatch.setattr("cloister.rows.databases.postgres.statement", noted)
    quick, why = POSTGRES.streams(postgres.backend, 3)
    assert quick in (True, False)
    assert "of the time" in why
    assert asked
    assert all("generate_series" in text.lower() and 'FROM "rows"' not in text for text in asked)
    assert status(con) == "IDLE"


# the snapshot


def test_what_others_write_between_rounds_is_not_seen(postgres: Postgres) -> None:
    table, wanted = put(postgres), asked(Arrays(ROWS))
    with SqlTable(table, "*") as population:
        population.check()
        for change in ("INSERT INTO rows SELECT * FROM rows", "UPDATE rows SET x0 = -x0", "DELETE FROM rows"):
            postgres.run(change)
            assert same(asked(population), wanted)
    assert counted(table) == 0


SHOWN = "transaction_isolation", "transaction_read_only", "jit", "extra_float_digits", "search_path", "timezone"


def test_a_run_writes_nothing_and_the_session_is_afterwards_as_it_was(postgres: Postgres, con: Any) -> None:
    def settings() -> list[Any]:
        return [con.execute(f"SHOW {name}").fetchone() for name in SHOWN]

    table, before = put(postgres), settings()
    with SqlTable(table, "*") as population:
        asked(population)
    assert (status(con), con.autocommit, settings()) == ("IDLE", True, before)
    with SqlTable(table, "*") as population:
        population.check()
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            con.execute("DELETE FROM rows")
    con.execute("DELETE FROM rows")
    assert counted(table) == 0


@contextmanager
def begun(con: Any, level: str) -> Iterator[None]:
    """A transaction of the connection's owner, who has written to it."""
    con.execute(f"BEGIN ISOLATION LEVEL {level}")
    con.execute("INSERT INTO rows VALUES (0.1, 0.2)")
    try:
        yield
        assert status(con) == "INTRANS"
        con.execute("COMMIT")
    finally:
        con.rollback()


def test_a_transaction_of_the_connection_that_is_no_snapshot_or_has_failed_is_refused_and_left_as_it_is(
    postgres: Postgres, con: Any
) -> None:
    table = put(postgres)
    with begun(con, "READ COMMITTED"):
        told = "end it before the run, or begin it with ISOLATION LEVEL REPEATABLE"
        with SqlTable(table, "*") as population, pytest.raises(InvalidInput, match=told):
            population.check()
        con.execute("INSERT INTO rows VALUES (0.1, 0.2)")
    assert counted(table) == len(ROWS) + 2
    con.execute("BEGIN")
    with pytest.raises(psycopg.errors.DivisionByZero):
        con.execute("SELECT 1 / 0")
    with SqlTable(table, "*") as population, pytest.raises(InvalidInput, match="has failed: roll it back"):
        population.check()
    con.execute("ROLLBACK")


# rights


def test_the_right_to_read_some_columns_of_one_table_is_enough(postgres: Postgres) -> None:
    put(postgres)
    put(postgres, name="others")
    postgres.run(
        "ALTER TABLE rows ADD COLUMN name text",
        "CREATE ROLE reader LOGIN",
        "REVOKE ALL ON SCHEMA public FROM public",
        "GRANT USAGE ON SCHEMA public TO reader",
        "REVOKE TEMPORARY ON DATABASE postgres FROM public",
        "GRANT SELECT (x0, x1) ON rows TO reader",
    )
    try:
        with SqlTable(postgres.server.ibis("reader").table("rows"), ["x0", "x1"]) as population:
            population.check()
            assert same(asked(population), asked(Arrays(ROWS)))
        others = SqlTable(postgres.server.ibis("reader").table("others"), "*")
        with others, pytest.raises(InvalidInput, match="may not read it: GRANT SELECT on the table"):
            others.check()
    finally:
        postgres.run(
            "DROP OWNED BY reader",
            "DROP ROLE reader",
            "GRANT ALL ON SCHEMA public TO public",
            "GRANT TEMPORARY ON DATABASE postgres TO public",
        )


# cells


FAR = ["1e400", "-1e400", "'NaN'", "'Infinity'", "'-Infinity'", "NULL"]
FINITE = ["1e-400", "-3e-310", "5e-324", "-1.7976931348623157e308", "0.3", "90071992547409.93000000000000000001"]


@pytest.mark.parametrize("bounds", [1.0, 1e99, 1e-99])
def test_cells_beyond_doubles_are_not_finite_and_all_others_are_numbers(postgres: Postgres, bounds: float) -> None:
    postgres.run("DROP TABLE IF EXISTS hostile", "CREATE TABLE hostile (x0 numeric, x1 double precision)")
    postgres.run(*(f"INSERT INTO hostile VALUES ({cell}, 0.5)" for cell in FAR + FINITE))
    postgres.run(*(f"INSERT INTO hostile VALUES (0.2, {cell})" for cell in FAR[2:] + FINITE[1:]))
    rows = np.array([[float(cell), 0.5] for cell in FINITE] + [[0.2, float(cell)] for cell in FINITE[1:]])
    rows[np.abs(rows) < 1e-300] = 0.0  # where a numeric is 0
    domain = Box((-bounds, -1.0), (bounds, bounds))
    near = NearestCenter(domain.snap(np.array([[0, 0], [bounds, bounds]])), domain.max_norm, None)
    question = (count, near), (vector_sum, Rows.of(near, domain))
    table = postgres.backend.table("hostile")
    with SqlTable(table, "*", "drop") as population:
        assert same(answers(population, domain, *question), answers(Arrays(rows), domain, *question))
    with SqlTable(table, "*") as population, pytest.raises(InvalidInput, match="missing or infinite"):
        population.check()


# plans


def test_each_step_is_computed_once(postgres: Postgres, con: Any) -> None:
    table = put(postgres)
    stage = table.mutate(y=table.x0 * 3 + 1)
    for _ in range(7):  # written out they would be 3^7 terms
        stage = POSTGRES.fence(stage.mutate(y=stage.y * stage.y - stage.y))
    plan = "\n".join(line for (line,) in con.execute(f"EXPLAIN VERBOSE {statement(stage.get_backend(), stage)}"))
    assert plan.count("Subquery Scan") == 7
    assert len(plan) < 20_000

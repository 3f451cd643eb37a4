"""PostgreSQL: its snapshot, its types, the rights that are enough, and what it does not tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest

from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases.connecting import table_of
from cloister.rows.databases.postgres import POSTGRES, statement
from cloister.rows.options import Reading
from tests.rows.databases.hostile import as_table
from tests.rows.databases.postgres import Postgres
from tests.rows.databases.rounds import agrees, in_square

ROWS = np.random.default_rng(0).normal(0, 0.5, (1000, 2))


def put(postgres: Postgres, rows: np.ndarray = ROWS) -> Any:
    return postgres.put("rows", as_table(rows))


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
    put(postgres)
    monkeypatch.setattr(psycopg.pq, "__impl__", "c")  # without which it is too slow
    asked = list[str]()

    def noted(*of: Any) -> str:
        asked.append(statement(*of))
        return asked[-1]

    monkeypatch.setattr("cloister.rows.databases.postgres.statement", noted)
    _, why = POSTGRES.streams(postgres.backend, 3)
    assert "of the time" in why
    assert asked
    assert all("generate_series" in text.lower() and 'FROM "rows"' not in text for text in asked)
    assert status(postgres.backend.con) == "IDLE"


def test_streamed_rows_are_the_ones_that_are_there_to_the_last_bit(postgres: Postgres) -> None:
    """More than a batch, in their order since all are as long, cells that are none, and the same once they are held."""
    rows = np.random.default_rng(3).normal(0, 1e3, (40_000, 2)) ** 3
    rows[::7, 0], rows[5::11, 1] = np.nan, -np.inf
    table = postgres.put("rows", pa.table({"x": rows[:, 0], "y": rows[:, 1]}))
    with SqlTable(table, Reading(columns="*", missing="drop", passes="stream")) as population:
        for _ in range(2):
            found = np.concatenate([chunk.rows for chunk in population.chunks()])
            assert np.array_equal(found, rows, equal_nan=True)


def test_a_run_goes_on_by_the_other_pass(postgres: Postgres) -> None:
    table, key = put(postgres), bytes(32)
    found = []
    for passes in ("stream", "query"):
        with SqlTable(table, Reading(columns="*", passes=passes)) as population:
            population.check()
            found.append(population.fingerprints(key))
    assert found[0] == found[1]


def test_a_pass_that_fails_in_its_middle_leaves_the_snapshot_usable(postgres: Postgres, con: Any) -> None:
    with SqlTable(put(postgres, np.zeros((60_000, 2))), Reading(columns="*", passes="stream")) as population:
        chunks = population.chunks()
        next(chunks)
        chunks.close()
        assert status(con) == "INTRANS"
        assert population.people == 60_000
    assert status(con) == "IDLE"


# the snapshot


@pytest.mark.parametrize("autocommit", [True, False])
def test_what_others_write_between_rounds_is_not_seen(postgres: Postgres, autocommit: bool) -> None:
    """Methods of Ibis in between do not end the snapshot."""
    put(postgres)
    table = postgres.server.ibis(autocommit=autocommit).table("rows")
    with SqlTable(table, Reading(columns="*")) as population:
        population.check()
        for change in ("INSERT INTO rows SELECT * FROM rows", "UPDATE rows SET x0 = -x0", "DELETE FROM rows"):
            postgres.run(change)
            assert table.get_backend().list_tables()
            assert counted(table) == len(ROWS)
            assert agrees(population, ROWS)
    assert (status(table.get_backend().con), counted(table)) == ("IDLE", 0)


SHOWN = "transaction_isolation", "transaction_read_only", "jit", "extra_float_digits", "search_path", "timezone"


def test_a_run_writes_nothing_and_the_session_is_afterwards_as_it_was(postgres: Postgres, con: Any) -> None:
    def settings() -> list[Any]:
        return [con.execute(f"SHOW {name}").fetchone() for name in SHOWN]

    table, before = put(postgres), settings()
    with SqlTable(table, Reading(columns="*")) as population:
        in_square(population)
    assert (status(con), con.autocommit, settings()) == ("IDLE", True, before)
    with SqlTable(table, Reading(columns="*")) as population:
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


def test_a_transaction_of_the_connection_that_is_a_snapshot_is_used_and_left_to_its_owner(
    postgres: Postgres, con: Any
) -> None:
    table = put(postgres)
    with begun(con, "REPEATABLE READ"):
        with SqlTable(table, Reading(columns="*")) as population:
            postgres.run("UPDATE rows SET x0 = 0 WHERE x0 > 0.3")
            assert agrees(population, np.vstack([ROWS, [0.1, 0.2]]))
        con.execute("INSERT INTO rows VALUES (0.1, 0.2)")
    assert counted(table) == len(ROWS) + 2


def test_a_transaction_of_the_connection_that_is_no_snapshot_or_has_failed_is_refused_and_left_as_it_is(
    postgres: Postgres, con: Any
) -> None:
    table = put(postgres)
    with begun(con, "READ COMMITTED"):
        told = "end it before the run, or begin it with ISOLATION LEVEL REPEATABLE"
        with SqlTable(table, Reading(columns="*")) as population, pytest.raises(InvalidInput, match=told):
            population.check()
        con.execute("INSERT INTO rows VALUES (0.1, 0.2)")
    assert counted(table) == len(ROWS) + 2
    con.execute("BEGIN")
    with pytest.raises(psycopg.errors.DivisionByZero):
        con.execute("SELECT 1 / 0")
    with (
        SqlTable(table, Reading(columns="*")) as population,
        pytest.raises(InvalidInput, match="has failed: roll it back"),
    ):
        population.check()
    con.execute("ROLLBACK")


# rights


def test_the_right_to_read_some_columns_of_one_table_is_enough(postgres: Postgres) -> None:
    """Also where rows of users are chosen, in every round anew: there is no right to make a temporary table."""
    put(postgres)
    postgres.put("owned", as_table(ROWS).append_column("who", [np.arange(len(ROWS)) // 4]))
    postgres.run(
        "CREATE ROLE reader LOGIN",
        "REVOKE ALL ON SCHEMA public FROM public",
        "GRANT USAGE ON SCHEMA public TO reader",
        "REVOKE TEMPORARY ON DATABASE postgres FROM public",
        "ALTER TABLE owned ADD COLUMN name text",
        "GRANT SELECT (x0, x1, who) ON owned TO reader",
    )
    told, given = list[str](), postgres.server.ibis("reader")
    try:
        with SqlTable(given.table("owned"), Reading(columns=["x0", "x1"])) as population:
            population.check()
            assert agrees(population, ROWS)
        with SqlTable(
            given.table("owned"), Reading(columns=["x0", "x1"], user_column="who", told=told.append)
        ) as population:
            population.keep(2, PublicRng.from_seed(1))
            assert in_square(population)[0].sum() == len(ROWS) // 2
        assert len(told) == 1
        with (
            SqlTable(given.table("rows"), Reading(columns="*")) as others,
            pytest.raises(InvalidInput, match="may not read it: GRANT"),
        ):
            others.check()
    finally:
        postgres.run(
            "DROP OWNED BY reader",
            "DROP ROLE reader",
            "GRANT ALL ON SCHEMA public TO public",
            "GRANT TEMPORARY ON DATABASE postgres TO public",
        )


# cells


INFINITE = ["'NaN'", "'Infinity'", "'-Infinity'", "NULL"]
NEAR_ZERO = ["1e-400", "-1e-400", "5e-324", "-3e-310", "1e-201"]
DOUBLES = ["1.7e308", "-1.7976931348623157e308", "1e300", "5e-324", "-3e-310", "-0.0"]
PLAIN = ["0.3", "-0.84147098480789650665", "90071992547409.93000000000000000001"]


def test_cells_beyond_doubles_are_not_finite_and_all_others_are_numbers(postgres: Postgres) -> None:
    postgres.run("DROP TABLE IF EXISTS hostile", "CREATE TABLE hostile (x0 numeric, x1 double precision)")
    numerics = [*NEAR_ZERO, *DOUBLES[:3], *PLAIN]
    postgres.run(*(f"INSERT INTO hostile VALUES ({n}, 0.5)" for n in ["1e400", "-1e400", *INFINITE, *numerics]))
    postgres.run(*(f"INSERT INTO hostile VALUES (0.2, {cell})" for cell in [*INFINITE, *DOUBLES]))
    finite = [[float(cell), 0.5] for cell in numerics] + [[0.2, float(cell)] for cell in DOUBLES]
    table = postgres.backend.table("hostile")
    for passes in ("query", "stream"):
        with SqlTable(table, Reading(columns="*", missing="drop", passes=passes)) as population:
            assert len(population.table()) == population._all_facts.rows == len(finite)
            assert sorted(population.table().tolist()) == sorted(finite)
    with SqlTable(table, Reading(columns="*")) as population, pytest.raises(InvalidInput, match="missing or infinite"):
        population.check()


DOMAINS = {
    "age": ("integer CHECK (value >= 0)", "7"),
    "dose": ("numeric(8, 3)", "2.125"),
    "level": ("double precision", "-0.5"),
    "yes": ("boolean", "true"),
    "deep": ("age", "9"),
}


def test_domains_are_read_as_the_types_that_they_are_made_of(postgres: Postgres) -> None:
    """Also a domain over a domain, of another schema, in a view, and as a category or a user's name."""
    postgres.run("CREATE SCHEMA kinds", "CREATE DOMAIN kinds.ward AS text")
    try:
        postgres.run(*(f"CREATE DOMAIN {name} AS {kind}" for name, (kind, _) in DOMAINS.items()))
        columns = ", ".join(f"{name} {name}" for name in DOMAINS)
        cells = ", ".join(cell for _, cell in DOMAINS.values())
        postgres.run(
            f"CREATE TABLE kinds.visits ({columns}, ward kinds.ward, who deep)",
            f"INSERT INTO kinds.visits VALUES ({cells}, 'A', 1), ({cells}, 'B', 2)",
            "CREATE VIEW kinds.seen AS SELECT * FROM kinds.visits",
        )
        wanted = [7, 2.125, -0.5, 1, 9]
        for name in ("visits", "seen"):
            given = postgres.backend.table(name, database="kinds")
            for table in (given, table_of(postgres.backend, f"kinds.{name}", "here")):
                asked: Any = {"categories": {"ward": ["A"]}, "user_column": "who"}
                with SqlTable(table, Reading(columns=list(DOMAINS), **asked)) as population:
                    population.check()
                    assert sorted(population.table().tolist()) == [[*wanted, 0], [*wanted, 1]]
                    population.number_by_name()
    finally:
        postgres.run("DROP SCHEMA kinds CASCADE", *(f"DROP DOMAIN {name} CASCADE" for name in reversed(DOMAINS)))


@pytest.mark.parametrize("kind", ["money", "oid", "regclass", "xid", "pg_lsn", "cid", "tid", "bit(3)", "int4range"])
def test_what_only_looks_like_a_number_is_refused_by_its_type(postgres: Postgres, kind: str) -> None:
    """And the other columns of such a table are read."""
    postgres.run("DROP TABLE IF EXISTS odd", f"CREATE TABLE odd (x double precision, odd {kind})")
    postgres.run("INSERT INTO odd VALUES (0.5, NULL)")
    table = table_of(postgres.backend, "odd", "here")
    with pytest.raises(InvalidInput, match="column 'odd' does not hold numbers but is of another type"):
        SqlTable(table, Reading(columns=["x", "odd"]))
    with pytest.raises(InvalidInput, match="neither texts nor whole numbers"):
        SqlTable(table, Reading(columns=["x"], user_column="odd"))
    with SqlTable(table, Reading(columns="*")) as population:
        assert population.table().tolist() == [[0.5]]


@pytest.mark.parametrize("passes", ["query", "stream"])
def test_an_error_of_a_view_names_it_and_says_where_the_server_s_words_are(postgres: Postgres, passes: str) -> None:
    put(postgres)
    postgres.run("CREATE VIEW broken AS SELECT 1 / (CASE WHEN x0 > 0 THEN 0 ELSE 1 END) AS x FROM rows")
    try:
        table = postgres.backend.table("broken")
        with SqlTable(table, Reading(columns="*", passes=passes)) as population, pytest.raises(InvalidInput) as caught:
            population.check()
        said = str(caught.value)
        assert "postgres could not answer (DivisionByZero): nothing was answered" in said
        assert "raised in 'broken'" in said
        assert "server's log: SELECT pg_current_logfile()" in said
    finally:
        postgres.run("DROP VIEW broken")


# plans


def test_each_step_is_computed_once(postgres: Postgres, con: Any) -> None:
    table = put(postgres)
    stage = table.mutate(y=table.x0 * 3 + 1)
    for _ in range(7):  # written out they would be 3^7 terms
        stage = POSTGRES.fence(stage.mutate(y=stage.y * stage.y - stage.y))
    plan = "\n".join(line for (line,) in con.execute(f"EXPLAIN VERBOSE {statement(stage.get_backend(), stage)}"))
    assert plan.count("Subquery Scan") == 7
    assert len(plan) < 20_000


def test_limits_of_the_owners_query_are_kept(postgres: Postgres) -> None:
    table = put(postgres)
    some = table.order_by("x0").limit(100, offset=50)
    rows = ROWS[np.argsort(ROWS[:, 0])][50:150]
    with SqlTable(some, Reading(columns="*")) as population:
        assert agrees(population, rows)

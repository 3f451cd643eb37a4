"""Connections that die in the middle of a run: nothing partial, nothing paid twice, and the run goes on."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases.database import EngineFailed
from cloister.run.account import Account
from cloister.run.fit import fit
from cloister.run.request import Request
from cloister.run.result import Result
from tests.in_process import cloister
from tests.rows.databases.engines import TestEngine
from tests.rows.databases.postgres import OWNER, Postgres
from tests.run.test_resuming import Gone

ROUNDS = 3
REQUEST = Request(k=2, method="su-lloyd", epsilon=1.0, bounds=(-1, 1), rows=20_000, options={"rounds": ROUNDS - 1})
ROWS = np.random.default_rng(0).normal(0, 0.3, (20_000, 2))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger.open(tmp_path / "budget.db", create=True)
    book.declare("mine", 10.0, 1e-5)
    return book


class Asked:
    """A population, and the rounds that it was asked. Args: at, what is done when a round begins; lost, a round that is
    asked until it fails: what breaks it may come late; passes, as of ``SqlTable``."""

    def __init__(
        self,
        table: Any,
        at: Callable[[int], None] = lambda number: None,
        lost: int = -1,
        passes: str | None = None,
    ) -> None:
        self.inner = SqlTable(table, "*", passes=passes)
        self.columns, self.check, self.marks = self.inner.columns, self.inner.check, self.inner.marks
        self.rounds, self._at, self._lost = list[int](), at, lost

    def gather(self, round: Any, rng: Any) -> tuple[Any, ...]:
        self.rounds.append(round.index)
        self._at(round.index)
        while round.index == self._lost:
            self.inner.gather(round, rng)
        return self.inner.gather(round, rng)


def run(ledger: Ledger, population: Any, resume: str | None = None) -> Result:
    return fit(REQUEST, population, account=Account(ledger=ledger.path, dataset="mine", resume=resume))


@contextmanager
def cutting(engine: TestEngine, table: Any, lost: int, delay: float) -> Iterator[Callable[[int], None]]:
    """Cuts an engine's connection again and again, from ``delay`` seconds after a round began until the block's end."""
    over = threading.Event()

    def cut() -> None:
        while not over.wait(0.001):
            engine.cut(table)

    thread = threading.Timer(delay, cut)
    try:
        yield lambda number: thread.start() if number == lost else None
    finally:
        over.set()
        thread.cancel()
        thread.join()


def looks(ledger: Ledger) -> list[Any]:
    """What the ledger's last run has released, in order."""
    with closing(sqlite3.connect(ledger.path)) as db:
        return db.execute("select number, round, question, level, ids, answers from looks order by number").fetchall()


@pytest.mark.parametrize("delay", [0.0, pytest.param(0.02, marks=pytest.mark.long)])
@pytest.mark.parametrize("lost", range(ROUNDS))
def test_a_run_goes_on_after_its_connection_died_in_any_round(
    breakable: TestEngine, ledger: Ledger, lost: int, delay: float
) -> None:
    table = put(breakable)
    message = "nothing was answered, and no part of an answer is kept"
    with cutting(breakable, table, lost, delay) as at:
        first = Asked(table, at, lost)
        with pytest.raises(EngineFailed, match=message):
            run(ledger, first)
    known = released(ledger, first, lost)
    goes_on(ledger, first, breakable.again("rows"), known)


def released(ledger: Ledger, first: Asked, lost: int) -> list[Any]:
    """Looks of a run that failed in this round, which is closed: those of all rounds before, and no others."""
    first.inner.close()
    known = looks(ledger)
    assert first.rounds == list(range(lost + 1))
    assert {round for _, round, *_ in known} == set(range(lost))
    return known


def goes_on(ledger: Ledger, first: Asked, table: Any, known: list[Any], passes: str | None = None) -> None:
    """The ledger's open run asks what was not answered, keeps what was, and costs what it would have cost."""
    (cut,) = ledger.runs()
    assert cut.state == "open"
    assert cut.epsilon == pytest.approx(1.0)
    second = Asked(table, passes=passes)
    with second.inner:
        result = run(ledger, second, cut.id)
    assert second.rounds == list(range(first.rounds[-1], ROUNDS))
    assert looks(ledger)[: len(known)] == known
    (done,) = ledger.runs()
    assert done.state == "done"
    assert done.epsilon == pytest.approx(1.0)
    assert run(ledger, Gone(first.columns), cut.id).as_dict() == result.as_dict()


def in_round(number: int, act: Callable[[], None]) -> Callable[[int], None]:
    """What is done when a round begins."""
    return lambda asked: act() if asked == number else None


def broken_off(ledger: Ledger, first: Asked, why: str) -> list[Any]:
    """A run whose second round fails for this reason. What was released of the first."""
    with pytest.raises(EngineFailed) as failure:
        run(ledger, first)
    first.inner.close()
    said = rf"postgres could not answer \({why}\): nothing was answered, and no part of an answer is kept"
    assert re.fullmatch(said, str(failure.value))
    assert failure.value.__cause__ is None
    assert failure.value.__suppress_context__
    assert first.rounds == [0, 1]
    assert {round for _, round, *_ in looks(ledger)} == {0}
    return looks(ledger)


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("statement_timeout = '1ms'", "the query was cancelled, by somebody or by its statement_timeout"),
        (
            "idle_in_transaction_session_timeout = '1ms'",
            "(it closed the connection, which waited for longer than its idle_in_transaction_session_timeout"
            "|the connection is lost)",  # where the query is on its way already, the server's last words are not read
        ),
    ],
)
def test_a_run_goes_on_after_a_limit_of_time(
    breakable_postgres: Postgres, ledger: Ledger, setting: str, why: str
) -> None:
    """A limit of a millisecond, which passes whenever it may: a query of 20,000 rows takes longer, and a connection
    that is waited for is closed some time."""
    table = put(breakable_postgres)
    con = table.get_backend().con

    def limit() -> None:
        con.execute(f"SET LOCAL {setting}")
        if setting.startswith("idle"):
            breakable_postgres.wait_until_gone(con.info.backend_pid)

    first = Asked(table, in_round(1, limit))
    known = broken_off(ledger, first, why)
    goes_on(ledger, first, breakable_postgres.again("rows"), known)


ERRORS = [
    (psycopg.errors.OutOfMemory("failed on request of size 3.14159"), "it has not enough memory"),
    (psycopg.errors.DiskFull("could not write to file: 3.14159"), "its disk is full"),
    (psycopg.errors.StatementTooComplex("stack depth: 3.14159"), "the query is too long for it"),
    (psycopg.OperationalError("consuming input failed: 3.14159"), "the connection is lost"),
    (psycopg.InterfaceError("the cursor is closed: 3.14159"), "InterfaceError"),
    (psycopg.errors.RaiseException("a trigger says 3.14159"), "RaiseException"),
    (MemoryError("3.14159"), "MemoryError"),
]


def failing(error: Exception) -> Callable[..., Any]:
    def fails(*given: Any) -> Any:
        raise error

    return fails


@pytest.mark.parametrize(("error", "why"), ERRORS)
def test_why_postgresql_could_not_answer_is_told_in_our_words(
    postgres: Postgres, error: Exception, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqlTable(put(postgres), "*") as population:
        population.check()
        monkeypatch.setattr("cloister.rows.databases.postgres.statement", failing(error))
        with pytest.raises(EngineFailed) as failure:
            population.check()
    assert f"postgres could not answer ({why}): " in str(failure.value)
    assert "3.14" not in str(failure.value)


def put(engine: TestEngine) -> Any:
    return engine.put("rows", pa.table({f"x{j}": ROWS[:, j] for j in range(2)}))


# what is told


def address(postgres: Postgres) -> str:
    return f"postgres://{OWNER}@/postgres?host={postgres.server.home}"


FIT = "-k 3 --epsilon 1 --bounds=-1:1 --rows 20000 --method su-lloyd --set rounds=2 --columns * --json"
ACCOUNT = "--ledger budget.db --dataset mine"


def fitted(postgres: Postgres, table: str, folder: Path, *more: str) -> Any:
    """What the command says."""
    return cloister("fit", address(postgres), "--table", table, *f"{FIT} {ACCOUNT}".split(), *more, folder=folder)


def test_the_command_line_says_how_to_go_on(
    postgres: Postgres, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(postgres)
    gather = SqlTable.gather

    def lost(population: SqlTable, round: Any, rng: Any) -> Any:
        if round.index == 1:
            own = postgres.backend.con.info.backend_pid
            postgres.run(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE xact_start < now() AND pid <> {own}"
            )
        return gather(population, round, rng)

    with monkeypatch.context() as patch:
        patch.setattr(SqlTable, "gather", lost)
        cut = fitted(postgres, "rows", tmp_path)
    (found,) = ledger.runs()
    line = cut.stderr.splitlines()[-1]
    assert cut.returncode == 2
    assert line.startswith("cloister: postgres could not answer (the connection is lost")
    assert f"{ACCOUNT} --resume {found.id}" in line
    done = fitted(postgres, "rows", tmp_path, "--resume", found.id)
    assert (done.returncode, ledger.runs()[0].state) == (0, "done")


QUOTED = {
    "text": "SELECT name::float8 AS x0, 1.0 AS x1 FROM patients",
    "numbers": "SELECT (name || '1e999')::float8 AS x0, 1.0 AS x1 FROM patients",
    "functions": "SELECT told(name) AS x0, 1.0 AS x1 FROM patients",
}


@pytest.mark.parametrize("view", QUOTED)
def test_what_the_server_quotes_of_a_row_is_not_told(
    postgres: Postgres,
    ledger: Ledger,
    tmp_path: Path,
    view: str,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    postgres.run(
        "CREATE TABLE patients (name text)",
        "INSERT INTO patients VALUES ('Ada'), ('7')",
        "CREATE FUNCTION told(name text) RETURNS float8 LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE WARNING 'warned of %', name; RAISE 'failed at %', name; END $$",
        f"CREATE VIEW seen AS {QUOTED[view]}",
    )
    try:
        with pytest.raises(psycopg.Error, match="Ada"):
            postgres.run("SELECT * FROM seen")
        done = fitted(postgres, "seen", tmp_path)
        assert done.returncode == 2
        assert "postgres could not answer" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        said = done.stderr + done.stdout + caplog.text + "".join(capfd.readouterr())
        assert "Ada" not in said
    finally:
        postgres.run("DROP TABLE patients CASCADE", "DROP FUNCTION told")

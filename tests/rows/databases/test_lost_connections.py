"""Connections that die in the middle of a run, of queries or while rows stream from them: nothing partial, nothing paid
twice, and the run goes on."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import psycopg
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.plugins.populations import sql_table
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases import postgres as driver
from cloister.rows.databases.database import EngineFailed
from cloister.rows.options import Reading
from tests.asking import asking
from tests.in_process import cloister
from tests.rows.databases.engines import TestEngine
from tests.rows.databases.hostile import as_table
from tests.rows.databases.postgres import OWNER, Postgres
from tests.rows.databases.rounds import agrees, in_square
from tests.run.test_resuming import Gone, run

ROUNDS = 3
REQUEST = asking(
    k=2, method="su-lloyd", epsilon=1.0, bounds=(-1, 1), rows=20_000, zoom=0.1, options={"rounds": ROUNDS - 1}
)
ROWS = np.random.default_rng(0).normal(0, 0.3, (20_000, 2))

SIZE = 1000
"""Rows of a batch: each stream has 20."""

PLACES = {"before its first batch": 0, "in its middle": 4, "after its last batch": len(ROWS) // SIZE}
"""How many batches have come when the server ends the connection."""

LOST = "the connection is lost.*"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams of several batches, which are read again in every round."""
    monkeypatch.setattr(sql_table, "chunk_rows", lambda dimension: SIZE)
    monkeypatch.setattr(sql_table, "HELD", 0)


def put(engine: TestEngine) -> Any:
    return engine.put("rows", as_table(ROWS))


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
        self.inner, self.passes = SqlTable(table, Reading(columns="*", passes=passes)), passes
        self.columns, self.check, self.fingerprints = self.inner.columns, self.inner.check, self.inner.fingerprints
        self.rounds, self._at, self._lost = list[int](), at, lost

    def gather(self, round: Any, rng: Any) -> tuple[Any, ...]:
        self.rounds.append(round.index)
        self._at(round.index)
        while round.index == self._lost:
            self.inner.gather(round, rng)
        return self.inner.gather(round, rng)


def looks(ledger: Ledger) -> list[Any]:
    """What the ledger's last run has released, in order."""
    with closing(sqlite3.connect(ledger.path)) as db:
        return db.execute("select number, round, question, level, ids, answers from looks order by number").fetchall()


def breaks_off(ledger: Ledger, first: Asked, lost: int, why: str = ".*") -> None:
    """A run fails in this round, for this reason: it has released looks of all rounds before, and no others."""
    with pytest.raises(EngineFailed) as failure:
        run(ledger, first, REQUEST)
    said = rf"\w+ could not answer \({why}\): nothing was answered, and no part of an answer is kept"
    assert re.fullmatch(said, str(failure.value))
    assert failure.value.__cause__ is None
    assert failure.value.__suppress_context__
    assert first.rounds == list(range(lost + 1))
    assert {round for _, round, *_ in looks(ledger)} == set(range(lost))


def goes_on(ledger: Ledger, first: Asked, engine: TestEngine) -> None:
    """The ledger's open run asks what was not answered, keeps what was, and costs what it would have cost."""
    first.inner.close()
    (cut,), known = ledger.runs(), looks(ledger)
    assert cut.state == "open"
    assert cut.epsilon == pytest.approx(1.0)
    second = Asked(engine.again("rows"), passes=first.passes)
    with second.inner:
        result = run(ledger, second, REQUEST, resume=cut.id)
    assert second.rounds == list(range(first.rounds[-1], ROUNDS))
    assert looks(ledger)[: len(known)] == known
    (done,) = ledger.runs()
    assert done.state == "done"
    assert done.epsilon == pytest.approx(1.0)
    assert run(ledger, Gone(first.columns), REQUEST, resume=cut.id).as_dict() == result.as_dict()


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


@pytest.mark.parametrize("delay", [0.0, pytest.param(0.02, marks=pytest.mark.long)])
@pytest.mark.parametrize("lost", range(ROUNDS))
def test_a_run_goes_on_after_its_connection_died_in_any_round(
    engine: TestEngine, ledger: Ledger, lost: int, delay: float
) -> None:
    own = engine.apart()
    table = put(own)
    with cutting(own, table, lost, delay) as at:
        first = Asked(table, at, lost)
        breaks_off(ledger, first, lost)
    goes_on(ledger, first, own)


# streams


Cutting = Callable[[Any, int, int], None]


@pytest.fixture
def cut_stream(breakable_postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Cutting:
    """Makes the server end a table's connection in its stream of this number, once so many batches have come."""
    real = driver._copied

    def cut(table: Any, stream: int, after: int) -> None:
        streams = count()

        def copied(expression: Any, size: int) -> Iterator[Any]:
            lost, batches = next(streams) == stream, real(expression, size)
            for come in count():
                if lost and come == after:
                    breakable_postgres.cut_and_wait(table)
                if (batch := next(batches, None)) is None:
                    return
                yield batch

        monkeypatch.setattr(driver, "_copied", copied)

    return cut


@pytest.mark.parametrize(
    ("lost", "place"),
    [
        pytest.param(lost, place, marks=[] if lost == 1 or "middle" in place else pytest.mark.long)
        for lost in range(ROUNDS)
        for place in PLACES
    ],
)
def test_a_run_goes_on_after_its_stream_was_cut_off_in_any_round(
    breakable_postgres: Postgres, ledger: Ledger, cut_stream: Cutting, lost: int, place: str
) -> None:
    table = put(breakable_postgres)
    cut_stream(table, lost + 1, PLACES[place])  # the first one is the validation pass
    first = Asked(table, passes="stream")
    breaks_off(ledger, first, lost, LOST)
    goes_on(ledger, first, breakable_postgres)


@pytest.mark.parametrize("place", PLACES)
def test_a_validation_pass_that_is_cut_off_has_cost_nothing(
    breakable_postgres: Postgres, ledger: Ledger, cut_stream: Cutting, place: str
) -> None:
    table = put(breakable_postgres)
    cut_stream(table, 0, PLACES[place])
    with SqlTable(table, Reading(columns="*", passes="stream")) as first, pytest.raises(EngineFailed, match=LOST):
        run(ledger, first, REQUEST)
    assert not ledger.runs()


@pytest.mark.parametrize("place", PLACES)
def test_rows_that_came_before_a_cut_are_never_counted(
    breakable_postgres: Postgres, cut_stream: Cutting, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by this population either, which has room for all that came, and not twice by the next one."""
    monkeypatch.setattr(sql_table, "HELD", 2**28)
    table = put(breakable_postgres)
    cut_stream(table, 0, PLACES[place])
    with SqlTable(table, Reading(columns="*", passes="stream")) as first:
        for _ in range(2):
            with pytest.raises(EngineFailed, match=LOST):
                in_square(first)
    with SqlTable(breakable_postgres.again("rows"), Reading(columns="*", passes="stream")) as second:
        assert agrees(second, ROWS)


def test_a_pass_that_is_left_when_its_connection_is_lost_says_nothing_of_its_own(
    breakable_postgres: Postgres, capfd: pytest.CaptureFixture[str]
) -> None:
    table = put(breakable_postgres)
    with SqlTable(table, Reading(columns="*", passes="stream")) as population:
        chunks = population.chunks()
        next(chunks)
        breakable_postgres.cut_and_wait(table)
        chunks.close()
        with pytest.raises(EngineFailed, match=LOST):
            population.check()
    assert capfd.readouterr() == ("", "")


def test_a_stream_tells_how_far_it_is(breakable_postgres: Postgres) -> None:
    told = list[int]()
    with SqlTable(put(breakable_postgres), Reading(columns="*", passes="stream", progress=told.append)) as population:
        population.check()
        in_square(population)
    assert told == [0] + [SIZE] * (len(ROWS) // SIZE)


# what is told


ERRORS = [
    (psycopg.errors.QueryCanceled("3.14159"), "the query was cancelled, by somebody or by its statement_timeout"),
    (
        psycopg.errors.IdleInTransactionSessionTimeout("3.14159"),
        "it closed the connection, which waited for longer than its idle_in_transaction_session_timeout",
    ),
    (psycopg.errors.OutOfMemory("failed on request of size 3.14159"), "it has not enough memory"),
    (psycopg.errors.DiskFull("could not write to file: 3.14159"), "its disk is full"),
    (psycopg.errors.StatementTooComplex("stack depth: 3.14159"), "the query is too long for it"),
    (psycopg.OperationalError("consuming input failed: 3.14159"), "the connection is lost"),
    (psycopg.InterfaceError("the cursor is closed: 3.14159"), "InterfaceError"),
    (psycopg.errors.RaiseException("a trigger says 3.14159"), "RaiseException"),
    (MemoryError("3.14159"), "MemoryError"),
]


@pytest.mark.parametrize(("error", "why"), ERRORS)
def test_why_postgresql_could_not_answer_is_told_in_our_words(
    postgres: Postgres, error: Exception, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqlTable(put(postgres), Reading(columns="*")) as population:
        population.check()
        monkeypatch.setattr("cloister.rows.databases.postgres.statement", Mock(side_effect=error))
        with pytest.raises(EngineFailed) as failure:
            population.check()
    assert f"postgres could not answer ({why}): " in str(failure.value)
    assert "3.14" not in str(failure.value)


FIT = "-k 3 --epsilon 1 --bounds=-1:1 --rows 20000 --method su-lloyd --set rounds=2 --columns * --json"
ACCOUNT = "--ledger budget.db --dataset mine"


def fitted(postgres: Postgres, table: str, folder: Path, *more: str) -> Any:
    """What the command says."""
    address = f"postgres://{OWNER}@/postgres?host={postgres.server.home}"
    return cloister("fit", address, "--table", table, *f"{FIT} {ACCOUNT}".split(), *more, folder=folder)


@pytest.mark.parametrize("passes", ["query", "stream"])
def test_the_command_line_says_how_to_go_on(
    postgres: Postgres, ledger: Ledger, passes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(postgres)
    gather, how = SqlTable.gather, ("--pass", passes)

    def lost(population: SqlTable, round: Any, rng: Any) -> Any:
        if round.index == 1:
            postgres.cut(population._given)
        return gather(population, round, rng)

    with monkeypatch.context() as patch:
        patch.setattr(SqlTable, "gather", lost)
        cut = fitted(postgres, "rows", tmp_path, *how)
    (found,) = ledger.runs()
    line = cut.stderr.splitlines()[-1]
    assert cut.returncode == 2
    assert line.startswith("cloister: postgres could not answer (the connection is lost")
    assert f"{ACCOUNT} --resume {found.id}" in line
    done = fitted(postgres, "rows", tmp_path, *how, "--resume", found.id)
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

"""Connections that PostgreSQL's server ends while rows stream from it: nothing partial, nothing twice, and the run goes
on, of the same rows or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.core.domains import Box
from cloister.core.errors import Refused
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Rows, count as counted, vector_sum
from cloister.plugins.populations import sql_table
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases import postgres as driver
from cloister.rows.databases.database import EngineFailed
from tests.rows.databases.postgres import Postgres
from tests.rows.databases.rounds import answers, same
from tests.rows.databases.test_lost_connections import (
    ROUNDS,
    ROWS,
    Asked,
    fitted,
    goes_on,
    ledger,
    put,
    released,
    run,
)

__all__ = ["ledger"]

SIZE = 1000
"""Rows of a batch: each stream has 20."""

PLACES = {"before its first batch": 0, "in its middle": 4, "after its last batch": len(ROWS) // SIZE}
"""How many batches have come when the server ends the connection."""

MESSAGE = r"postgres could not answer \(the connection is lost.*\): nothing was answered, and no part of an answer is"

DOMAIN = Box((-1.0,) * 2, (1.0,) * 2)
NEAR = NearestCenter(DOMAIN.snap(np.array([[-0.5, 0.0], [0.5, 0.0]])), DOMAIN.max_norm, None)
QUESTIONS = (counted, NEAR), (vector_sum, Rows.of(NEAR, DOMAIN))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams of several batches, which are read again in every round."""
    monkeypatch.setattr(sql_table, "chunk_rows", lambda dimension: SIZE)
    monkeypatch.setattr(sql_table, "HELD", 0)


Cutting = Callable[[Any, int, int], None]


@pytest.fixture
def cutting(breakable_postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Cutting:
    """Makes the server end a table's connection in its stream of this number, once so many batches have come."""
    real = driver._copied

    def cut(table: Any, stream: int, after: int) -> None:
        streams, process = count(), table.get_backend().con.info.backend_pid

        def copied(expression: Any, size: int) -> Iterator[Any]:
            lost, batches = next(streams) == stream, real(expression, size)
            for come in count():
                if lost and come == after:
                    breakable_postgres.cut(table)
                    breakable_postgres.wait_until_gone(process)
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
    breakable_postgres: Postgres, ledger: Ledger, cutting: Cutting, lost: int, place: str
) -> None:
    table = put(breakable_postgres)
    cutting(table, lost + 1, PLACES[place])  # the first one is the validation pass
    first = Asked(table, passes="stream")
    with pytest.raises(EngineFailed, match=MESSAGE):
        run(ledger, first)
    known = released(ledger, first, lost)
    goes_on(ledger, first, breakable_postgres.again("rows"), known, "stream")


@pytest.mark.parametrize("place", PLACES)
def test_a_validation_pass_that_is_cut_off_has_cost_nothing(
    breakable_postgres: Postgres, ledger: Ledger, cutting: Cutting, place: str
) -> None:
    table = put(breakable_postgres)
    cutting(table, 0, PLACES[place])
    with SqlTable(table, "*", passes="stream") as first, pytest.raises(EngineFailed, match=MESSAGE):
        run(ledger, first)
    assert not ledger.runs()
    with SqlTable(breakable_postgres.again("rows"), "*", passes="stream") as second:
        run(ledger, second)
    assert [done.state for done in ledger.runs()] == ["done"]


def test_a_run_does_not_go_on_with_rows_that_changed_after_the_stream_was_cut_off(
    breakable_postgres: Postgres, ledger: Ledger, cutting: Cutting
) -> None:
    """With the connection the snapshot is lost: the next one is of the same rows, or of others."""
    table = put(breakable_postgres)
    cutting(table, 2, 4)
    with SqlTable(table, "*", passes="stream") as first, pytest.raises(EngineFailed, match=MESSAGE):
        run(ledger, first)
    (cut,) = ledger.runs()
    breakable_postgres.run("UPDATE rows SET x0 = x0 + 0.001 WHERE x0 = (SELECT max(x0) FROM rows)")
    with (
        SqlTable(breakable_postgres.again("rows"), "*", passes="stream") as second,
        pytest.raises(Refused, match="they have moved: the rows differ"),
    ):
        run(ledger, second, cut.id)
    put(breakable_postgres)
    with SqlTable(breakable_postgres.again("rows"), "*", passes="stream") as third:
        run(ledger, third, cut.id)
    assert [(done.id, done.state) for done in ledger.runs()] == [(cut.id, "done")]


@pytest.mark.parametrize("place", PLACES)
def test_rows_that_came_before_a_cut_are_never_counted(
    breakable_postgres: Postgres, cutting: Cutting, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by this population either, which has room for all that came, and not twice by the next one."""
    monkeypatch.setattr(sql_table, "HELD", 2**28)
    table, wanted = put(breakable_postgres), answers(Arrays(ROWS), DOMAIN, *QUESTIONS)
    cutting(table, 0, PLACES[place])
    with SqlTable(table, "*", passes="stream") as first:
        for _ in range(2):
            with pytest.raises(EngineFailed, match=MESSAGE):
                answers(first, DOMAIN, *QUESTIONS)
    with SqlTable(breakable_postgres.again("rows"), "*", passes="stream") as second:
        assert same(answers(second, DOMAIN, *QUESTIONS), wanted)


def test_rows_that_are_held_outlive_the_connection(
    breakable_postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_table, "HELD", 2**28)
    table = put(breakable_postgres)
    with SqlTable(table, "*", passes="stream") as population:
        population.check()
        breakable_postgres.cut(table)
        for _ in range(2):
            assert same(answers(population, DOMAIN, *QUESTIONS), answers(Arrays(ROWS), DOMAIN, *QUESTIONS))


def test_a_pass_that_is_left_when_its_connection_is_lost_says_nothing_of_its_own(
    breakable_postgres: Postgres, capfd: pytest.CaptureFixture[str]
) -> None:
    table = put(breakable_postgres)
    process = table.get_backend().con.info.backend_pid
    with SqlTable(table, "*", passes="stream") as population:
        chunks = population.chunks()
        next(chunks)
        breakable_postgres.cut(table)
        breakable_postgres.wait_until_gone(process)
        chunks.close()
        with pytest.raises(EngineFailed, match=MESSAGE):
            population.check()
    assert capfd.readouterr() == ("", "")


def test_the_command_line_says_how_to_go_on_with_a_stream(
    breakable_postgres: Postgres, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(breakable_postgres)
    own, real, streams = breakable_postgres.backend.con.info.backend_pid, driver._copied, count()

    def copied(expression: Any, size: int) -> Iterator[Any]:
        for batch in real(expression, size):
            yield batch
            if next(streams) == 2 * len(ROWS) // SIZE:
                con = expression.get_backend().con
                assert con.info.backend_pid != own
                breakable_postgres.run(f"SELECT pg_terminate_backend({con.info.backend_pid})")
                breakable_postgres.wait_until_gone(con.info.backend_pid)

    with monkeypatch.context() as patch:
        patch.setattr(driver, "_copied", copied)
        cut = fitted(breakable_postgres, "rows", tmp_path, "--pass", "stream")
    (found,) = ledger.runs()
    assert cut.returncode == 2
    assert cut.stderr.splitlines()[-1].startswith("cloister: postgres could not answer (the connection is lost")
    assert f"--resume {found.id}" in cut.stderr.splitlines()[-1]
    done = fitted(breakable_postgres, "rows", tmp_path, "--pass", "stream", "--resume", found.id)
    assert (done.returncode, ledger.runs()[0].state) == (0, "done")


def test_a_stream_tells_how_far_it_is(breakable_postgres: Postgres) -> None:
    told = list[int]()
    with SqlTable(put(breakable_postgres), "*", passes="stream", progress=told.append) as population:
        population.check()
        assert told == [0]
        answers(population, DOMAIN, *QUESTIONS)
    assert told[1:] == [SIZE] * (len(ROWS) // SIZE)

"""Connections that die in the middle of a run: nothing partial, nothing paid twice, and the run goes on."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.core.errors import InvalidInput
from cloister.plugins.populations.sql_table import SqlTable
from cloister.run.account import Account
from cloister.run.fit import fit
from cloister.run.request import Request
from cloister.run.result import Result
from tests.run.test_resuming import Gone
from tests.sql.engines import TestEngine

ROUNDS = 3
REQUEST = Request(k=3, method="su-lloyd", epsilon=1.0, bounds=(-1, 1), rows=20_000, options={"rounds": ROUNDS - 1})
ROWS = np.random.default_rng(0).normal(0, 0.3, (20_000, 4))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger.open(tmp_path / "budget.db", create=True)
    book.declare("mine", 10.0, 1e-5)
    return book


class Asked:
    """A population, and the rounds that it was asked."""

    def __init__(self, table: Any, at: Callable[[int], None] = lambda number: None) -> None:
        self.inner = SqlTable(table, "*")
        self.columns, self.check, self.marks = self.inner.columns, self.inner.check, self.inner.marks
        self.rounds, self._at = list[int](), at

    def gather(self, round: Any, rng: Any) -> tuple[Any, ...]:
        self.rounds.append(round.index)
        self._at(round.index)
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


@pytest.mark.parametrize("delay", [0.0, 0.004, 0.013])
@pytest.mark.parametrize("lost", range(ROUNDS))
def test_a_run_goes_on_after_its_connection_died_in_any_round(
    engine: TestEngine, ledger: Ledger, lost: int, delay: float
) -> None:
    table = engine.put("rows", pa.table({f"x{j}": ROWS[:, j] for j in range(4)}))
    message = "nothing was answered, and no part of an answer is kept"
    with cutting(engine, table, lost, delay) as at:
        first = Asked(table, at)
        with pytest.raises(InvalidInput, match=message):
            run(ledger, first)
    first.inner.close()
    (cut,), known = ledger.runs(), looks(ledger)
    assert cut.state == "open"
    assert cut.epsilon == pytest.approx(1.0)
    assert {round for _, round, *_ in known} == set(range(first.rounds[-1]))
    second = Asked(engine.again("rows"))
    with second.inner:
        result = run(ledger, second, cut.id)
    assert second.rounds == list(range(first.rounds[-1], ROUNDS))
    assert looks(ledger)[: len(known)] == known
    (done,) = ledger.runs()
    assert done.state == "done"
    assert done.epsilon == pytest.approx(cut.epsilon)
    assert run(ledger, Gone(first.columns), cut.id).as_dict() == result.as_dict()

"""The ledger under many processes at once, and under kill -9 at any moment.

Nothing here is a statistical test: every check must hold whatever the timing. False-alarm rate: 0.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import cloister.accounting
from cloister.accounting import Ledger, Run
from cloister.accounting.ledger import counter

pytestmark = pytest.mark.thorough

WORKER = Path(__file__).with_name("ledger_worker.py")
SOURCES = Path(cloister.accounting.__file__).parents[2]


def start(task: str, ledger: Ledger, output: Path) -> subprocess.Popen[bytes]:
    paths = os.pathsep.join([str(SOURCES), os.environ.get("PYTHONPATH", "")])
    with output.open("wb") as file:
        command = [sys.executable, str(WORKER), task, str(ledger.path)]
        return subprocess.Popen(command, stdout=file, env={**os.environ, "PYTHONPATH": paths})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    book = Ledger.open(tmp_path / "ledger", create=True)
    book.declare("people", 1.0)
    yield book
    Ledger.open(book.path)  # whatever happened, the file is whole


def test_fifty_processes_at_once_never_overspend_and_lose_no_row(ledger: Ledger, tmp_path: Path) -> None:
    """150 runs of 0.01 are asked of a lifetime of 1: exactly 100 are admitted."""
    assert start("crowd", ledger, tmp_path / "output").wait() == 0
    lines = (tmp_path / "output").read_text().splitlines()
    admitted = [line.split()[1] for line in lines if line.startswith("admitted")]
    (status,) = ledger.status()
    assert len(Ledger.open(ledger.path.with_name("second")).status()) == 1
    assert lines.count("exit 0") == 50
    assert len(admitted) == 100
    assert {run.id for run in status.runs} == set(admitted)
    assert status.spent.epsilon == pytest.approx(1.0, abs=1e-12)
    assert all((run.rounds, run.lookups) == (1, 1) for run in status.runs)
    assert counter.read(counter.counter_of(ledger.path)) == dict.fromkeys(admitted, counter.Counted(1, 1, True))


def test_a_killed_process_leaves_at_least_what_it_spent_and_is_resumed_with_the_same_values(
    ledger: Ledger, tmp_path: Path
) -> None:
    rng = random.Random(20240711)
    for _ in range(2):
        said = killed_at_random(ledger, tmp_path, rng)
        status = {run.id: run for run in ledger.runs()}
        for words in filter(None, said):  # one may have been killed before its reservation returned
            run_id = words[0][1]
            assert (status[run_id].state, status[run_id].epsilon) == ("open", 0.01)
            check(ledger.resume(run_id, "people", "plan", same_rows=True), words)
            check(ledger.resume(run_id, "people", "plan", same_rows=True), words)
    (now,) = ledger.status()
    assert now.spent.epsilon == pytest.approx(0.01 * len(now.runs))


def killed_at_random(ledger: Ledger, folder: Path, rng: random.Random) -> list[list[list[str]]]:
    """Start workers on one ledger, kill each at a moment of its own, and return what each had said.

    All but the last are given the time to reserve.
    """
    outputs = [folder / str(i) for i in range(6)]
    workers = [start("work", ledger, output) for output in outputs]
    while not all(output.stat().st_size for output in outputs[:-1]):
        time.sleep(0.001)
    for worker in workers:
        time.sleep(rng.uniform(0, 0.1))
        worker.kill()
        worker.wait()
    lines = [
        [line for line in output.read_text().splitlines(keepends=True) if line.endswith("\n")] for output in outputs
    ]
    return [[line.strip().split(maxsplit=1) for line in worker] for worker in lines]


def check(run: Run, words: list[list[str]]) -> None:
    """Everything that was said is on record, in order; at most one entry more, whose confirmation was cut off."""
    seen = [bytes.fromhex(rest) for what, rest in words if what == "wrote"]
    looks = [look.values.tobytes() for look in run.record.lookups]
    assert looks[: len(seen)] == seen
    assert len(looks) <= len(seen) + 1
    opened = sum(what == "opened" for what, _ in words)
    assert opened <= len(run.record.digests) <= opened + 1
    closed = sum(what == "closed" for what, _ in words)
    assert closed <= run.record.closed <= closed + 1
    for look in run.record.lookups:
        assert look.values.shape == (4, 2)
        assert np.array_equal(look.ids, np.arange(4) * 2**40)

"""The ledger under many processes at once.

Nothing here is a statistical test: the check must hold whatever the timing. False-alarm rate: 0.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import pytest

import cloister
from cloister.accounting import Ledger, PrivacyTarget
from cloister.accounting.ledger import counter
from cloister.core.errors import BudgetExceeded
from cloister.core.record import Lookup

SOURCES = Path(cloister.__file__).parents[1]
TOTAL = PrivacyTarget(0.01)


def crowd(ledger: Ledger) -> None:
    """Fifty processes that reserve three times each, from the same moment on. Says which runs were admitted."""
    context = multiprocessing.get_context("spawn" if sys.platform == "win32" else "fork")
    barrier, outcomes = context.Barrier(50), context.SimpleQueue()
    processes = [context.Process(target=compete, args=(ledger, barrier, outcomes)) for _ in range(50)]
    for process in processes:
        process.start()
    for _ in processes:
        for run in outcomes.get():
            print("admitted", run)
    for process in processes:
        process.join()
        print("exit", process.exitcode)


def compete(ledger: Ledger, start: Barrier, outcomes: SimpleQueue[list[str]]) -> None:
    """Wait for the others; then make a second ledger, reserve in the first, and release one look per reservation."""
    admitted: list[str] = []
    start.wait()
    Ledger.open(ledger.path.with_name("second"), create=True).declare("people", 1.0)
    for _ in range(3):
        try:
            run = ledger.reserve("people", TOTAL, TOTAL.measured(["pure"]), "plan", b"public seed")
        except BudgetExceeded:
            continue
        run.open_round(0, "digest")
        run.write(Lookup(0, 0, 0, False, np.arange(3), np.arange(3.0)))
        admitted.append(run.id)
    outcomes.put(admitted)


@pytest.mark.thorough
def test_fifty_processes_at_once_never_overspend_and_lose_no_row(ledger: Ledger) -> None:
    """150 runs of 0.01 are asked of a lifetime of 1: exactly 100 are admitted. They are forked by a process that runs
    this file: it has no threads."""
    paths = os.pathsep.join([str(SOURCES), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, __file__, str(ledger.path)]
    lines = subprocess.check_output(command, env={**os.environ, "PYTHONPATH": paths}, text=True).splitlines()
    admitted = [line.split()[1] for line in lines if line.startswith("admitted")]
    (status,) = Ledger.open(ledger.path).status()
    assert len(Ledger.open(ledger.path.with_name("second")).status()) == 1
    assert lines.count("exit 0") == 50
    assert len(admitted) == 100
    assert {run.id for run in status.runs} == set(admitted)
    assert status.spent.epsilon == pytest.approx(1.0, abs=1e-12)
    assert all((run.rounds, run.lookups) == (1, 1) for run in status.runs)
    assert counter.read(counter.counter_of(ledger.path)) == dict.fromkeys(admitted, counter.RunCount(1, 1, True))


if __name__ == "__main__":
    crowd(Ledger.open(sys.argv[1]))

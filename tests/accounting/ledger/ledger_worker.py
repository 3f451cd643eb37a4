"""What the processes of ``test_ledger_processes`` do. Prints a line only after the ledger has returned."""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier

import numpy as np

from cloister.accounting import Ledger, Run, Total
from cloister.core.errors import BudgetExceeded
from cloister.core.record import Lookup

TOTAL = Total(0.01)


def say(*words: object) -> None:
    print(*words, flush=True)


def reserve(ledger: Ledger) -> Run:
    return ledger.reserve("people", TOTAL, TOTAL.measured(["pure"]), "plan", b"public seed")


def crowd(ledger: Ledger) -> None:
    """Fifty processes that reserve three times each, from the same moment on. Says which runs were admitted."""
    context = multiprocessing.get_context("spawn" if sys.platform == "win32" else "fork")
    barrier, outcomes = context.Barrier(50), context.SimpleQueue()
    processes = [context.Process(target=compete, args=(ledger, barrier, outcomes)) for _ in range(50)]
    for process in processes:
        process.start()
    for _ in processes:
        for run in outcomes.get():
            say("admitted", run)
    for process in processes:
        process.join()
        say("exit", process.exitcode)


def compete(ledger: Ledger, start: Barrier, outcomes: SimpleQueue[list[str]]) -> None:
    """Wait for the others; then make a second ledger, reserve in the first, and release one look per reservation."""
    admitted: list[str] = []
    start.wait()
    Ledger.open(ledger.path.with_name("second"), create=True).declare("people", 1.0)
    for _ in range(3):
        try:
            run = reserve(ledger)
        except BudgetExceeded:
            continue
        run.open_round(0, "digest")
        run.write(Lookup(0, 0, 0, False, np.arange(3), np.arange(3.0)))
        admitted.append(run.id)
    outcomes.put(admitted)


def work(ledger: Ledger) -> None:
    """Reserve, then open rounds and release random looks for ever, until somebody kills this process."""
    run = reserve(ledger)
    say("reserved", run.id)
    for i in range(10**6):
        run.open_round(i, f"digest {i}")
        say("opened", i)
        for _ in range(3):
            values = np.random.default_rng().standard_normal((4, 2))
            run.write(Lookup(i, 1, 0, False, np.arange(4) * 2**40, values))
            say("wrote", values.tobytes().hex())
        run.close_round(i)
        say("closed", i)


if __name__ == "__main__":
    book = Ledger.open(sys.argv[2])
    match sys.argv[1]:
        case "crowd":
            crowd(book)
        case "work":
            work(book)

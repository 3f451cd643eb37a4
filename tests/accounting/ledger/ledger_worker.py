"""What the processes of ``test_ledger_processes`` do. Prints a line only after the ledger has returned."""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier

import numpy as np

from cloister.accounting import Ledger, Run, Total
from cloister.core.errors import BudgetExceeded, CloisterError
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


def fill(ledger: Ledger) -> None:
    """Write a look that is larger than this process's files may become."""
    import os
    import resource

    run = reserve(ledger)
    most = os.path.getsize(ledger.path) + 2**16
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    run.open_round(0, "digest")
    try:
        run.write(Lookup(0, 0, 0, False, np.zeros(2**20, np.int64), np.zeros(2**20)))
    except CloisterError as error:
        say("error", type(error).__name__, error)
    run.write(Lookup(0, 0, 0, False, np.zeros(1, np.int64), np.ones(1)))
    say("run", run.id)


if __name__ == "__main__":
    book = Ledger.open(sys.argv[2])
    match sys.argv[1]:
        case "crowd":
            crowd(book)
        case "work":
            work(book)
        case "fill":
            fill(book)

"""Pools of fresh processes on this machine: each works on one core, and the keyboard ends it without a traceback."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import connection, resource_tracker
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

GUARD = "a script that starts workers does so under if __name__ == '__main__'"

UNGUARDED = 86
"""Exit code of a worker that runs the script by which it was started, until that wants workers of its own."""


def pool_of(workers: int, begun: Callable[..., None] | None = None, *arguments: Any) -> ProcessPoolExecutor:
    """Return a pool whose processes start when work is submitted, which is to be done in a block of ``starting``.

    Every process first calls ``begun`` with the arguments.
    """
    from concurrent.futures import ProcessPoolExecutor

    if getattr(multiprocessing.current_process(), "_inheriting", False):  # Python would say so at length
        os._exit(UNGUARDED)
    # spawned, not forked: a copy of threads' locks and of secret state has no place in a worker
    fresh = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, fresh, initializer=_begin_worker, initargs=(begun, *arguments))


def end(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool, whatever they do, and wait until they have ended.

    A program that ends before them takes away what they start with, and they print long tracebacks.
    """
    for process in list((pool._processes or {}).values()):
        process.terminate()
    pool.shutdown()


@contextmanager
def starting() -> Iterator[None]:
    """Start processes of this block single-threaded, and so that they end quietly."""
    with _single_threaded(), _interrupts_deferred():
        yield


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Let processes that start meanwhile do linear algebra on one core each, unless the user set it otherwise.

    Numerical libraries look at the environment when they are loaded, before anything can be sent to a worker.
    """
    unset = [name for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS") if name not in os.environ]
    os.environ.update(dict.fromkeys(unset, "1"))
    try:
        yield
    finally:
        for name in unset:
            del os.environ[name]


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Defer Ctrl-C until the block has ended; for processes that it starts, until they can end quietly."""
    if os.name != "posix":
        yield
        return
    resource_tracker.ensure_running()  # which would let interrupts through again
    earlier_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, earlier_mask)


def _begin_worker(begun: Callable[..., None] | None, *arguments: Any) -> None:
    """Let the keyboard end a worker without a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if os.name == "posix":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent = multiprocessing.parent_process()
    if parent is not None:
        Thread(target=_end_with_parent, args=(parent.sentinel,), daemon=True).start()
    if begun is not None:
        begun(*arguments)


def _end_with_parent(parent: int) -> None:
    """End this worker once its parent has ended.

    A killed parent ends no worker, and they would hold its output open.
    """
    connection.wait([parent])
    os._exit(1)

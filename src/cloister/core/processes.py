"""Pools of fresh processes on this machine: each works on one core, and the keyboard ends it without a word."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

GUARD = "a script that starts workers does so under if __name__ == '__main__'"


def pool_of(workers: int, begun: Callable[..., None] | None = None, *given: Any) -> ProcessPoolExecutor:
    """A pool whose processes start when work is submitted, which is to be done in a block of ``starting``.

    Args: begun (called first in every process, with what is given).
    """
    from concurrent.futures import ProcessPoolExecutor

    # spawned, not forked: a copy of threads' locks and of secret state has no place in a worker
    fresh = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, fresh, initializer=_begin, initargs=(begun, *given))


@contextmanager
def starting() -> Iterator[None]:
    """Processes that start in this block are single-threaded, and end quietly."""
    with _single_threaded(), _undisturbed():
        yield


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Processes that start meanwhile do linear algebra on one core each, unless the user said otherwise: numerical
    libraries look at the environment when they are loaded, which is before anything can be told to a worker."""
    unset = [name for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS") if name not in os.environ]
    os.environ.update(dict.fromkeys(unset, "1"))
    try:
        yield
    finally:
        for name in unset:
            del os.environ[name]


@contextmanager
def _undisturbed() -> Iterator[None]:
    """The keyboard interrupts what this block did only after it; processes that it starts, only once they can end
    quietly."""
    if os.name != "posix":
        yield
        return
    resource_tracker.ensure_running()  # which would let interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(begun: Callable[..., None] | None, *given: Any) -> None:
    """A worker that the keyboard interrupts ends without a traceback of its own."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if os.name == "posix":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if begun is not None:
        begun(*given)

"""Threads and processes on this machine's cores, and the pickled work that travels to a worker and back.

NumPy, SciPy and BLAS let other threads run while they compute, so that one process uses several cores. Processes of a
pool start fresh, each works on one core, and the keyboard ends it without a traceback. Failures come back as text: a
foreign error may quote rows.
"""

from __future__ import annotations

import functools
import importlib.metadata
import multiprocessing
import os
import pickle
import signal
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from multiprocessing import connection, resource_tracker
from numbers import Integral
from threading import Event, Thread, local
from typing import TYPE_CHECKING, Any, TypeVar, final

import attrs

from cloister.core.errors import CloisterError, InvalidInput, WorkerWarning

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor


P = TypeVar("P")
V = TypeVar("V")

MAX_THREADS = 1024

SLICE = 0.1
"""Seconds between two checks for Ctrl-C."""


def cores() -> int:
    """Return how many cores this process may use, the default number of workers.

    Those are the cores that it is bound to, and no more than its container's share of time is worth. For threads see
    ``default_threads``.
    """
    from joblib import cpu_count

    return int(cpu_count())


def default_threads() -> int:
    """Return the default number of threads of a pass: one per core, or ``OMP_NUM_THREADS`` if that is fewer.

    Variables of BLAS libraries limit those alone.
    """
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return min(cores(), int(limit)) if limit.isdecimal() and int(limit) else cores()


@cache
def _blas() -> Any:
    """Return the BLAS libraries of this process, NumPy's among them.

    Looking for them takes 10 ms, longer than a pass over few rows. Those that are loaded later have no part in a pass.
    """
    import numpy as np  # noqa: F401  # whose library is to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _checked(_: object, __: object, count: Any) -> None:
    if count is not None and (
        isinstance(count, bool) or not isinstance(count, Integral) or not 1 <= int(count) <= MAX_THREADS
    ):
        raise InvalidInput(f"threads is {count!r}: it must be a whole number between 1 and {MAX_THREADS}")


@final
@attrs.frozen
class Threads:
    """Threads that work on parts.

    Each computes on one core: products of blocks that stay in its cache are not divided further, which would take many
    times as long, also where there is one thread. A thread may work on a part's own parts by ``Threads``, too: it ends
    before the next of them once the whole has failed, or was interrupted.

    Args:
        many: number of threads; None: ``default_threads``.
    """

    many: int | None = attrs.field(default=None, validator=_checked)

    @property
    def count(self) -> int:
        """Number of threads."""
        return self.many or default_threads()

    @property
    def words(self) -> str:
        return f"{self.count} thread{'s' * (self.count > 1)}"

    def run(self, fn: Callable[[P], V], parts: Iterable[P]) -> Iterator[V]:
        """Yield the value of each part, in order: the order in which parts were worked on shows nowhere.

        Parts are taken in this thread, few ahead, so that memory does not grow with their number. What ``fn`` or the
        taking of a part raises is raised here, and nothing more is begun.
        """
        count = 1 if isinstance(parts, Sized) and len(parts) < 2 else self.count
        if count == 1:
            with _blas().limit(limits=1):
                for part in parts:
                    _whole.raise_if_over()
                    yield fn(part)
            return
        begun, over = deque[Future[V]](), Event()
        with _blas().limit(limits=1), ThreadPoolExecutor(count, "cloister", _whole.join, (over,)) as pool:
            try:
                for part in parts:
                    _whole.raise_if_over()
                    begun.append(pool.submit(fn, part))
                    if len(begun) > 2 * count:
                        yield _wait_for(begun.popleft())
                while begun:
                    yield _wait_for(begun.popleft())
            finally:
                over.set()
                for future in begun:
                    future.cancel()


class _Whole(local):
    """Work that this thread does a part of."""

    over: Event | None = None

    def join(self, over: Event) -> None:
        self.over = over

    def raise_if_over(self) -> None:
        """Raise CancelledError once the whole is over."""
        if self.over is not None and self.over.is_set():
            raise CancelledError


_whole = _Whole()


def _wait_for(future: Future[V]) -> V:
    """Return the result of a thread."""
    # in slices: a library that handles signals too, as Polars does, lets the system take up an endless wait again, and
    # Python never learns of a Ctrl-C
    while wait([future], SLICE).not_done:
        pass
    return future.result()


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


@attrs.frozen
class Failure:
    """Text of why a part failed: not every error can be pickled, and a foreign one may quote rows."""

    text: str


@functools.cache
def own_version() -> str:
    """Return the version of cloister in this process."""
    return importlib.metadata.version("cloister")


def packed(fn: Callable[[Any], Any]) -> bytes:
    """Return a function with all that it needs, pickled once for all parts.

    Raises:
        InvalidInput: some component cannot be pickled.
    """
    try:
        return pickle.dumps((own_version(), fn), pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InvalidInput(f"a round of this method cannot be sent to workers: {error}. Use engine 'serial'") from None


@functools.lru_cache(maxsize=1)
def _unpacked(work: bytes) -> Any:
    """Return a packed function, once per worker and round: what bucketings compute at first use is then kept."""
    return pickle.loads(work)


def attempt(work: bytes, part: Any) -> Any:
    """Return a part's value, or a ``Failure``; runs in a worker."""
    try:
        version, fn = _unpacked(work)
    except (ImportError, AttributeError) as error:
        return Failure(f"a worker lacks what this run needs ({error}): install the same packages there")
    if version != own_version():
        return Failure(
            f"a worker runs cloister {own_version()}, this process {version}: install the same version there"
        )
    try:
        return fn(part)
    except CloisterError as error:
        return Failure(str(error))


def warn_lost(how: str) -> None:
    """Warn that a worker ended early. Args: how (it did)."""
    warnings.warn(WorkerWarning(f"a worker ended early ({how}): its part alone is done again"), stacklevel=3)


def settled(result: Any) -> Any:
    """Return a value. Raises: InvalidInput: it is a ``Failure``."""
    if isinstance(result, Failure):
        raise InvalidInput(result.text)
    return result

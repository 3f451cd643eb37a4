"""Engines: where the parts of a large input are worked on. In this process, in a pool of processes, or by Dask.

What travels to a worker is the round (public), names of files and which of their rows or reports; what comes back is a
part's exact summary. Central noise is drawn once, here, after the merge: so the machines of an engine that reads rows
belong to the curator, those of one that reads reports to the server, those of one that shuffles to the shuffler.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, final

from cloister.core.errors import InvalidInput, MissingExtra, UnknownName
from cloister.rows.workers.machine import GUARD, attempt, cores, packed, pool_of, settled, starting

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

P = TypeVar("P")
V = TypeVar("V")

ENGINES = ("serial", "processes", "dask")

MAX_WORKERS = 1024


class Engine(Protocol):
    """Runs a pure function on parts.

    Laws: ``run`` gives the value of each part exactly once, in any order, or raises: a worker that ends early never
    changes the values, and no part is left out. Errors of cloister in a worker are raised here, as one line.
    """

    @property
    def apart(self) -> bool:
        """Whether parts run in other processes, where nothing can be told or remembered."""
        ...

    @property
    def elsewhere(self) -> bool:
        """Whether workers may have another current folder, or be on other machines."""
        ...

    def run(self, fn: Callable[[P], V], parts: Iterable[P]) -> Iterator[V]: ...

    def close(self) -> None:
        """End the workers. A closed engine starts new ones when it is used again."""
        ...


def engine_of(name: str | Engine, workers: int | None = None, scheduler: str | None = None) -> Engine:
    """The engine of this name.

    Args:
        workers: processes to start; by default one per core. Not for 'serial', nor where a scheduler has its own.
        scheduler: address of a running Dask scheduler.

    Raises:
        UnknownName, InvalidInput: there is no such engine, or an option does not go with it. MissingExtra: Dask is not
            installed.
    """
    if not isinstance(name, str):
        return name
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)
    if scheduler is not None and name != "dask":
        raise InvalidInput(f"a scheduler goes with engine 'dask', not '{name}'")
    if workers is not None and (name == "serial" or scheduler is not None):
        raise InvalidInput(
            "engine 'serial' has no workers: choose engine 'processes' or 'dask'"
            if name == "serial"
            else "a running Dask scheduler has its own workers: give workers or scheduler, not both"
        )
    if workers is not None and not 1 <= workers <= MAX_WORKERS:
        raise InvalidInput(f"workers is {workers}: it must be between 1 and {MAX_WORKERS}")
    if name == "serial":
        return Serial()
    if name == "processes":
        return Processes(workers or cores())
    try:
        from cloister.rows.workers.dask_cluster import Dask
    except ImportError as error:
        raise MissingExtra("distributed", "dask", "engine 'dask'") from error
    return Dask(workers or cores(), scheduler)


@contextmanager
def spread(engine: str | Engine, workers: int | None = None, scheduler: str | None = None) -> Iterator[Engine]:
    """The engine of this name for as long as the block runs; one that is given is left open. Args and Raises: as for
    ``engine_of``."""
    found = engine_of(engine, workers, scheduler)
    try:
        yield found
    finally:
        if isinstance(engine, str):
            found.close()


@final
class Serial:
    """One part after the other, in this process."""

    apart = elsewhere = False

    def run(self, fn: Callable[[P], V], parts: Iterable[P]) -> Iterator[V]:
        return map(fn, parts)

    def close(self) -> None:
        """Nothing to end."""


@final
class Processes:
    """A pool of fresh processes on this machine, kept between rounds.

    A worker that ends early (killed, out of memory) breaks the pool. What was not done is then done once more, by a new
    one.

    Args:
        workers: how many processes.
    """

    apart, elsewhere = True, False

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None
        self._workers_seen: list[Any] = []

    def run(self, fn: Callable[[P], V], parts: Iterable[P]) -> Iterator[V]:
        """Raises: InvalidInput if the pool breaks twice, or a part fails."""
        from concurrent.futures import BrokenExecutor

        work, left = packed(fn), dict(enumerate(parts))
        every, ended = len(left), ""
        for _ in range(2):
            try:
                yield from self._tried(work, left)
                return
            except BrokenExecutor:
                self.close()  # first: the pool joins its processes, and none has an exit code before
                ended = self._ended()
        raise InvalidInput(
            f"worker processes ended twice before their work was done: nothing was answered. At last {ended or 'one'}, "
            f"with {len(left)} of {every} parts left. Perhaps memory ran out; and {GUARD}"
        )

    def _tried(self, work: bytes, left: dict[int, Any]) -> Iterator[Any]:
        """The values of what is left, which shrinks by each one that is handed out."""
        from concurrent.futures import as_completed

        pool = self._started()
        with starting():
            futures = {pool.submit(attempt, work, part): number for number, part in left.items()}
        self._workers_seen = list((pool._processes or {}).values())  # the pool forgets those of a broken one
        try:
            for future in as_completed(list(futures)):
                number, result = futures.pop(future), future.result()
                del left[number], future
                yield settled(result)
        finally:
            for future in futures:
                future.cancel()

    def _ended(self) -> str:
        """The worker that ended by itself, with how: the others are then ended by the pool, with SIGTERM."""
        known = [(process.pid, process.exitcode) for process in self._workers_seen]
        own = [(pid, code) for pid, code in known if code not in (None, 0, -signal.SIGTERM)]
        return ", ".join(f"process {pid} ended {_how(code)}" for pid, code in own if code is not None)

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = pool_of(self._workers)
        return self._pool

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def _how(code: int) -> str:
    """An exit code in words: negative ones are signals."""
    if code >= 0:
        return f"with exit code {code}"
    known = {number.value: number.name for number in signal.Signals}
    return f"by signal {known.get(-code, -code)}"

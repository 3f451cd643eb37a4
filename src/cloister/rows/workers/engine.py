"""Engines that work on the parts of a large input: in this process, in a pool of processes, or by Dask.

A worker receives the round (public), and names of files and which of their rows or reports; it returns a part's exact
summary. Central noise is drawn once, here, after the merge: so the machines of an engine that reads rows belong to the
curator, those of one that reads reports to the server, those of one that shuffles to the shuffler.
"""

from __future__ import annotations

import signal
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, final

import attrs

from cloister.core.errors import InvalidInput, MissingExtra, UnknownName
from cloister.rows.workers.processes import GUARD, UNGUARDED, pool_of, starting
from cloister.rows.workers.threads import SLICE, cores
from cloister.rows.workers.work import attempt, packed, result_of, warn_lost

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

P = TypeVar("P")
V = TypeVar("V")

ENGINES = ("serial", "processes", "dask")

MAX_WORKERS = 1024

DEATHS = 3
"""Workers in a row that may end on one part before the question is given up."""


class Engine(Protocol):
    """Runs a pure function on parts.

    Laws: ``run`` gives the value of each part exactly once, in any order, or raises: a worker that ends early never
    changes the values, costs its part alone, and is reported in one line (``warn_lost``); no part is left out. Errors
    of cloister in a worker are raised here, as one line.
    """

    @property
    def apart(self) -> bool:
        """Whether parts run in other processes, where nothing can be reported or remembered."""
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
    """Return the engine of this name.

    Args:
        name: of ``ENGINES``; an engine is returned as it is.
        workers: processes to start; by default one per core. Not for 'serial', nor where a scheduler has its own.
        scheduler: address of a running Dask scheduler.

    Raises:
        UnknownName: there is no such engine.
        InvalidInput: an option does not go with it.
        MissingExtra: Dask is not installed.
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
def open_engine(engine: str | Engine, workers: int | None = None, scheduler: str | None = None) -> Iterator[Engine]:
    """Open the engine of this name for the block; one that is given stays open. Args and Raises: as ``engine_of``."""
    opened = engine_of(engine, workers, scheduler)
    try:
        yield opened
    finally:
        if isinstance(engine, str):
            opened.close()


@final
class Serial:
    """Engine that works on one part after the other, in this process."""

    apart = elsewhere = False

    def run(self, fn: Callable[[P], V], parts: Iterable[P]) -> Iterator[V]:
        return map(fn, parts)

    def close(self) -> None:
        """Do nothing: there is nothing to end."""


@final
class Processes:
    """Engine of fresh processes on this machine, each with one part at a time, kept between rounds.

    When a worker ends early (killed, out of memory), another one does its part again from the start; the others go on.

    Args:
        workers: number of processes.
    """

    apart, elsewhere = True, False

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._idle = list[_Worker]()
        self._busy: dict[Future[Any], tuple[_Worker, int]] = {}

    @property
    def pids(self) -> list[int]:
        """Ids of the processes that were started."""
        return [process.pid for worker in self._all() for process in worker.processes]

    def run(self, fn: Callable[[P], V], parts: Iterable[P]) -> Iterator[V]:
        """Yield the value of each part.

        Raises:
            InvalidInput: ``DEATHS`` workers in a row end on one part, a part fails, or workers want to start workers.
        """
        work, part_list = packed(fn), list(parts)
        queue, deaths = deque(range(len(part_list))), Counter[int]()
        try:
            while queue or self._busy:
                self._hand_out(work, part_list, queue)
                for future in wait(self._busy, SLICE, FIRST_COMPLETED).done:
                    worker, number = self._busy.pop(future)
                    if not isinstance(future.exception(), BrokenExecutor):
                        self._idle.append(worker)
                        yield result_of(future.result())
                        continue
                    how, unfinished = worker.ended(), len(queue) + len(self._busy) + 1
                    queue.appendleft(number)
                    deaths[number] += 1
                    if deaths[number] == DEATHS:
                        raise InvalidInput(
                            f"{DEATHS} workers in a row ended on the same part: nothing was answered. At last {how}, "
                            f"with {unfinished} of {len(part_list)} parts left. Perhaps memory ran out"
                        )
                    warn_lost(how)
        finally:  # what is still worked on then, nobody waits for
            self._idle += [worker for worker, _ in self._busy.values()]
            self._busy = {}

    def _hand_out(self, work: bytes, parts: list[Any], queue: deque[int]) -> None:
        """Give a part to each worker that has none."""
        while queue and len(self._busy) < self._workers:
            worker = self._idle.pop() if self._idle else _Worker(pool_of(1))
            try:
                with starting():
                    future = worker.pool.submit(attempt, work, parts[queue[0]])
            except BrokenExecutor:  # it ended while it had nothing to do
                worker.ended()
                continue
            worker.processes = list((worker.pool._processes or {}).values())
            self._busy[future] = worker, queue.popleft()

    def _all(self) -> list[_Worker]:
        return [*self._idle, *(worker for worker, _ in self._busy.values())]

    def close(self) -> None:
        workers, self._idle, self._busy = self._all(), [], {}
        with ThreadPoolExecutor() as several:  # all end at the same time
            list(several.map(lambda worker: worker.pool.shutdown(cancel_futures=True), workers))


@attrs.define(eq=False)
class _Worker:
    """A process, its pool, and the process itself, which a broken pool forgets."""

    pool: ProcessPoolExecutor
    processes: list[Any] = attrs.field(factory=list)

    def ended(self) -> str:
        """Return how the process ended by itself, once its pool is done with it: it has no exit code before."""
        self.pool.shutdown()
        if any(process.exitcode == UNGUARDED for process in self.processes):
            raise InvalidInput(f"no worker could be started: {GUARD}")
        return ", ".join(f"process {process.pid} ended {_how(process.exitcode or 0)}" for process in self.processes)


def _how(code: int) -> str:
    """Return an exit code in words: negative ones are signals."""
    if code >= 0:
        return f"with exit code {code}"
    signals = {number.value: number.name for number in signal.Signals}
    return f"by signal {signals.get(-code, -code)}"

"""One run of one contender, and many of them on all cores."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, final

import attrs
from threadpoolctl import threadpool_limits

from cloister.core.errors import CloisterError
from cloister.core.types import Floats
from cloister.lab.comparing.conditions import Conditions, population_of
from cloister.lab.comparing.contenders import Contender, rival_centers
from cloister.metrics import nicv
from cloister.rows.workers.machine import GUARD, pool_of, starting
from cloister.run.fit import fit


@final
@attrs.frozen
class Trial:
    """A run to make. Args: contender (a rival by its name), epsilon, number (which of the runs, from 0)."""

    contender: Contender | str
    epsilon: float
    number: int

    @property
    def key(self) -> tuple[str, float, int]:
        """Name in a study."""
        label = self.contender if isinstance(self.contender, str) else self.contender.label
        return label, self.epsilon, self.number


@final
@attrs.frozen
class Outcome:
    """Outcome of a run. Args: nicv (of rows clipped to the bounds, as the run clips them) and seconds; refused: why
    it could not end, None if it did; unclipped: nicv of the rows as they are, None where none lies outside."""

    nicv: float = 0.0
    seconds: float = 0.0
    refused: str | None = None
    unclipped: float | None = None


@attrs.frozen(eq=False)
class Bench:
    """Rows, put on the lattice once for all runs. Args: rows (n, d), own (the same, clipped to the bounds, in units of
    distance), conditions, population."""

    rows: Floats
    own: Floats
    conditions: Conditions
    population: Any

    @classmethod
    def of(cls, rows: Floats, conditions: Conditions) -> Bench:
        own = conditions.clipped(rows) / conditions.units
        return cls(rows, own, conditions, population_of(rows, conditions.chosen))

    def run(self, trial: Trial) -> Outcome:
        """Make a run with secret noise and fresh public choices, and measure it. NOT private."""
        begun = time.perf_counter()
        try:
            centers = self._centers(trial)
        except CloisterError as error:
            return Outcome(refused=str(error))
        spent = time.perf_counter() - begun
        units = self.conditions.units
        other = nicv(self.rows / units, centers / units) if self.conditions.outside else None
        return Outcome(nicv(self.own, centers / units), spent, unclipped=other)

    def _centers(self, trial: Trial) -> Floats:
        told = self.conditions
        if isinstance(trial.contender, str):
            return rival_centers(trial.contender, self.rows, told.k, trial.epsilon, told.domain, told.units)
        return fit(told.request(trial.contender, trial.epsilon), self.population).centers


def outcomes(
    rows: Floats, conditions: Conditions, trials: Sequence[Trial], workers: int
) -> Iterator[tuple[Trial, Outcome]]:
    """Make all runs, each on one core, and yield them as they end.

    Args: workers (processes; 1: this one). Raises: CloisterError: a process ended early.
    """
    if workers == 1 or len(trials) < 2:
        with threadpool_limits(1):
            bench = Bench.of(rows, conditions)
            yield from ((trial, bench.run(trial)) for trial in trials)
        return
    from concurrent.futures import BrokenExecutor, as_completed

    with pool_of(min(workers, len(trials)), _hold, rows, conditions) as pool:
        with starting():
            futures = {pool.submit(_run, trial): trial for trial in trials}
        try:
            for future in as_completed(list(futures)):
                yield futures.pop(future), future.result()
        except BrokenExecutor as error:
            raise CloisterError(
                f"a worker process ended before its run did: perhaps memory ran out (take fewer workers); and {GUARD}"
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


_bench: Bench | None = None
"""In a worker: its bench."""


def _hold(rows: Floats, conditions: Conditions) -> None:
    global _bench
    threadpool_limits(1)
    _bench = Bench.of(rows, conditions)


def _run(trial: Trial) -> Outcome:
    assert _bench is not None
    return _bench.run(trial)

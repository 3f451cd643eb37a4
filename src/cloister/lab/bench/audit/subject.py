"""Entrant under audit: it is run on small tables that the checks make up."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import final

import attrs
import numpy as np

from cloister.core.types import Floats
from cloister.lab.bench.entrants import Entrant
from cloister.lab.bench.running import Answer, RowsFile, RunFailure, Task, run_entrant

DELTA = 1e-5
"""Delta that entrants with an approximate guarantee are given."""

MOST_AT_ONCE = 2000
"""Maximum number of releases that one process is asked for."""


@final
@attrs.frozen(eq=False, kw_only=True)
class AuditTable:
    """Table that a check makes up.

    Args:
        rows: (n, d), in the bounds [-1, 1] unless a check says otherwise.
        k: number of centres.
        n: public number of rows, the same for neighbours.
    """

    rows: Floats
    k: int
    n: int


@final
@attrs.frozen(eq=False, kw_only=True)
class Subject:
    """Installed entrant under audit.

    Args:
        entrant: to test.
        environment: where it is installed.
        timeout: seconds of one run.
        workers: number of runs at once.
    """

    entrant: Entrant
    environment: Path
    timeout: float
    workers: int

    @property
    def delta(self) -> float:
        """Delta that it is given."""
        return DELTA if self.entrant.facts.guarantee == "approximate" else 0.0

    @contextmanager
    def given(self, sample: AuditTable) -> Iterator[RowsFile]:
        """Write the files of a table."""
        bounds = np.tile([-1.0, 1.0], (sample.rows.shape[1], 1))
        with RowsFile.of(sample.rows, bounds) as file:
            yield file

    def run(self, sample: AuditTable, epsilon: float = 1.0, seed: int = 1) -> Answer | RunFailure:
        """Run it once on a table."""
        with self.given(sample) as file:
            return self._run(file, sample, epsilon, seed, 1)

    def releases(self, sample: AuditTable, epsilon: float, count: int) -> Floats | RunFailure:
        """Return releases (count, k, d) on a table with fresh noise, or the first failure.

        Every process gets a seed of its own, as in a benchmark: the same ones for every table.
        """
        at_once = min(MOST_AT_ONCE, -(-count // self.workers)) if self.entrant.facts.repeats else 1
        parts = [min(at_once, count - start) for start in range(0, count, at_once)]
        with self.given(sample) as file, ThreadPoolExecutor(self.workers) as pool:
            tasks = [
                pool.submit(self._run, file, sample, epsilon, 10**6 + number, part) for number, part in enumerate(parts)
            ]
            try:
                answers = list[Floats]()
                for task in tasks:
                    outcome = task.result()
                    if isinstance(outcome, RunFailure):
                        return outcome
                    answers.append(outcome.centers)
            finally:
                for task in tasks:
                    task.cancel()
        return np.concatenate(answers)

    def _run(self, file: RowsFile, sample: AuditTable, epsilon: float, seed: int, repeats: int) -> Answer | RunFailure:
        task = Task(file=file, k=sample.k, epsilon=epsilon, delta=self.delta, seed=seed, n=sample.n, repeats=repeats)
        return run_entrant(self.entrant, self.environment, task, self.timeout)

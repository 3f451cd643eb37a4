"""Runs of a paper's protocol, one by one or in parallel, and a file that keeps those that ended. **NOT private**."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias, final

import attrs
from threadpoolctl import threadpool_limits

from cloister._version import __version__
from cloister.core.errors import CloisterError, Damaged
from cloister.lab.lines import LinesFile
from cloister.lab.papers.cells import PaperCell
from cloister.lab.papers.papers import paper_of
from cloister.rows.workers.processes import GUARD, end, pool_of, starting

Run: TypeAlias = tuple[PaperCell, int]
"""A cell, and the number of the run, from 0."""

PREFIX = b'{"run": '
"""Beginning of a line of finished runs."""


@final
@attrs.frozen
class RunOutcome:
    """Outcome of a run. Args: value, seconds, refused (why there is no value, or None)."""

    value: float
    seconds: float
    refused: str | None = None


def measured(paper: str, run: Run) -> RunOutcome:
    """Make a run of a paper, on one core."""
    started = time.perf_counter()
    try:
        with threadpool_limits(1):
            value = float(paper_of(paper).measure(*run))
    except CloisterError as error:
        return RunOutcome(0.0, 0.0, str(error))
    return RunOutcome(value, time.perf_counter() - started)


def outcomes(paper: str, runs: Sequence[Run], workers: int) -> Iterator[tuple[Run, RunOutcome]]:
    """Make all runs and yield them in order. Raises: CloisterError: a process ended early."""
    if workers == 1 or len(runs) < 2:
        yield from ((run, measured(paper, run)) for run in runs)
        return
    from concurrent.futures import BrokenExecutor

    pool = pool_of(min(workers, len(runs)))
    try:
        with starting():
            futures = [(run, pool.submit(measured, paper, run)) for run in runs]
        yield from ((run, future.result()) for run, future in futures)
    except BrokenExecutor as error:
        raise CloisterError(
            f"a worker process ended early, perhaps for lack of memory: run it with --workers 1; and {GUARD}"
        ) from error
    finally:
        end(pool)


@final
class KeptRuns:
    """Finished runs of a paper, kept in a file of JSON lines. A last line that a crash cut short is dropped.

    Args:
        path: of the file; None: nothing is kept.

    Raises:
        InvalidInput: the file holds something else, is in use, or cannot be written.
        Damaged: a line is not as it was written.
    """

    def __init__(self, path: Path | None) -> None:
        self._known: dict[str, RunOutcome] = {}
        self._file = None if path is None else LinesFile(path, PREFIX, "a file of a paper's runs", "reproduction")
        for line in () if self._file is None else self._file.entries:
            try:
                entry = json.loads(line)
                if entry["version"] == __version__:
                    self._known[entry["run"]] = RunOutcome(entry["value"], entry["seconds"], entry["refused"])
            except (ValueError, KeyError, TypeError):
                self.close()
                raise Damaged(f"{path} is not intact: remove it, or choose another folder") from None

    def get(self, run: Run) -> RunOutcome | None:
        """Return the outcome of a run that ended; None: it did not."""
        return self._known.get(_key(run))

    def keep(self, run: Run, outcome: RunOutcome) -> None:
        """Append a run. Raises: InvalidInput: the file cannot be written."""
        self._known[_key(run)] = outcome
        if self._file is not None:
            self._file.append({"run": _key(run), **attrs.asdict(outcome), "version": __version__})

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _key(run: Run) -> str:
    cell, number = run
    return json.dumps([attrs.asdict(attrs.evolve(cell, runs=0)), number], sort_keys=True)

"""Runs of a paper's protocol, one by one or in parallel, and a file that keeps those that ended. **NOT private**."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias, final

import attrs
from threadpoolctl import threadpool_limits

from cloister._version import __version__
from cloister.core.errors import CloisterError, Damaged
from cloister.lab.papers.cells import PaperCell
from cloister.lab.papers.papers import paper_of
from cloister.rows.workers.processes import GUARD, end, pool_of, starting

Run: TypeAlias = tuple[PaperCell, int]
"""PaperCell, and number of the run, from 0."""


@final
@attrs.frozen
class RunOutcome:
    """RunOutcome of a run. Args: value, seconds, refused (why there is no value, or None)."""

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
    """File of JSON lines with the finished runs of a paper.

    Args:
        path: of the file; None: nothing is kept.

    Raises: Damaged: a line is no run of this version.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, RunOutcome] = {}
        if path is None or not path.exists():
            return
        for line in path.read_text("utf-8").splitlines():
            try:
                entry = json.loads(line)
                if entry["version"] == __version__:
                    self._known[entry["run"]] = RunOutcome(entry["value"], entry["seconds"], entry["refused"])
            except (ValueError, KeyError, TypeError):
                raise Damaged(f"{path} is not intact: remove it, or choose another folder") from None

    def get(self, run: Run) -> RunOutcome | None:
        """Return the outcome of a run that ended; None: it did not."""
        return self._known.get(_key(run))

    def keep(self, run: Run, outcome: RunOutcome) -> None:
        """Append a run."""
        self._known[_key(run)] = outcome
        if self._path is not None:
            entry: dict[str, Any] = {"run": _key(run), **attrs.asdict(outcome), "version": __version__}
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


def _key(run: Run) -> str:
    cell, number = run
    return json.dumps([attrs.asdict(attrs.evolve(cell, runs=0)), number], sort_keys=True)

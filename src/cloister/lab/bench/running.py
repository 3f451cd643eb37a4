"""A run of an entrant: a process of its own that gets rows and a budget, and whose output is checked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias, final

import attrs
import numpy as np

from cloister.core.plain_data import parsed
from cloister.core.types import Floats
from cloister.lab.bench import launcher
from cloister.lab.bench.answers import LARGEST, BadOutput, content_of, read_centers
from cloister.lab.bench.entrants import Entrant
from cloister.lab.bench.environment import run_environment

TAIL = 2000
"""Characters of an entrant's log that a failure keeps."""

QUOTED = 200
"""Characters of a line that a reason quotes."""

FailureKind: TypeAlias = Literal["timeout", "crash", "bad output"]


@final
@attrs.frozen(eq=False)
class RowsFile:
    """Rows as entrants read them: ``rows.csv`` without a header, ``rows.npy``, and ``bounds.csv``.

    Args:
        folder: of the three files.
        rows: (n, d).
        bounds: (d, 2) public lower and upper bounds.
    """

    folder: Path
    rows: Floats
    bounds: Floats

    @classmethod
    @contextmanager
    def of(cls, rows: Floats, bounds: Floats) -> Iterator[RowsFile]:
        """Write the files into a temporary folder, which the block has."""
        with TemporaryDirectory(prefix="cloister-bench-") as folder:
            file = cls(Path(folder), np.ascontiguousarray(rows, np.float64), np.asarray(bounds, np.float64))
            file.write()
            yield file

    def write(self) -> None:
        """Write the three files."""
        for name, table in (("rows.csv", self.rows), ("bounds.csv", self.bounds)):
            text = "".join(",".join(map(repr, row)) + "\n" for row in table.tolist())
            (self.folder / name).write_text(text, "ascii")
        np.save(self.folder / "rows.npy", self.rows)

    def stamp(self) -> tuple[tuple[int, ...], ...]:
        """Return identity, size and time of change of each file: an entrant may change none."""
        facts = [os.lstat(self.folder / name) for name in ("rows.csv", "bounds.csv", "rows.npy")]
        return tuple((fact.st_ino, fact.st_size, fact.st_mtime_ns) for fact in facts)


@final
@attrs.frozen(eq=False, kw_only=True)
class Task:
    """Task of a run.

    Args:
        file: the rows and their public bounds.
        k: number of centres.
        epsilon, delta: budget of each release.
        seed: of public choices; the noise must not follow it.
        n: public number of rows.
        repeats: number of releases.
    """

    file: RowsFile
    k: int
    epsilon: float
    delta: float
    seed: int
    n: int
    repeats: int = 1

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables that tell it."""
        return {
            "BENCH_ROWS": str(self.file.folder / "rows.csv"),
            "BENCH_ROWS_NPY": str(self.file.folder / "rows.npy"),
            "BENCH_BOUNDS": str(self.file.folder / "bounds.csv"),
            "BENCH_COLUMNS": str(self.file.rows.shape[1]),
            "BENCH_K": str(self.k),
            "BENCH_EPSILON": repr(float(self.epsilon)),
            "BENCH_DELTA": repr(float(self.delta)),
            "BENCH_SEED": str(self.seed),
            "BENCH_N": str(self.n),
            "BENCH_REPEATS": str(self.repeats),
        }


@final
@attrs.frozen(eq=False)
class Answer:
    """Output of a run.

    Args:
        centers: (repeats, k, d).
        seconds: of the whole process.
        peak_mb: peak memory of the process, in MiB.
        statement: what it says of its budget, parsed but not checked; None if it says nothing.
    """

    centers: Floats
    seconds: float
    peak_mb: float
    statement: Any = None


@final
@attrs.frozen
class RunFailure:
    """Run without a result. Args: kind, reason (in one line), log (its end)."""

    kind: FailureKind
    reason: str
    log: str = ""

    @property
    def text(self) -> str:
        """Reason, with the last line that it printed."""
        lines = self.log.splitlines()
        return f"{self.reason}: {lines[-1][:QUOTED]}" if lines else self.reason


def run_entrant(entrant: Entrant, environment: Path, task: Task, timeout: float) -> Answer | RunFailure:
    """Run an entrant once, in a process of its own.

    Args:
        entrant: installed.
        environment: the folder that ``install`` returned.
        task: what to do.
        timeout: seconds after which it is killed.

    Returns: its answer, or the failure: nothing that an entrant does raises an error.
    """
    stamp = task.file.stamp()
    with TemporaryDirectory(prefix="cloister-bench-run-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        outcome = _run(entrant, environment, task, timeout, folder)
    try:
        changed = task.file.stamp() != stamp
    except OSError:
        changed = True
    if changed:
        task.file.write()
        return RunFailure("bad output", "it changed the files of rows, which are shared by all entrants")
    return outcome


def _run(entrant: Entrant, environment: Path, task: Task, timeout: float, folder: Path) -> Answer | RunFailure:
    out, statement, report, log = (folder / name for name in ("centers", "statement", "report", "log"))
    (folder / "work").mkdir()
    variables = {
        **task.variables,
        "BENCH_OUT": str(out),
        "BENCH_STATEMENT": str(statement),
        "BENCH_ENV": str(environment),
        "BENCH_ENTRANT": str(entrant.folder or ""),
        "HOME": str(folder / "work"),
        "TMPDIR": str(folder / "work"),
    }
    command = [sys.executable, "-I", "-S", launcher.__file__, str(report), str(LARGEST), *entrant.command]
    ended = _waited(command, run_environment(entrant, variables), folder / "work", log, timeout)
    said = _tail(log)
    if not ended:
        return RunFailure("timeout", f"it ran longer than {timeout:g} s and was killed", said)
    try:
        facts = json.loads(report.read_text("utf-8"))
    except (OSError, ValueError):
        return RunFailure("crash", "it killed the process that measures it", said)
    if "not_started" in facts:
        hint = ": does it begin with a line such as #!/bin/sh?" if "xec format" in facts["not_started"] else ""
        return RunFailure("crash", f"it could not be started: {facts['not_started']}{hint}", said)
    if facts["code"] != 0:
        return RunFailure("crash", f"it {_end(facts['code'])}", said)
    try:
        return _answer(out, statement, task, facts)
    except BadOutput as error:
        return RunFailure("bad output", str(error), said)


def _answer(out: Path, statement: Path, task: Task, facts: dict[str, Any]) -> Answer:
    content = content_of(out)
    if content is None:
        raise BadOutput("it wrote no file $BENCH_OUT")
    centers, stated = read_centers(content, task.repeats, task.k, task.file.rows.shape[1])
    content = content_of(statement)
    if content is not None:
        try:
            stated = parsed(content)
        except ValueError as error:
            raise BadOutput(f"its statement is no valid JSON: {error}") from None
    return Answer(centers, facts["seconds"], facts["peak_mb"], stated)


def _waited(command: list[str], environment: dict[str, str], folder: Path, log: Path, timeout: float) -> bool:
    """Run a command to its end, and return False if it took too long. Nothing of it is left behind in its group."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(timeout)
            return True
        except subprocess.TimeoutExpired:
            return False
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _end(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
        return file.read().decode("utf-8", "replace").strip()

"""A worker that ends early never changes an answer: it is worked out again, or there is none."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cloister.core.errors import InvalidInput, WorkerWarning
from cloister.plugins.populations.files import Files
from cloister.rows.options import Reading
from cloister.rows.workers.engine import Engine
from tests.rows.workers.engine_rows import NAMES, Halves, answers
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore::cloister.core.errors.WorkerWarning")]


def trapped(folder: Path, deaths: int) -> Halves:
    """A bucketing that ends as many workers."""
    traps = folder / "traps"
    traps.mkdir()
    for i in range(deaths):
        (traps / str(i)).touch()
    return Halves(traps=str(traps))


def _noted(part: int, folder: str) -> int:
    """In a worker: a part that is noted when it is begun, and whose worker is killed if there is a trap."""
    with open(os.path.join(folder, "begun"), "a") as begun:
        begun.write(f"{part}\n")
    time.sleep(0.02)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, f"trap {part}"))
        os.kill(os.getpid(), signal.SIGKILL)
    return part


KILLED = """
import os, signal
from cloister.rows.workers.processes import pool_of, starting
from cloister.rows.options import Reading
pool = pool_of(1)
with starting():
    print(pool.submit(os.getpid).result(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_end_with_a_program_that_is_killed() -> None:
    """They hold its output: whoever reads it to its end would wait for ever."""
    done = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, timeout=PATIENCE, check=False)
    assert done.returncode == -signal.SIGKILL
    assert int(done.stdout) > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_death_in_every_round_is_said_and_costs_its_part_alone(
    name: str, shared: dict[str, Engine], tmp_path: Path
) -> None:
    """Under Dask also what its worker had found and nobody had fetched, which is little where parts take longer."""
    parts, alone = 20, name == "processes"
    said = (
        r"a worker ended early \((process \d+ ended by signal SIGKILL|Dask's at tls://127.0.0.1:\d+)\): its part alone"
    )
    for round in range(3):
        (tmp_path / "begun").write_text("")
        (tmp_path / f"trap {5 * round}").touch()
        with pytest.warns(WorkerWarning, match=said) as told:
            found = sorted(shared[name].run(partial(_noted, folder=str(tmp_path)), range(parts)))
        assert found == list(range(parts))
        assert len(told) == 1 or not alone
        begun = Counter(map(int, (tmp_path / "begun").read_text().split()))
        assert begun[5 * round] == 2
        assert begun.total() == parts + 1 or not alone


def test_a_dask_worker_killed_from_outside_changes_no_answer(shared: dict[str, Engine], many: list[Path]) -> None:
    """Also results that it had, and that nobody had fetched, are not lost."""
    engine: Any = shared["dask"]
    killed: list[int] = []

    def kill(_: int) -> None:
        if not killed:
            killed.extend(engine.client().run(os.getpid).values())
            os.kill(killed[0], signal.SIGKILL)

    expected = answers(Files(many, Reading(columns="*")))
    assert answers(Files(many, Reading(columns="*", progress=kill), engine=engine)) == expected
    assert killed


def test_a_pool_process_killed_between_rounds_changes_no_answer(shared: dict[str, Engine], many: list[Path]) -> None:
    engine: Any = shared["processes"]
    population = Files(many, Reading(columns="*"), engine=engine)
    expected = answers(population)
    for pid in engine.pids:
        os.kill(pid, signal.SIGKILL)
        assert answers(population) == expected


def test_a_part_that_kills_every_process_gives_no_answer(
    shared: dict[str, Engine], many: list[Path], tmp_path: Path
) -> None:
    told = (
        r"3 workers in a row ended on the same part: nothing was answered. "
        r"At last process \d+ ended by signal SIGKILL, with 12 of 12 parts left"
    )
    with pytest.raises(InvalidInput, match=told):
        answers(Files(many, Reading(columns="*"), engine=shared["processes"]), trapped(tmp_path, 24))


def test_a_part_that_kills_every_dask_worker_gives_no_answer(
    shared: dict[str, Engine], many: list[Path], tmp_path: Path
) -> None:
    engine: Any = shared["dask"]
    engine.client()
    scheduler = engine._cluster.scheduler
    before, scheduler.allowed_failures = scheduler.allowed_failures, 0
    try:
        with pytest.raises(
            InvalidInput,
            match=r"Dask workers in a row ended .*, at last t(cp|ls)://127\.0\.0\.1:\d+: nothing",
        ):
            answers(Files(many, Reading(columns="*"), engine=engine), trapped(tmp_path, 1))
    finally:
        scheduler.allowed_failures = before

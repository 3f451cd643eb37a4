"""A worker that ends early never changes an answer: it is worked out again, or there is none."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from cloister.core.errors import InvalidInput
from cloister.plugins.populations.files import Files
from cloister.rows.workers.dask_cluster import Dask
from cloister.rows.workers.engine import Engine, Processes
from tests.rows.workers.engine_rows import NAMES, Halves, answers

pytestmark = pytest.mark.thorough


@pytest.fixture
def traps(tmp_path: Path) -> Callable[[int], Halves]:
    folder = tmp_path / "traps"
    folder.mkdir()

    def set_up(deaths: int) -> Halves:
        for i in range(deaths):
            (folder / str(i)).touch()
        return Halves(traps=str(folder))

    return set_up


@pytest.mark.parametrize("name", NAMES)
def test_a_worker_killed_in_the_middle_of_a_part_changes_no_answer(
    name: str, shared: dict[str, Engine], many: list[Path], traps: Callable[[int], Halves], tmp_path: Path
) -> None:
    expected = answers(Files(many, "*"))
    assert answers(Files(many, "*", engine=shared[name]), traps(1)) == expected
    assert not os.listdir(tmp_path / "traps"), "somebody was killed"
    assert answers(Files(many, "*", engine=shared[name])) == expected, "the engine goes on"


def test_a_dask_worker_killed_from_outside_changes_no_answer(shared: dict[str, Engine], many: list[Path]) -> None:
    """Also results that it had, and that nobody had fetched, are not lost."""
    engine = shared["dask"]
    assert isinstance(engine, Dask)
    killed: list[int] = []

    def kill(_: int) -> None:
        if not killed:
            killed.extend(engine.client().run(os.getpid).values())
            os.kill(killed[0], signal.SIGKILL)

    expected = answers(Files(many, "*"))
    assert answers(Files(many, "*", engine=engine, progress=kill)) == expected
    assert killed


def test_a_pool_process_killed_between_rounds_changes_no_answer(shared: dict[str, Engine], many: list[Path]) -> None:
    engine = shared["processes"]
    assert isinstance(engine, Processes)
    population = Files(many, "*", engine=engine)
    expected = answers(population)
    os.kill(next(iter(engine._started()._processes)), signal.SIGKILL)
    assert answers(population) == expected


def test_a_pool_that_breaks_twice_gives_no_answer(
    shared: dict[str, Engine], many: list[Path], traps: Callable[[int], Halves]
) -> None:
    told = (  # one process, or both of them at the same time
        r"ended twice before .*: nothing was answered. "
        r"At last process \d+ ended by signal SIGKILL,( process \d+ ended by signal SIGKILL,)* with \d+ of \d+ "
    )
    with pytest.raises(InvalidInput, match=told):
        answers(Files(many, "*", engine=shared["processes"]), traps(24))


def test_a_part_that_kills_every_dask_worker_gives_no_answer(
    shared: dict[str, Engine], many: list[Path], traps: Callable[[int], Halves]
) -> None:
    engine = shared["dask"]
    assert isinstance(engine, Dask)
    engine.client()
    assert engine._cluster is not None
    scheduler = engine._cluster.scheduler
    before, scheduler.allowed_failures = scheduler.allowed_failures, 0
    try:
        with pytest.raises(
            InvalidInput,
            match=r"Dask workers in a row ended .*, at last t(cp|ls)://127\.0\.0\.1:\d+: nothing",
        ):
            answers(Files(many, "*", engine=engine), traps(1))
    finally:
        scheduler.allowed_failures = before

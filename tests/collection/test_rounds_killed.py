"""Killed anywhere, in processes of their own, and started again: nothing is lost, nothing is said or paid twice, no
round closes twice."""

from __future__ import annotations

import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cloister.collection.client import encode_files as collecting
from cloister.collection.client.encoder import Encoded, PlanEncoder, State
from cloister.collection.plan import durable_files
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.transcript import Transcript
from cloister.collection.server.aggregator import advance
from tests.collection.rounds_fakes import EPSILON, ROUNDS, N, advanced, answered, planned, up_to

DIED = 77
FORK = multiprocessing.get_context("fork" if "fork" in multiprocessing.get_all_start_methods() else None)


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    return planned()


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory, plan: CollectionPlan) -> list[Path]:
    """The folder at each round boundary: 0, 1, ... rounds closed, the open one answered by nobody."""
    whole = up_to(tmp_path_factory.mktemp("run"), plan, 0)
    found = list[Path]()
    for number in range(ROUNDS):
        found.append(tmp_path_factory.mktemp("stage") / str(number))
        shutil.copytree(whole, found[-1])
        answered(whole)
        advanced(whole)
    return found


Point = tuple[Any, str, bool]
"""A function, by its owner and name, and whether its first call is done when the process dies."""


def dying(what: Callable[[], Any], owner: Any, name: str, after: bool) -> int:
    """Run in another process that dies, as if by kill -9, at the first call of a function; its exit code."""

    def run() -> None:
        true = getattr(owner, name)

        def fatal(*arguments: Any, **options: Any) -> None:
            if after:
                true(*arguments, **options)
            os._exit(DIED)

        setattr(owner, name, fatal)
        what()
        os._exit(0)

    process = FORK.Process(target=run)
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def each_at_one_round(points: dict[str, Point]) -> Iterator[Any]:
    """Every point in one of the rounds, in turn; in all the others it is long."""
    for place, (name, point) in enumerate(points.items()):
        for number in range(ROUNDS):
            marks = () if number == place % ROUNDS else pytest.mark.long
            yield pytest.param(point, number, id=f"{name}-{number}", marks=marks)


USER_POINTS: dict[str, Point] = {
    "before the charge": (State, "charge", False),
    "charged, nothing drawn": (State, "charge", True),
    "inside the drawing": (PlanEncoder, "draw", True),
    "drawn, nothing written": (State, "fill", True),
    "before the file": (collecting, "_file", False),
    "in the middle of the file": (Encoded, "to_batches", True),
    "written, without its name": (os, "fsync", True),
    "written": (durable_files, "sync", False),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("point", "number"), list(each_at_one_round(USER_POINTS)))
def test_a_killed_answer_goes_on(tmp_path: Path, stages: list[Path], number: int, point: Any) -> None:
    folder = tmp_path / "run"
    shutil.copytree(stages[number], folder)
    reports = folder / "reports"
    before = set(reports.glob("part-*"))
    assert dying(lambda: answered(folder), *point) == DIED
    sent = [path.read_bytes() for path in set(reports.glob("part-*")) - before]
    path, count = answered(folder)
    assert path is not None
    assert count == N
    assert all(one == path.read_bytes() for one in sent), "two different reports of one round left"
    state = State(folder / "mine.state")
    assert {state.spent(user) for user in range(0, N, 100)} == {EPSILON}
    done = advanced(folder)
    assert done.intake.accepted == N
    assert done.transcript.index == number + 1


SERVER_POINTS: dict[str, Point] = {
    "before it counts": (Transcript, "record", False),
    "counted, nothing written": (Transcript, "publish", False),
    "in the middle of the file": (os, "fsync", False),
    "written, without its name": (os, "link", False),
    "published": (os, "link", True),
    "published, without the next question told": (durable_files, "sync", False),
    "all done, nothing said": (Transcript, "publish", True),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("point", "number"), list(each_at_one_round(SERVER_POINTS)))
def test_a_killed_server_goes_on(tmp_path: Path, stages: list[Path], number: int, point: Any) -> None:
    folder, quiet = tmp_path / "run", tmp_path / "quiet"
    shutil.copytree(stages[number], folder)
    answered(folder)
    shutil.copytree(folder, quiet)
    advanced(quiet)
    assert dying(lambda: advanced(folder), *point) == DIED
    assert Transcript.read(folder / "plan").index in (number, number + 1)
    done = advanced(folder, only=number)
    for round in range(1, number + 2):
        name = f"round-{round}.json"
        assert (folder / "plan" / name).read_bytes() == (quiet / "plan" / name).read_bytes()
    assert done.transcript.index == number + 1
    if number + 1 == ROUNDS:
        assert done.result is not None
        other = advance(quiet / "plan").result
        assert other is not None
        assert done.result.as_dict() == other.as_dict()

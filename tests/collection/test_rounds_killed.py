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
from cloister.collection.client.encoder import Encoded, PlanEncoder, State, transcript_of
from cloister.collection.plan import canonical_json as sealed
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


def dying(what: Callable[[], Any], owner: Any, name: str, call: int = 1, after: bool = False) -> int:
    """Run in another process that dies, as if by kill -9, at the given call of a function; its exit code."""

    def run() -> None:
        true, calls = getattr(owner, name), [0]

        def fatal(*arguments: Any, **options: Any) -> Any:
            calls[0] += 1
            if calls[0] == call and not after:
                os._exit(DIED)
            done = true(*arguments, **options)
            if calls[0] == call:
                os._exit(DIED)
            return done

        setattr(owner, name, fatal)
        what()
        os._exit(0)

    process = FORK.Process(target=run)
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def each_at_one_round(points: dict[str, tuple[Any, str, int, bool]]) -> Iterator[Any]:
    """Every point in one of the rounds, in turn; in all the others it is long."""
    for place, (name, point) in enumerate(points.items()):
        for number in range(ROUNDS):
            marks = () if number == place % ROUNDS else pytest.mark.long
            yield pytest.param(point, number, id=f"{name}-{number}", marks=marks)


USER_POINTS: dict[str, tuple[Any, str, int, bool]] = {
    "before the charge": (State, "charge", 1, False),
    "charged, nothing drawn": (State, "charge", 1, True),
    "inside the drawing": (PlanEncoder, "draw", 1, True),
    "drawn, nothing written": (State, "fill", 1, True),
    "before the file": (collecting, "_file", 1, False),
    "in the middle of the file": (Encoded, "in_batches", 1, True),
    "written, without its name": (os, "fsync", 1, True),
    "written": (sealed, "sync", 1, False),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("point", "number"), list(each_at_one_round(USER_POINTS)))
def test_a_killed_answer_goes_on(tmp_path: Path, stages: list[Path], number: int, point: Any) -> None:
    folder = tmp_path / "run"
    shutil.copytree(stages[number], folder)
    assert dying(lambda: answered(folder), *point) == DIED
    sent = fresh(folder)
    path, count = answered(folder)
    assert path is not None
    assert count == N
    again = path.read_bytes()
    assert all(one == again for one in sent), "two different reports of one round left"
    state = State(folder / "mine.state")
    assert {state.spent(user) for user in range(0, N, 100)} == {EPSILON}
    done = advanced(folder)
    assert done.intake.accepted == N
    assert done.transcript.index == number + 1


def fresh(folder: Path) -> list[bytes]:
    """Files of reports of the open round."""
    stamp = bytes.fromhex(transcript_of(folder / "plan").head)[:8]
    contents = [path.read_bytes() for path in (folder / "reports").glob("part-*")]
    return [content for content in contents if content[1:9] == stamp]


SERVER_POINTS: dict[str, tuple[Any, str, int, bool]] = {
    "before it counts": (Transcript, "record", 1, False),
    "counted, nothing written": (Transcript, "publish", 1, False),
    "in the middle of the file": (os, "fsync", 1, False),
    "written, without its name": (os, "link", 1, False),
    "published": (os, "link", 1, True),
    "published, without the next question told": (sealed, "sync", 1, False),
    "all done, nothing said": (Transcript, "publish", 1, True),
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
    else:
        assert done.transcript.round().index == number + 1

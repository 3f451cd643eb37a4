"""Reports that are counted in parts give what one process finds, to the last bit, whatever the parts."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.intake import parts, validator
from cloister.collection.intake.validator import Intake
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server import reports
from cloister.collection.wire import batches
from cloister.core.errors import InvalidInput, Refused
from cloister.rows.workers.dask_cluster import Dask
from cloister.rows.workers.engine import Engine, Processes
from tests.collection.server.collected import KINDS, Apart, encoded, gathered, same, small_plan, written

N = 500


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    return small_plan("tallied", N)


def contest(plan: CollectionPlan, folder: Path, seed: int) -> Path:
    """Files in which numbers stand once, twice and often, with other and with impossible answers, one of them in
    floods."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    for name in "abcd":
        some = encoded(plan, rng.choice(N, int(rng.integers(10, N)), replace=False), seed=int(rng.integers(1000)))
        users, answers = some.users.copy(), some.answers.copy()
        rng.shuffle(users[: len(users) // 3])
        users[:: int(rng.integers(5, 50))] = N + 5
        answers[:: int(rng.integers(5, 50))] = 255
        twice = rng.integers(0, len(users), len(users) + 100)
        users[1], answers[1], twice[::4] = 0, 255, 1
        data = [some.form.batch(users[s], answers[s]) for s in np.array_split(twice, int(rng.integers(1, 40)))]
        if rng.integers(2):
            data[0] = data[0][:-1] + bytes([data[0][-1] ^ 1])
        (folder / f"{name}.reports").write_bytes(b"".join(data) + data[-1][: int(rng.integers(len(data[-1])))])
    return folder


def said(intake: Intake) -> tuple[Any, ...]:
    """What is told without the files, of which another one may come first where numbers are contested."""
    return intake.accepted, intake.questions, intake.refused, intake.files, intake.unfinished


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (1, 2))])
def test_parts_of_any_size_give_what_one_pass_gives(
    kind: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where only so many lies of one number are looked at in one piece: pieces must not depend on the parts."""
    plan = small_plan(kind, N)
    folder = contest(plan, tmp_path / "reports", seed)
    for tries, piece, chunk in ((validator.TRIES, reports.PIECE, batches.CHUNK), (4, 10, 200)):
        monkeypatch.setattr(validator, "TRIES", tries)
        monkeypatch.setattr(reports, "PIECE", piece)
        monkeypatch.setattr(batches, "CHUNK", chunk)
        expected, intake = gathered(plan, folder)
        assert intake.refused["duplicate"] > 0
        for size in (1, 3000, 2**26):
            monkeypatch.setattr(parts, "PART", size)
            found, other = gathered(plan, folder, engine=Apart())
            assert same(found, expected)
            assert said(other) == said(intake)
    with pytest.raises(Refused, match=r"has reports|is one of the files"):
        gathered(plan, folder, engine=Apart(), strict=True)


class Changing(Apart):
    """Parts before which something happens to the files. Args: what, after (so many passes)."""

    def __init__(self, what: Callable[[], Any], after: int) -> None:
        self.what, self.left = what, after

    def run(self, fn: Any, some: Any) -> Iterator[Any]:
        yield from super().run(fn, some)
        self.left -= 1
        if not self.left:
            self.what()


@pytest.mark.parametrize(
    ("passes", "later"),
    [(1, [10]), (1, [11, 12]), (2, [11, 12])],
    ids=["fewer", "before the others count", "before the contested count"],
)
def test_files_that_hold_other_numbers_in_a_later_pass_are_no_result(
    passes: int, later: list[int], plan: CollectionPlan, tmp_path: Path
) -> None:
    """Also with as many reports, and numbers of the same sum: a user would count twice, or for nothing."""
    one = written(tmp_path / "a.reports", encoded(plan, [10, 13]))
    two = written(tmp_path / "b.reports", encoded(plan, [10, 11]))
    changing = Changing(lambda: written(one, encoded(plan, later)), passes)
    with pytest.raises(InvalidInput, match="changed while it was read"):
        gathered(plan, [one, two], engine=changing)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::cloister.core.errors.WorkerWarning")
@pytest.mark.parametrize("workers", [Processes, Dask])
def test_every_engine_gives_what_one_process_gives_and_a_worker_killed_changes_nothing(
    workers: Callable[[int], Engine], plan: CollectionPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART", 3000)
    folder, killed = contest(plan, tmp_path / "reports", 2), list[int]()
    expected, intake = gathered(plan, folder)

    def kill(_: int) -> None:
        if not killed:
            killed.extend(_workers(engine))
            os.kill(killed[0], signal.SIGKILL)

    with closing(workers(2)) as engine:
        for told in (None, kill):
            found, other = gathered(plan, folder, engine=engine, progress=told)
            assert same(found, expected)
            assert said(other) == said(intake)
    assert killed


def _workers(engine: Engine) -> list[int]:
    if isinstance(engine, Dask):
        return list(engine.client().run(os.getpid).values())
    assert isinstance(engine, Processes)
    return engine.pids

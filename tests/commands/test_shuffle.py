"""Plans of trust Shuffled and the programs: ``cloister plan``, ``encode``, ``shuffle`` and ``decode``, as people run
them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.collection.client.encoder import read
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.collection.server.aggregator import decode
from cloister.collection.shuffler.shuffler import shuffle
from cloister.collection.wire.answers import layout_of
from cloister.core.errors import InvalidInput, Refused
from tests.asking import asking
from tests.collection.shuffled_plans import WIRES, D, N, folder_of, sent, small_plan
from tests.in_process import ran, refused

WITH = " ".join(f"--with {slot}={name}" for slot, name in WIRES.items())


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    return small_plan()


def test_from_rows_to_centres(tmp_path: Path) -> None:
    rows = np.repeat([[0.6, 0, 0, 0, 0], [-0.6, 0, 0, 0, 0]], N // 2, axis=0)
    np.save(tmp_path / "mine.npy", rows + np.random.default_rng(0).normal(0, 0.02, (N, D)))
    shape = f"-k 2 --epsilon 1 --delta 1e-6 --rows {N} --bounds ball:1 --seed 1 --dimension {D} {WITH}"
    shown = ran(f"plan {shape} --out plan", tmp_path).stdout
    for said in ("epsilon = 1, delta = 1e-06, Shuffled trust", "900 people", "one message at most", "messages alone"):
        assert said in shown
    encode = "encode plan mine.npy --columns 0,1,2,3,4 --state mine.state --out"
    assert ran(f"{encode} reports", tmp_path).stdout.startswith("messages of 1,000 people under plan")
    ran(f"{encode} again", tmp_path)
    done = ran("shuffle plan reports again --out shuffled --json", tmp_path)
    found = json.loads(done.stdout)
    assert (found["people"], found["messages"], found["refused"]["duplicate"]) == (N, N, N)
    assert "refused 1,000 people who have sent messages already" in done.stderr
    assert "a plan is shuffled once" in refused("shuffle plan reports --out shuffled", tmp_path)
    ran("shuffle plan reports --out more", tmp_path)
    found = json.loads(ran("decode plan shuffled --json", tmp_path).stdout)
    assert found["details"]["reports"]["accepted"] == N
    assert np.shape(found["centers"]) == (2, D)
    assert "different shuffles" in refused("decode plan shuffled more", tmp_path)
    assert "run 'cloister shuffle' on it" in refused("decode plan reports", tmp_path)


def test_all_files_of_one_shuffle_or_none(
    plan: CollectionPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is missing, there twice, or damaged is found: nothing is lost or doubled between the shuffler and the
    server."""
    monkeypatch.setattr("cloister.collection.shuffler.release.GROUP", 64)
    monkeypatch.setattr("cloister.collection.shuffler.release.FILE", 256)
    shuffle(plan, folder_of(tmp_path / "reports", sent(plan)), tmp_path / "out")
    files = sorted((tmp_path / "out").iterdir())
    assert len(files) == 4
    assert decode(plan, files[::-1]).intake.accepted == N
    with pytest.raises(InvalidInput, match="1 of the 4 files of the shuffle are missing"):
        decode(plan, files[1:])
    whole = files[2].read_bytes()
    (tmp_path / "copy.messages").write_bytes(whole)
    with pytest.raises(InvalidInput, match="are the same file"):
        decode(plan, [*files, tmp_path / "copy.messages"])
    with pytest.raises(InvalidInput, match="of another plan"):
        decode(small_plan(seed=2), files)
    shuffle(plan, tmp_path / "reports", tmp_path / "again")
    another = sorted((tmp_path / "again").iterdir())[2].read_bytes()

    def swapped(count: int) -> None:
        files[2].write_bytes(another)

    with pytest.raises(InvalidInput, match="changed while it was read"):
        decode(plan, files, progress=swapped)
    files[2].write_bytes(whole[:-1])
    with pytest.raises(InvalidInput, match="damaged or cut short"):
        decode(plan, files)


def test_an_impossible_message_is_refused_alone(plan: CollectionPlan, tmp_path: Path) -> None:
    """The server finds those among all, and counts the others."""
    theirs, answers = sent(plan), sent(plan).answers.copy()
    some = np.flatnonzero((answers[:, :2] == 0).all(axis=1))[:3]
    body = layout_of(plan.round()).bodies[0]
    answers[some, body.start + body.bytes - 1] = 255
    shuffle(plan, folder_of(tmp_path / "reports", theirs, answers), tmp_path / "out")
    done = decode(plan, tmp_path / "out")
    assert done.intake.accepted == N - 3
    assert done.intake.refused["impossible"] == 3
    with pytest.raises(Refused, match="that no encoder of this plan sends"):
        decode(plan, tmp_path / "out", strict=True)


def split_plan() -> CollectionPlan:
    request = asking(
        k=2,
        method="one-round",
        epsilon=1.0,
        delta=1e-6,
        bounds="ball:1",
        rows=100,
        seed=1,
        components={"counts": "split-and-mix-counts", "sums": "split-and-mix"},
        options={"grid_up_to": 0, "tree.cells": 2},
    )
    return publish(request, dimension=2)


def test_shares_of_a_sum_come_back_together(tmp_path: Path) -> None:
    plan = split_plan()
    assert plan.crowd is not None
    assert plan.crowd.epsilon_without_shuffler == np.inf
    theirs = sent(plan, people=100)
    done = shuffle(plan, folder_of(tmp_path / "reports", theirs), tmp_path / "out")
    assert (done.people, done.messages) == (100, 100 * plan.crowd.messages)
    assert decode(plan, tmp_path / "out").intake.accepted == 100
    # no answer to the first question: the person is refused, and nobody else
    answers, slot = theirs.answers.copy(), layout_of(plan.round()).slots[0]
    answers[7, slot.place] = 0
    answers[7, slot.start : slot.start + 2] = 255
    again = folder_of(tmp_path / "short", theirs, answers)
    done = shuffle(plan, again, tmp_path / "less")
    assert (done.people, done.intake.refused["not as asked"]) == (99, 1)
    assert decode(plan, tmp_path / "less").intake.accepted == 99


def test_a_plan_asks_for_a_bounded_number_of_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloister.collection.plan.crowd.MAX_MESSAGES", 20)
    with pytest.raises(
        InvalidInput, match=r"every person would send .* messages of .* bytes in all, but a plan asks for at most 20"
    ):
        split_plan()


@pytest.mark.parametrize("facts", [{"min_honest_users": 2}, {"epsilon_without_shuffler": 0.5}, {"bytes": 1}, None])
def test_a_plan_that_says_something_else_of_its_crowd_is_refused(
    plan: CollectionPlan, tmp_path: Path, facts: dict[str, Any] | None
) -> None:
    assert plan.crowd is not None
    crowd = attrs.evolve(plan.crowd, **facts) if facts else None
    attrs.evolve(plan, crowd=crowd).write(tmp_path / "plan", "")
    with pytest.raises(Refused):
        read(tmp_path / "plan").round()

"""People who chose their user numbers by what these are asked: the server says so and releases nothing, unless it is
told to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.collection.client.encoder import Encoded, PlanEncoder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.collection.plan.transcript import Transcript
from cloister.collection.server.aggregator import advance, decode
from cloister.collection.shuffler.shuffler import shuffle
from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.messages import ReleaseForm, records_of
from cloister.core.errors import Refused
from cloister.run.request import Request
from tests.collection.server.collected import written
from tests.collection.shuffled_plans import folder_of, released, sent, small_plan
from tests.in_process import cloister

D, N = 4, 4000
DOUBT = "are planned: so far off comes by chance in less than one of 1,000,000,000 rounds"


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    return publish(Request(k=3, method="one-round", epsilon=4.0, bounds="ball:1", rows=N, seed=1), dimension=D)


def made(plan: CollectionPlan, users: np.ndarray) -> Encoded:
    return PlanEncoder(plan).encode(np.random.default_rng(0).normal(0, 0.3, (len(users), D)), users)


def counted(plan: CollectionPlan, users: np.ndarray) -> np.ndarray:
    round = plan.round()
    asked = zip(layout_of(round).who(users), round.parts, strict=True)
    return np.logical_or.reduce([who for who, part in asked if part.vectors is None])


@pytest.fixture
def folder(tmp_path: Path, plan: CollectionPlan) -> Path:
    """A plan; the reports of 2,000 people, and those of as many of whom 150 were free to choose their numbers."""
    plan.write(tmp_path / "plan", "")
    everybody = np.arange(N, dtype=np.uint64)
    honest, free = everybody[: N // 2], everybody[N // 2 :]
    liars = free[counted(plan, free)][:150]
    assert len(liars) == 150
    for name, users in (("blind", honest), ("chosen", np.concatenate([honest[150:], liars]))):
        (tmp_path / name).mkdir()
        written(tmp_path / name / "part.reports", made(plan, users))
    return tmp_path


def test_decode_releases_nothing_of_people_who_chose_their_numbers(folder: Path, plan: CollectionPlan) -> None:
    with pytest.raises(Refused, match=f"{DOUBT}.*: nothing was released.*accept-shares"):
        decode(plan, folder / "chosen")
    done = decode(plan, folder / "blind")
    assert (done.intake.doubts, "doubts" in done.result.details["reports"]) == ([], False)


def test_decode_says_what_it_doubts_where_it_is_told_to_go_on(folder: Path, plan: CollectionPlan) -> None:
    done = decode(plan, folder / "chosen", accept_shares=True)
    assert done.intake.accepted == N // 2
    assert done.intake.doubts == done.result.details["reports"]["doubts"]
    assert done.intake.lines() == [f"WARNING: {doubt}" for doubt in done.intake.doubts]
    assert any("answers, where " in line for line in done.intake.lines())


def test_advance_publishes_nothing_of_people_who_chose_their_numbers(folder: Path) -> None:
    with pytest.raises(Refused, match=DOUBT):
        advance(folder / "plan", folder / "chosen")
    assert [path.name for path in (folder / "plan").iterdir() if path.name.startswith("round")] == []
    done = advance(folder / "plan", folder / "chosen", accept_shares=True)
    (closed,) = Transcript.read(folder / "plan").closed
    assert closed.reports["doubts"] == done.intake.doubts != []


def test_the_programs_say_it_in_one_line(folder: Path) -> None:
    for command in (("decode", "plan", "chosen"), ("advance", "plan", "--reports", "chosen")):
        done = cloister(*command, folder=folder)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        done = cloister(*command, "--accept-shares", "--json", folder=folder)
        assert done.returncode == 0
        assert "WARNING: " in done.stderr
        assert json.loads(done.stdout)


def test_messages_that_leave_a_question_out_are_doubted_after_the_shuffle(tmp_path: Path) -> None:
    """Under Shuffled trust everybody draws her own number: who answers what is all that the server can count."""
    plan = small_plan(options={"counts.honest": 0.5, "sums.honest": 0.5})
    least: Any = min(range(len(plan.round().parts)), key=lambda j: plan.round().parts[j].fraction)
    shuffle(plan, folder_of(tmp_path / "reports", sent(plan)), tmp_path / "shuffled")
    assert decode(plan, tmp_path / "shuffled").intake.doubts == []
    (path,) = (tmp_path / "shuffled").iterdir()
    form, some = ReleaseForm(plan.hash, plan.round()), released(tmp_path / "shuffled", plan)
    left = records_of(some.of(some.questions != least))
    with path.open("rb") as file:
        place = attrs.evolve(form.place(file), messages=len(left))
    path.write_bytes(form.begin(place) + form.batch(place, 0, left))
    with pytest.raises(Refused, match=f"question {least + 1} has 0 of .*{DOUBT}"):
        decode(plan, tmp_path / "shuffled")

"""People who chose their user numbers by what these are asked, and liars whose reports no encoder explains: the server
says so and releases nothing, unless it is told to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.transcript import Transcript
from cloister.collection.server.aggregator import decode
from cloister.collection.shuffler.shuffler import shuffle
from cloister.collection.wire.answers import layout_of
from cloister.core.errors import Refused
from tests.collection.plans import local_plan
from tests.collection.server.collected import written
from tests.collection.shuffled_plans import sent, small_plan
from tests.in_process import ran, refused

D, N = 4, 4000
DOUBT = "are planned: chance deviates so far in less than one of 1,000,000,000 rounds"


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    return local_plan(D, epsilon=4.0, rows=N)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, plan: CollectionPlan) -> Path:
    """The reports of 2,000 people, and those of as many of whom 150 were free to choose their numbers."""
    folder, (honest, free) = tmp_path_factory.mktemp("people"), np.split(np.arange(N, dtype=np.uint64), 2)
    asked = zip(layout_of(plan.round()).asked_masks(free), plan.round().parts, strict=True)
    liars = free[np.any([who for who, part in asked if part.vectors is None], axis=0)][:150]
    rows = np.random.default_rng(0).normal(0, 0.3, (N // 2, D))
    for name, users in (("blind", honest), ("chosen", np.concatenate([honest[150:], liars]))):
        (folder / name).mkdir()
        written(folder / name / "part.reports", PlanEncoder(plan).encode(rows, users))
    return folder


@pytest.fixture
def folder(tmp_path: Path, plan: CollectionPlan, reports: Path) -> Path:
    plan.write(tmp_path / "plan", "")
    return Path(shutil.copytree(reports, tmp_path, dirs_exist_ok=True))


def test_decode_releases_nothing_of_people_who_chose_their_numbers(folder: Path, plan: CollectionPlan) -> None:
    with pytest.raises(Refused, match=f"{DOUBT}.*: nothing was released.*accept-shares"):
        decode(plan, folder / "chosen")
    done = decode(plan, folder / "blind")
    assert (done.intake.doubts, "doubts" in done.result.details["reports"]) == ([], False)
    told = decode(plan, folder / "chosen", accept_shares=True)
    assert told.intake.accepted == N // 2
    assert told.intake.doubts == told.result.details["reports"]["doubts"]
    assert told.intake.lines() == [f"WARNING: {doubt}" for doubt in told.intake.doubts]


def test_the_programs_release_and_publish_nothing_of_them_and_say_so_in_one_line(folder: Path) -> None:
    for line in ("decode plan chosen", "advance plan --reports chosen"):
        assert refused(line, folder).count("\n") == 1
        assert not list((folder / "plan").glob("round*"))
        done = ran(f"{line} --accept-shares --json", folder)
        assert "WARNING: " in done.stderr
        assert json.loads(done.stdout)
    (closed,) = Transcript.read(folder / "plan").closed
    assert DOUBT in closed.reports["doubts"][0]


def test_messages_that_leave_a_question_out_are_doubted_after_the_shuffle(tmp_path: Path) -> None:
    """Under Shuffled trust everybody draws her own number: who answers what is all that the server can count."""
    plan = small_plan(rows=400, options={"counts.honest": 0.5, "sums.honest": 0.5})
    least: Any = min(range(len(plan.round().parts)), key=lambda j: plan.round().parts[j].fraction)
    theirs = sent(plan)
    questions, senders = theirs.messages.questions, theirs.messages.senders
    assert senders is not None
    for name, who in (("all", senders), ("left", senders[questions != least])):
        path = written(tmp_path / name / "a.reports", theirs, np.isin(theirs.users, who))
        shuffle(plan, path, tmp_path / f"{name}-out")
    assert decode(plan, tmp_path / "all-out").intake.doubts == []
    with pytest.raises(Refused, match=f"question {least + 1} has 0 of .*{DOUBT}"):
        decode(plan, tmp_path / "left-out")


UNLIKELY = "whatever the rows are: chance deviates so far in less than one of 1,000,000,000 rounds"


@pytest.fixture
def lied(folder: Path, plan: CollectionPlan) -> Path:
    """The reports of 2,000 people, of whom half send one codeword where they are asked for sums."""
    rows = np.full((N // 2, D), 0.4)
    made, layout = PlanEncoder(plan).encode(rows, range(N // 2)), layout_of(plan.round())
    answers = made.answers.copy()
    for part, body, asked in zip(plan.round().parts, layout.bodies, layout.asked_masks(made.users), strict=True):
        if part.vectors is not None:
            answers[np.flatnonzero(asked)[::2], body.start : body.start + body.bytes] = 7
    return written(folder / "lied.reports", made, answers=answers)


def test_decode_releases_nothing_of_liars_whose_law_gives_them_away(lied: Path, plan: CollectionPlan) -> None:
    """Withstanding them does not stand for accepting them."""
    for robust in (None, 0.01):
        with pytest.raises(Refused, match=f"codeword 7: .*{UNLIKELY}.*: nothing was released.*accept-shares"):
            decode(plan, lied, robust=robust)
    intake = decode(plan, lied, robust=0.01, accept_shares=True).intake
    assert (intake.withstands, any(UNLIKELY in said for said in intake.doubts)) == (0.01, True)

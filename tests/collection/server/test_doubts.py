"""People who chose their user numbers by what these are asked, and liars whose reports no encoder explains: the server
says so and releases nothing, unless it is told to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.transcript import Transcript
from cloister.collection.server.aggregator import decode
from cloister.collection.shuffler.shuffler import shuffle
from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.messages import ReleaseForm, records_of
from cloister.core.errors import Refused
from cloister.core.randomness import NoiseRng
from cloister.plugins.oracles.local.randomised_response import packed
from cloister.plugins.oracles.local.reports import Reports
from tests.collection.plans import local_plan
from tests.collection.server.collected import of_reports, written
from tests.collection.shuffled_plans import folder_of, released, sent, small_plan
from tests.in_process import cloister

D, N = 4, 4000
DOUBT = "are planned: so far off comes by chance in less than one of 1,000,000,000 rounds"


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    return local_plan(D, epsilon=4.0, rows=N)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, plan: CollectionPlan) -> Path:
    """The reports of 2,000 people, and those of as many of whom 150 were free to choose their numbers."""
    folder, (honest, free) = tmp_path_factory.mktemp("people"), np.split(np.arange(N, dtype=np.uint64), 2)
    asked = zip(layout_of(plan.round()).who(free), plan.round().parts, strict=True)
    liars = free[np.logical_or.reduce([who for who, part in asked if part.vectors is None])][:150]
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
    assert any("answers, where " in line for line in told.intake.lines())


def test_the_programs_release_and_publish_nothing_of_them_and_say_so_in_one_line(folder: Path) -> None:
    for command in (("decode", "plan", "chosen"), ("advance", "plan", "--reports", "chosen")):
        done = cloister(*command, folder=folder)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert not list((folder / "plan").glob("round*"))
        done = cloister(*command, "--accept-shares", "--json", folder=folder)
        assert done.returncode == 0
        assert "WARNING: " in done.stderr
        assert json.loads(done.stdout)
    (closed,) = Transcript.read(folder / "plan").closed
    assert DOUBT in closed.reports["doubts"][0]


def test_messages_that_leave_a_question_out_are_doubted_after_the_shuffle(tmp_path: Path) -> None:
    """Under Shuffled trust everybody draws her own number: who answers what is all that the server can count."""
    plan = small_plan(rows=400, options={"counts.honest": 0.5, "sums.honest": 0.5})
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


LIARS = 12
UNLIKELY = "whatever the rows are: so far off comes by chance in less than one of 1,000,000,000 rounds"


@pytest.fixture(scope="module")
def unary() -> CollectionPlan:
    options = {"components": {"counts": "optimised-unary"}, "options": {"grid.side": 16}}
    return local_plan(2, bounds="-1:1", rows=N, **options)


@pytest.fixture(scope="module")
def liars(tmp_path_factory: pytest.TempPathFactory, unary: CollectionPlan) -> Path:
    """The reports of N people of whom 12 send the largest sets that are taken, or none do."""
    folder, users, g = tmp_path_factory.mktemp("liars"), np.arange(N, dtype=np.uint64), np.random.default_rng(0)
    rows = np.array([[-0.55, -0.55], [0.55, -0.55], [-0.55, 0.55]])[g.integers(0, 3, N)] + g.normal(0, 0.02, (N, 2))
    made = PlanEncoder(unary, noise=NoiseRng.for_tests(1)).encode(rows, users).reports[0]
    (level,) = unary.round().parts[0].channel.asked.levels
    lied = made.answers.copy()
    lied[:LIARS] = packed(np.arange(level.size) < np.full((LIARS, 1), level.most))
    for name, answers in (("honest", made.answers), ("lied", lied)):
        (folder / name).mkdir()
        for number, half in enumerate((slice(0, N // 2), slice(N // 2, N))):
            some = Reports(users[half], answers[half], made.question)
            of_reports(folder / name / f"{number}.reports", unary.round(), unary.hash, [some], users[half])
    return folder


@pytest.mark.parametrize(
    "how", [{}, pytest.param({"engine": "processes", "workers": 2}, marks=pytest.mark.thorough, id="processes")]
)
def test_decode_releases_nothing_of_liars_whose_law_gives_them_away(
    liars: Path, unary: CollectionPlan, how: dict[str, Any]
) -> None:
    with pytest.raises(Refused, match=f"buckets or more at once: .*{UNLIKELY}.*: nothing was released.*accept-shares"):
        decode(unary, liars / "lied", **how)
    assert decode(unary, liars / "honest", **how).intake.doubts == []


def test_withstanding_liars_does_not_stand_for_accepting_them(liars: Path, unary: CollectionPlan) -> None:
    with pytest.raises(Refused, match=UNLIKELY):
        decode(unary, liars / "lied", robust=0.01)
    intake = decode(unary, liars / "lied", robust=0.01, accept_shares=True).intake
    assert (intake.withstands, any(UNLIKELY in said for said in intake.doubts)) == (0.01, True)

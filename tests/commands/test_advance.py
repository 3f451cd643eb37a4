"""``cloister plan``, ``answer``, ``advance`` and ``rounds``, run as people run them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cloister.collection.plan.plan import CollectionPlan
from cloister.run.result import Result
from tests.collection.rounds_fakes import ROUNDS, N, planned, prepared
from tests.in_process import ran, refused

ANSWER = "answer plan mine.npy --state mine.state --out reports"
ADVANCE = "advance plan --reports reports"


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    return planned()


@pytest.fixture
def folder(tmp_path: Path, plan: CollectionPlan) -> Path:
    return prepared(tmp_path, plan)


def test_from_rows_to_centres_in_rounds(tmp_path: Path, plan: CollectionPlan) -> None:
    prepared(tmp_path, plan)
    shutil.rmtree(tmp_path / "plan")
    done = ran(
        f"plan -k 3 --epsilon 9 --rows {N} --bounds=-1:1 --dimension 2 --method su-lloyd --set rounds={ROUNDS} "
        "--with counts=optimised-local-hashing --with sums=hadamard-vector --out plan",
        tmp_path,
    )
    together = f"All {ROUNDS} rounds together cost a person who answers each of them epsilon = 9 at delta = 0"
    assert together in done.stdout
    for number in range(1, ROUNDS + 1):
        text = ran(ANSWER, tmp_path).stdout
        assert text.startswith(f"{N} reports in round {number} of {ROUNDS} of plan ")
        assert "which costs each person epsilon = 9 over all rounds" in text
        text = ran(f"{ADVANCE} --out result.json", tmp_path).stdout
        assert text.startswith(f"round {number} of {ROUNDS} is closed with {N} reports\n")
        assert (f"round {number + 1} of {ROUNDS} is open" in text) == (number < ROUNDS)
        assert (tmp_path / "result.json").exists() == (number == ROUNDS)
    assert "saved to result.json" in text
    assert Result.load(tmp_path / "result.json").centers.shape == (3, 2)
    said = f"cloister: all {ROUNDS} rounds of this plan are closed: no reports are needed any more\n"
    assert refused(ANSWER, tmp_path) == said


def test_json_for_programs_and_a_closed_round_stays_closed(folder: Path, plan: CollectionPlan) -> None:
    said = json.loads(ran(f"{ANSWER} --json", folder).stdout)
    assert (said["plan"], said["round"], said["rounds"], said["reports"]) == (plan.hash, 1, ROUNDS, N)
    after = json.loads(ran(f"{ADVANCE} --round 1 --json", folder).stdout)
    assert (after["open"], after["result"]) == (2, None)
    standing = json.loads(ran("rounds plan --json", folder).stdout)
    assert standing == {name: value for name, value in after.items() if name != "result"}
    found = [(one["state"], one["reports"]) for one in standing["rounds"]]
    assert found == [("closed", N), ("open", 0), ("to come", 0)]
    assert ran(f"{ADVANCE} --round 1", folder).stdout == "round 2 of 3 is open: publish plan as it is now\n"
    assert refused(f"{ADVANCE} --round 3", folder) == "cloister: round 3 is not open: the open one is 2\n"

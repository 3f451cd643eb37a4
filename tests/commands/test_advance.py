"""``cloister plan``, ``answer``, ``advance`` and ``rounds``, run as people run them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cloister.collection.plan.plan import CollectionPlan
from cloister.run.result import Result
from tests import in_process
from tests.collection.rounds_fakes import ROUNDS, N, lied, planned, prepared

ANSWER = ("answer", "plan", "mine.npy", "--state", "mine.state", "--out", "reports")
ADVANCE = ("advance", "plan", "--reports", "reports")


def cloister(folder: Path, *arguments: Any) -> tuple[int, str, str]:
    """Exit code and both outputs, in this process."""
    done = in_process.cloister(*arguments, folder=folder)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    return planned()


@pytest.fixture
def folder(tmp_path: Path, plan: CollectionPlan) -> Path:
    return prepared(tmp_path, plan)


def test_from_rows_to_centres_in_rounds(tmp_path: Path, plan: CollectionPlan) -> None:
    prepared(tmp_path, plan)
    shutil.rmtree(tmp_path / "plan")
    code, text, _ = cloister(
        tmp_path,
        "plan",
        "-k",
        3,
        "--epsilon",
        9,
        "--rows",
        N,
        "--bounds",
        "-1:1",
        "--dimension",
        2,
        "--method",
        "su-lloyd",
        "--with",
        "counts=optimised-local-hashing",
        "--with",
        "sums=hadamard-vector",
        "--set",
        f"rounds={ROUNDS}",
        "--out",
        "plan",
    )
    assert code == 0
    assert f"All {ROUNDS} rounds together cost a person who answers each of them epsilon = 9 at delta = 0" in text
    for number in range(1, ROUNDS + 1):
        code, text, _ = cloister(tmp_path, *ANSWER)
        assert code == 0
        assert text.startswith(f"{N} reports in round {number} of {ROUNDS} of plan ")
        assert "which costs each person epsilon = 9 over all rounds" in text
        code, text, _ = cloister(tmp_path, *ADVANCE, "--out", "result.json")
        assert code == 0
        assert text.startswith(f"round {number} of {ROUNDS} is closed with {N} reports\n")
        assert (f"round {number + 1} of {ROUNDS} is open" in text) == (number < ROUNDS)
        assert (tmp_path / "result.json").exists() == (number == ROUNDS)
    assert "saved to result.json" in text
    assert Result.load(tmp_path / "result.json").centers.shape == (3, 2)
    code, _, error = cloister(tmp_path, *ANSWER)
    assert code == 2
    assert error == f"cloister: all {ROUNDS} rounds of this plan are closed: nobody is asked any more\n"


def test_json_for_programs(folder: Path, plan: CollectionPlan) -> None:
    said = json.loads(cloister(folder, *ANSWER, "--json")[1])
    assert (said["plan"], said["round"], said["rounds"], said["reports"]) == (plan.hash, 1, ROUNDS, N)
    assert (folder / said["file"]).exists()
    after = json.loads(cloister(folder, *ADVANCE, "--json")[1])
    assert (after["open"], after["result"]) == (2, None)
    standing = json.loads(cloister(folder, "rounds", "plan", "--json")[1])
    assert standing == {name: value for name, value in after.items() if name != "result"}
    assert [one["state"] for one in standing["rounds"]] == ["closed", "open", "to come"]
    assert [one["reports"] for one in standing["rounds"]] == [N, 0, 0]
    assert standing["rounds"][0]["published"] == (folder / "plan" / "round-1.json").stat().st_size
    assert standing["rounds"][0]["users"] == N
    assert standing["bytes per user"] == pytest.approx(sum(one["bytes"] for one in standing["rounds"]))


def test_closing_a_closed_round_by_its_number_does_nothing(folder: Path) -> None:
    cloister(folder, *ANSWER)
    assert cloister(folder, *ADVANCE, "--round", 1)[0] == 0
    code, text, _ = cloister(folder, *ADVANCE, "--round", 1)
    assert (code, text) == (0, "round 2 of 3 is open: publish plan as it is now\n")
    code, _, error = cloister(folder, *ADVANCE, "--round", 3)
    assert (code, error) == (2, "cloister: round 3 is not open: the open one is 2\n")


def test_the_rounds_of_a_plan_of_one_are_shown_too(tmp_path: Path) -> None:
    wanted = ("plan", "-k", 3, "--epsilon", 2, "--rows", N, "--bounds", "-1:1", "--dimension", 2, "--out", "plan")
    assert cloister(tmp_path, *wanted)[0] == 0
    standing = json.loads(cloister(tmp_path, "rounds", "plan", "--json")[1])
    assert (standing["open"], len(standing["rounds"])) == (1, 1)


def test_refusals_are_one_line(folder: Path) -> None:
    cloister(folder, *ANSWER)
    cloister(folder, *ADVANCE)
    cloister(folder, *ANSWER)
    lied(folder, 1, 100.0)
    code, _, error = cloister(folder, *ANSWER)
    assert code == 2
    warned, refused = error.splitlines()
    assert warned.startswith("WARNING: a report of epsilon = 9 hides little")
    assert refused.startswith("cloister: the published answers are not those that were published before")
    code, _, error = cloister(folder, "encode", "plan", "mine.npy", "--out", "elsewhere")
    assert code == 2
    assert "this plan has 3 rounds: give a state that remembers" in error
    assert not (folder / "elsewhere").exists()
    code, _, error = cloister(folder, "advance", "plan")
    assert (code, error) == (2, "cloister: round 2 of 3 is open: give the reports that close it (--reports)\n")
    code, _, error = cloister(folder, "decode", "plan", "reports")
    assert (code, "cloister advance" in error) == (2, True)
    assert cloister(folder, "answer", "plan", "mine.npy", "--out", "reports")[0] == 2  # no state

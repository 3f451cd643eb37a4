"""What an earlier cloister wrote is read by this one: a plan, its reports, states, a plan of several rounds, a ledger.

The files in ``written_before`` were made by the version in which digests began to go by stable tags, before files
moved. A change that breaks one of these tests breaks what people have published: mend the change, never the files. A
class that moved or was renamed keeps its ``digest_tag`` (see ``core/digests.py``), a field that enters a digest its
name, and a format that must change is read in its old version too. After a release, files that it wrote are added
beside these.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.transcript import Transcript
from tests.in_process import cloister

pytest.importorskip("pyarrow")

import pyarrow.parquet as pq

RUN = "e37408a3122a"
FIT = [
    "-k",
    "2",
    "--epsilon",
    "1",
    "--delta",
    "1e-7",
    "--bounds",
    "-1:1",
    "--rows",
    "60",
    "--ledger",
    "budget.db",
    "--dataset",
    "people",
    "--method",
    "fastlloyd",
]


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """A copy of it all."""
    return Path(shutil.copytree(Path(__file__).with_name("written_before"), tmp_path / "before"))


def said(folder: Path, *arguments: str) -> Any:
    done = cloister(*arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    return done


def test_a_plan_asks_the_round_that_it_was_published_with(before: Path) -> None:
    plan = CollectionPlan.read(before / "plan")
    assert plan.round().digest() == plan.digest
    assert Transcript.read(before / "rounds").index == 1


def test_reports_are_decoded_to_the_same_centres(before: Path) -> None:
    said(before, "decode", "plan", "reports", "--out", "again.json")
    then, now = (json.loads((before / name).read_text())["result"] for name in ("centers.json", "again.json"))
    assert now["centers"] == then["centers"]
    assert now["details"].items() >= then["details"].items()  # later versions release more of the same answers


def test_a_state_gives_the_same_reports_and_keeps_its_lifetime(before: Path) -> None:
    said(before, "encode", "plan", "rows.csv", "--first", "0", "--out", "again", "--state", "one.state")
    then, now = (pq.read_table(next((before / name).iterdir())) for name in ("reports", "again"))
    assert now.equals(then)
    done = cloister(
        "encode",
        "plan",
        "rows.csv",
        "--first",
        "0",
        "--out",
        "more",
        "--state",
        "one.state",
        "--lifetime",
        "10",
        folder=before,
    )
    assert done.returncode == 2

"""``cloister compare``, run as a user runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from cloister.lab.generated import blobs
from tests.in_process import PROGRAM, ran, refused
from tests.waiting import until

COMPARE = "compare rows.npy -k 3 --epsilon 0.5,1 --methods fastlloyd,su-lloyd --runs 2 --workers 1 --bounds=-1:1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", blobs(500, 2, 3).numbers)
    return tmp_path


def test_it_prints_a_table_per_budget_and_says_that_it_is_not_private(folder: Path) -> None:
    done = ran(f"{COMPARE} --picture p.svg", folder)
    assert done.stdout.startswith("NOT private")
    for words in ("epsilon = 0.5 (NOT private)", "epsilon = 1 (NOT private)", "2 of 2", "k-means++ of scikit-learn"):
        assert words in done.stdout
    assert "NOT private" in (folder / "p.svg").read_text()
    assert sorted(path.name for path in folder.iterdir()) == ["p.svg", "rows.npy"]  # nothing that nobody asked for


def test_a_mixed_table_is_compared_on_the_columns_that_its_bounds_name(folder: Path) -> None:
    ran("data make hospital --rows 500 -o p.csv", folder)
    compare = "compare p.csv -k 3 --epsilon 1 --methods fastlloyd --runs 1 --workers 1"
    done = ran(f"{compare} --bounds p.bounds.toml", folder)
    assert "500 rows of 8 columns (age, systolic," in done.stdout
    assert "unit of distance each column's own" in done.stdout
    assert "which columns?" in refused(compare, folder)  # bounds that are read off the rows name nothing


def test_json_and_csv_hold_the_same_figures_and_what_is_in_the_file_is_not_run_again(folder: Path) -> None:
    data = json.loads(ran(f"{COMPARE} --out study.jsonl --json", folder).stdout)
    before = (folder / "study.jsonl").read_text()
    table = ran(f"{COMPARE} --out study.jsonl --csv", folder).stdout.splitlines()
    assert (folder / "study.jsonl").read_text() == before
    assert (data["private"], len(data["cells"])) == (False, 4)
    first = dict(zip(table[0].split(","), table[1].split(","), strict=True))
    assert float(first["nicv"]) == data["cells"][0]["nicv"]
    assert first["figures"].startswith("NOT private")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("blow", "out", "after"),
    [(signal.SIGKILL, "--out study.jsonl", 3), (signal.SIGINT, "", 3), (signal.SIGINT, "--out study.jsonl", 0)],
    ids=["killed", "interrupted", "interrupted while its workers start"],
)
def test_a_comparison_that_is_cut_off_goes_on_and_loses_no_run(folder: Path, blow: int, out: str, after: int) -> None:
    compare = "compare rows.npy -k 3 --epsilon 1 --methods fastlloyd --bounds=-1:1"
    asked = f"{compare} --runs 2000 --workers 2 {out}"
    with subprocess.Popen(
        [PROGRAM, *asked.split()],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        until(lambda: any(folder.glob("*.jsonl")) and _runs(folder) >= after)
        os.killpg(process.pid, blow)  # as a terminal does
        printed, err = process.communicate(timeout=60)
    assert printed == ""
    (study,) = folder.glob("*.jsonl")
    runs = _runs(folder)
    if blow == signal.SIGINT:
        assert process.returncode == 130
        assert err.count("\n") == 1
        assert f"finished runs are in {study.name}: go on with cloister compare rows.npy" in err
        assert f"--out {study.name}" in err
    again = ran(f"{compare} --runs 3 --workers 1 --out {study.name} --json", folder)
    assert len(json.loads(again.stdout)["cells"][0]["all_nicv"]) == 3
    assert _runs(folder) >= runs  # what was there is there still; with two workers a number may have been missing


def _runs(folder: Path) -> int:
    return sum(path.read_bytes().count(b'"run"') for path in folder.glob("*.jsonl"))

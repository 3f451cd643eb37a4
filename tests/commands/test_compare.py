"""``cloister compare``, run as a user runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cloister.lab.made import blobs
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
    assert "unit of distances each column's own" in done.stdout
    assert "which columns?" in refused(compare, folder)  # bounds that are read off the rows name nothing


def test_json_and_csv_hold_the_same_figures_and_the_same_file_goes_on_with_more_runs(folder: Path) -> None:
    data = json.loads(ran(f"{COMPARE} --out study.jsonl --json", folder).stdout)
    before = (folder / "study.jsonl").read_text()
    table = ran(f"{COMPARE} --out study.jsonl --csv", folder).stdout.splitlines()
    assert (folder / "study.jsonl").read_text() == before
    assert (data["private"], len(data["cells"])) == (False, 4)
    first = dict(zip(table[0].split(","), table[1].split(","), strict=True))
    assert float(first["nicv"]) == data["cells"][0]["nicv"]
    assert first["figures"].startswith("NOT private")
    ran(f"{COMPARE} --out study.jsonl --runs 3", folder)
    after = (folder / "study.jsonl").read_text()
    assert after.startswith(before)
    assert len(after.splitlines()) == len(before.splitlines()) + 4


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kept", "blow", "after"),
    [
        pytest.param(True, signal.SIGKILL, 3, id="with --out-killed"),
        pytest.param(False, signal.SIGINT, 3, id="without-interrupted"),
        pytest.param(True, signal.SIGINT, 0, id="interrupted while its workers start"),
        # the other signal, either way
        pytest.param(True, signal.SIGINT, 3, id="with --out-interrupted", marks=pytest.mark.long),
        pytest.param(False, signal.SIGKILL, 3, id="without-killed", marks=pytest.mark.long),
    ],
)
def test_a_comparison_that_is_cut_off_goes_on_and_loses_no_run(folder: Path, blow: int, kept: bool, after: int) -> None:
    compare = "compare rows.npy -k 3 --epsilon 1 --methods fastlloyd --bounds=-1:1"
    asked = f"{compare} --runs 2000 --workers 2 {'--out study.jsonl' if kept else ''}"
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
        out, err = process.communicate(timeout=60)
    assert out == ""
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


@pytest.mark.thorough
def test_a_full_disk_under_the_output_loses_no_run(folder: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [PROGRAM, *COMPARE.split()],
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "finished runs are in cloister-study-" in done.stderr
    assert _runs(folder) == 8


def test_the_module_of_the_command_loads_nothing_heavy() -> None:
    code = "import sys, cloister.commands.compare, cloister.commands.data; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

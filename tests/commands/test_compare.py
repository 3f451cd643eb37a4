"""``cloister compare``, run as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.lab.comparing import comparison
from cloister.lab.made import blobs
from tests.in_process import cloister, ran, refused

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


def test_a_comparison_that_is_cut_off_says_where_its_finished_runs_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, made = comparison.Bench.run, list[Any]()

    def interrupted(bench: Any, trial: Any) -> Any:
        made.append(trial)
        if len(made) == 4:
            raise KeyboardInterrupt
        return run(bench, trial)

    monkeypatch.setattr(comparison.Bench, "run", interrupted)
    done = cloister(*COMPARE.split(), folder=folder)
    (study,) = folder.glob("*.jsonl")
    assert (done.returncode, done.stdout) == (130, "")
    assert f"finished runs are in {study.name}: go on with cloister compare rows.npy" in done.stderr
    assert study.read_bytes().count(b'"run"') == 3

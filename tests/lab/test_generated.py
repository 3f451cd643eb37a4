"""Generated tables, and the files they are saved to."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cloister.lab.generated import blobs
from cloister.lab.hospital import BOUNDS, WARDS, hospital
from cloister.plugins.populations.files import Files
from cloister.rows.options import Reading
from tests.in_process import ran


def test_blobs_have_the_size_asked_and_a_label_each() -> None:
    made = blobs(1000, 4, 5, outliers=20)
    assert made.numbers.shape == (1020, 4)
    assert np.bincount(made.labels + 1).tolist() == [20, 200, 200, 200, 200, 200]
    assert np.abs(made.numbers).max() == 1
    assert np.bincount(blobs(1000, 2, 4, unequal=True).labels).tolist() == [100, 200, 300, 400]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_with_names_read_back_as_they_were_with_bounds_beside_them(tmp_path: Path, ending: str) -> None:
    ran(f"data make hospital --rows 300 -o p.{ending}", tmp_path)
    read = pd.read_csv if ending == "csv" else pd.read_parquet
    frame = read(tmp_path / f"p.{ending}")
    assert list(frame) == ["mrn", "visit", "ward", "emergency", *BOUNDS]
    assert frame["emergency"].dtype == bool
    assert frame["mrn"].is_unique
    assert set(frame["ward"]) <= set(WARDS)
    np.testing.assert_array_equal(frame[list(BOUNDS)].to_numpy(), hospital(300, 0).numbers)
    bounds = tomllib.loads((tmp_path / "p.bounds.toml").read_text())
    assert {name: tuple(ends) for name, ends in bounds.items()} == BOUNDS


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npy", ".npz"])
def test_pieces_make_one_file(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few rows are written at once, and each time it is said how many are."""
    made, told = blobs(1000, 2, 3), list[tuple[int, int]]()
    made.save(tmp_path / f"whole{ending}")
    monkeypatch.setattr("cloister.lab.tables.PIECE", 300)
    made.save(tmp_path / f"pieces{ending}", lambda done, rows: told.append((done, rows)))
    assert told == [(300, 1000), (600, 1000), (900, 1000), (1000, 1000)]
    read = [Files([tmp_path / f"{name}{ending}"], Reading(columns="*")).table() for name in ("whole", "pieces")]
    np.testing.assert_array_equal(*read)
    np.testing.assert_array_equal(read[0], made.numbers)

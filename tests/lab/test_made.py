"""Generated tables, and the files they are saved to."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cloister.core.errors import InvalidInput
from cloister.lab.made import BOUNDS, WARDS, blobs, hospital
from cloister.plugins.populations.files import Files
from tests.in_process import cloister


def test_blobs_have_the_size_asked_and_a_label_each() -> None:
    made = blobs(1000, 4, 5, outliers=20)
    assert made.numbers.shape == (1020, 4)
    assert np.bincount(made.labels + 1).tolist() == [20, 200, 200, 200, 200, 200]
    assert np.abs(made.numbers).max() == 1
    assert set(made.bounds.values()) == {(-1.0, 1.0)}
    assert np.bincount(blobs(1000, 2, 4, unequal=True).labels).tolist() == [100, 200, 300, 400]


def test_a_hospital_has_an_id_a_date_a_category_a_boolean_and_numbers_within_their_bounds() -> None:
    made = hospital(500, 3)
    frame = pd.DataFrame(dict(made.columns))
    assert frame["mrn"].is_unique
    assert pd.to_datetime(frame["visit"]).dt.year.unique().tolist() == [2025]
    assert set(frame["ward"]) <= set(WARDS)
    assert frame["emergency"].dtype == bool
    for name, (low, high) in BOUNDS.items():
        assert frame[name].between(low, high).all()
    assert set(frame["ward"][made.labels == 3]) == {"children"}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_with_names_read_back_as_they_were_with_bounds_beside_them(tmp_path: Path, ending: str) -> None:
    done = cloister("data", "make", "hospital", "--rows", "300", "-o", f"p.{ending}", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    read = pd.read_csv if ending == "csv" else pd.read_parquet
    frame = read(tmp_path / f"p.{ending}")
    assert list(frame) == ["mrn", "visit", "ward", "emergency", *BOUNDS]
    assert frame["emergency"].dtype == bool
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
    read = [Files([tmp_path / f"{name}{ending}"], "*").table() for name in ("whole", "pieces")]
    np.testing.assert_array_equal(*read)
    np.testing.assert_array_equal(read[0], made.numbers)


def test_a_disk_that_is_full_half_way_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloister.lab.tables.PIECE", 300)

    def full(done: int, rows: int) -> None:
        if done > 300:
            raise OSError(28, "No space left on device")

    with pytest.raises(InvalidInput, match="No space left"):
        blobs(1000, 2, 3).save(tmp_path / "rows.csv", full)
    assert list(tmp_path.iterdir()) == []

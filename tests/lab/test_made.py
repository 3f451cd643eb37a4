"""Generated tables, and the files they are saved to."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cloister.core.errors import InvalidInput
from cloister.lab.made import BOUNDS, WARDS, blobs, hospital, moons, patients
from cloister.metrics import nicv
from cloister.plugins.populations.files import Files
from tests.in_process import cloister


def test_blobs_have_the_size_asked_and_a_label_each() -> None:
    made = blobs(1000, 4, 5, outliers=20)
    assert made.numbers.shape == (1020, 4)
    assert np.bincount(made.labels + 1).tolist() == [20, 200, 200, 200, 200, 200]
    assert np.abs(made.numbers).max() == 1
    assert set(made.bounds.values()) == {(-1.0, 1.0)}
    assert np.bincount(blobs(1000, 2, 4, unequal=True).labels).tolist() == [100, 200, 300, 400]


def test_labels_are_those_of_the_rows() -> None:
    """The means of the labelled groups cost a small part of what one mean does; of shuffled labels, nearly all."""
    made = blobs(2000, 3, 4)
    rows = made.numbers

    def cost(labels: np.ndarray) -> float:
        return nicv(rows, [rows[labels == i].mean(axis=0) for i in range(4)]) / rows.var(axis=0).sum()

    assert cost(made.labels) < 0.2
    assert cost(np.random.default_rng(0).permutation(made.labels)) > 0.8


def test_a_table_depends_on_its_arguments_alone() -> None:
    for make in (
        lambda seed: blobs(100, 2, 3, seed=seed),
        lambda seed: moons(100, seed=seed),
        lambda seed: hospital(100, seed),
    ):
        one, again, other = make(1), make(1), make(2)
        assert np.array_equal(one.numbers, again.numbers)
        assert not np.array_equal(one.numbers, other.numbers)


def test_moons_lie_around_their_half_circles() -> None:
    made = moons(4000)
    first = made.numbers[made.labels == 0]
    assert np.linalg.norm(first, axis=1).mean() == pytest.approx(1, abs=0.02)
    assert np.bincount(made.labels).tolist() == [2000, 2000]


def test_a_hospital_has_an_id_a_date_a_category_a_boolean_and_numbers_within_their_bounds() -> None:
    made = hospital(500, 3)
    frame = pd.DataFrame(dict(made.columns))
    assert frame["mrn"].is_unique
    assert pd.to_datetime(frame["visit"]).dt.year.unique().tolist() == [2025]
    assert set(frame["ward"]) <= set(WARDS)
    assert frame["emergency"].dtype == bool
    for name, (low, high) in BOUNDS.items():
        assert frame[name].between(low, high).all()
    rows, groups = patients(500, 3)
    assert np.array_equal(made.labels, groups)
    np.testing.assert_allclose(made.numbers, rows, atol=0.05 + 1e-9)
    assert set(frame["ward"][groups == 3]) == {"children"}


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


def test_arrays_and_labels_are_saved(tmp_path: Path) -> None:
    arguments = ("data", "make", "blobs", "-k", "3", "--rows", "1e2", "--labels", "labels.npy")
    cloister(*arguments, "-o", "a.npy", folder=tmp_path)
    cloister(*arguments, "-o", "a.npz", folder=tmp_path)
    made = blobs(100, 2, 3)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), made.numbers)
    with np.load(tmp_path / "a.npz") as stored:
        np.testing.assert_array_equal(stored["X"], made.numbers)
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), made.labels)
    assert not (tmp_path / "a.bounds.toml").exists()


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

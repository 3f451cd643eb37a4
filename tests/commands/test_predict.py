"""``cloister predict``: labels of rows, in their order, whole or not at all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

from cloister import metrics
from cloister.rows.files import arrow
from cloister.run.result import Result
from tests.in_process import ran, refused

BASE = "-k 3 --epsilon 2 --rows 3000 --method hst-means --delta 1e-6"


def frame(n: int = 3000) -> pd.DataFrame:
    g = np.random.default_rng(0)
    ward = g.integers(0, 3, n)
    age = np.clip(30 + 20 * ward + g.normal(0, 3, n), 0, 120)
    return pd.DataFrame({"id": [f"p{i}" for i in range(n)], "age": age, "ward": np.array(["A", "B", "C"])[ward]})


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rows = tmp_path_factory.mktemp("fitted"), frame()
    rows.to_parquet(folder / "rows.parquet", row_group_size=700)
    rows.to_csv(folder / "rows.csv", index=False)
    ran(f"fit rows.parquet {BASE} --columns age --bounds 0:120 --category ward=A,B,C --out result.json", folder)
    return folder


@pytest.fixture
def folder(fitted: Path, tmp_path: Path) -> Path:
    """Rows and a result, in a folder of the test's own."""
    return shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)


def expected(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    result, rows = Result.load(folder / "result.json"), frame()
    points = np.column_stack([rows["age"], *(rows["ward"] == value for value in "ABC")]).astype(float)
    assert result.units is not None
    away = metrics.distances(points / result.units, result.centers / result.units)
    return away.argmin(axis=1), away.min(axis=1)


def predicted(folder: Path, line: str) -> Any:
    done = ran(f"predict result.json {line}", folder)
    assert "NOT private: labels were computed from the rows themselves" in done.stderr
    return done


@pytest.mark.parametrize(
    ("rows", "out"),
    [("rows.parquet", "labels.parquet"), ("rows.csv", "labels.csv"), ("rows.csv", "labels.npy")],
)
def test_labels_are_those_of_the_run_s_own_distances_in_the_rows_order(rows: str, out: str, folder: Path) -> None:
    with patch.object(arrow, "piece_rows", lambda dimension: 53):
        predicted(folder, f"{rows} -o {out}")
    path = folder / out
    if out.endswith("npy"):
        found = np.load(path)
        assert found.dtype == np.int32
    else:
        table = pd.read_parquet(path) if out.endswith("parquet") else pd.read_csv(path)
        assert list(table) == ["cluster"]
        found = table["cluster"].to_numpy()
    np.testing.assert_array_equal(found, expected(folder)[0])
    if out.endswith("parquet"):
        assert pyarrow.parquet.read_schema(path).field("cluster").type == "int32"


def test_columns_are_copied_along_and_distances_added(folder: Path) -> None:
    for rows in ("rows.parquet", "rows.csv"):
        predicted(folder, f"{rows} -o labels.parquet --keep id,ward --distances")
        table = pd.read_parquet(folder / "labels.parquet")
        assert list(table) == ["id", "ward", "cluster", "distance"]
        assert table["id"].tolist() == frame()["id"].tolist()
        np.testing.assert_allclose(table["distance"], expected(folder)[1], rtol=1e-9)


def test_rows_that_cannot_be_used_keep_their_place(folder: Path) -> None:
    holes = frame()
    holes.loc[[0, 7], "age"] = [np.nan, np.inf]
    holes.loc[9, "ward"] = None
    holes.loc[11, "ward"] = "another"
    holes.to_parquet(folder / "holes.parquet")
    assert "the label -1 with --missing drop" in refused("predict result.json holes.parquet -o l.csv", folder)
    assert not (folder / "l.csv").exists()
    told = json.loads(predicted(folder, "holes.parquet -o l.csv --missing drop --distances --json").stdout)
    assert (told["private"], told["rows"], told["unused"], sum(told["sizes"])) == (False, 3000, 3, 2997)
    table = pd.read_csv(folder / "l.csv")
    assert np.flatnonzero(table["cluster"] == -1).tolist() == [0, 7, 9]
    assert table["distance"].isna().sum() == 3
    others = np.setdiff1d(np.arange(3000), [0, 7, 9, 11])
    np.testing.assert_array_equal(table["cluster"][others], expected(folder)[0][others])


def test_files_without_names_and_several_of_them(folder: Path) -> None:
    rows = np.random.default_rng(0).normal(0, 0.3, (500, 2))
    np.save(folder / "a.npy", rows[:200])
    np.save(folder / "b.npy", rows[200:])
    pd.DataFrame(rows, columns=["x", "y"]).to_csv(folder / "named.csv", index=False)
    ran("fit a.npy b.npy -k 2 --epsilon 1 --bounds=-1:1 --rows 500 --method su-lloyd --out result.json", folder)
    centers = Result.load(folder / "result.json").centers
    predicted(folder, "a.npy b.npy -o l.npy")
    np.testing.assert_array_equal(np.load(folder / "l.npy"), metrics.labels(rows, centers))
    predicted(folder, "a.npy -o l.csv --keep 1")
    np.testing.assert_allclose(pd.read_csv(folder / "l.csv")["1"], rows[:200, 1])
    predicted(folder, "named.csv -o l.npy --columns x,y")
    np.testing.assert_array_equal(np.load(folder / "l.npy"), metrics.labels(rows, centers))


def test_memory_does_not_grow_with_the_rows(folder: Path) -> None:
    """Rows are read and labels written a piece at a time: no piece is larger than another file's."""
    big = pd.concat([frame()] * 25)
    big.to_parquet(folder / "big.parquet", row_group_size=len(big))
    with patch.object(metrics, "labels", wraps=metrics.labels) as labels:
        predicted(folder, "big.parquet -o labels.parquet")
    seen = [len(call.args[0]) for call in labels.call_args_list]
    assert sum(seen) == len(big) == 75_000
    assert max(seen) <= 65_536


def test_a_parquet_file_of_labels_says_itself_that_it_is_not_private(folder: Path) -> None:
    predicted(folder, "rows.parquet -o labels.parquet --keep id")
    said = pyarrow.parquet.read_schema(folder / "labels.parquet").metadata
    assert said[b"cloister"].startswith(b"NOT private: labels were computed from the rows")

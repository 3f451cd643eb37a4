"""``cloister profile``, run as a user runs it: it sees a result's file, and rows only where somebody gives
them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cloister import metrics
from cloister.run.result import Result
from tests.in_process import ran, refused

FIT = "fit rows.csv -k 2 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 2000 --seed 1 --out r.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result with a category, and rows of which one lacks a cell and one is far outside the bounds."""
    folder = tmp_path_factory.mktemp("profiled")
    g = np.random.default_rng(1)
    low = g.random(2000) < 0.3
    table = pd.DataFrame(
        {
            "age": np.where(low, -0.5, 0.5) + g.normal(0, 0.12, 2000),
            "ward": np.where(g.random(2000) < 0.9, np.where(low, "A", "B"), "C"),
        }
    )
    table.to_csv(folder / "rows.csv", index=False)
    odd = pd.concat([table, pd.DataFrame({"age": [np.nan, 1e6], "ward": ["A", "B"]})])
    odd.to_csv(folder / "odd.csv", index=False)
    ran(f"{FIT} --columns age --category ward=A,B,C", folder)
    return folder


def test_it_prints_sizes_centres_and_figures_with_their_errors_or_the_same_as_json(folder: Path) -> None:
    shown = ran("profile r.json", folder).stdout
    for words in ("age low", "silhouette: 0.", "is one standard error"):
        assert words in shown
    assert shown.count("\u00b1") >= 2 + 2 + 2
    found = json.loads(ran("profile r.json --json", folder).stdout)
    low = min(found["clusters"], key=lambda cluster: cluster["center"][0])
    assert abs(low["size"] - 600) <= 4 * low["size_error"] < 400
    ward = set(low["apart"]) - {"age low"}  # at most one value of it, where the noise is small enough to name one
    assert "age low" in low["apart"]
    assert len(ward) <= 1
    assert ward <= {"ward mostly A", "ward often A", "ward rarely B"}
    assert found["silhouette"]["error"] > 0


def of_rows(folder: Path, words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ran(f"profile r.json --json --rows {words}", folder).stdout)["of_rows"]
    return found


def test_rows_that_one_may_see_are_added_up_in_each_cluster(folder: Path) -> None:
    result, table = Result.load(folder / "r.json"), pd.read_csv(folder / "rows.csv")
    features = np.column_stack([table["age"], *(table["ward"] == value for value in "ABC")]).astype(float)
    label = metrics.labels(features, result.centers, units=result.units)
    found = of_rows(folder, "rows.csv")
    assert (found["private"], found["rows"], found["left_out"], found["clipped"]) == (False, 2000, 0, 0)
    for i, group in enumerate(found["groups"]):
        assert group["rows"] == (label == i).sum()
        np.testing.assert_allclose(group["means"], features[label == i].mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(group["spreads"], features[label == i].std(axis=0), rtol=1e-9, atol=1e-7)
        assert "unclipped_means" not in group


def test_missing_cells_are_refused_or_counted_and_absurd_ones_clipped_with_both_figures(folder: Path) -> None:
    assert "--missing drop" in refused("profile r.json --rows odd.csv", folder)
    found = of_rows(folder, "odd.csv --missing drop")
    assert (found["rows"], found["left_out"], found["clipped"]) == (2001, 1, 1)
    means = [group["means"][0] for group in found["groups"]]
    unclipped = [group["unclipped_means"][0] for group in found["groups"]]
    assert max(means) <= 1 < 1e6 / 2000 / 2 < max(unclipped)


def test_what_rows_are_is_said_not_to_be_private_beside_the_released_centre(folder: Path) -> None:
    done = ran("profile r.json --rows odd.csv --missing drop", folder)
    released, _, exact = done.stdout.partition("NOT private: these figures were computed from the rows themselves.")
    assert "from released values alone" in released
    assert "2,001 rows, 1 of them clipped" in exact
    assert exact.count("centre (released)") == 2
    assert "mean, not clipped" in exact
    assert "NOT private" not in ran("profile r.json", folder).stdout


def test_figures_of_rows_far_from_0_are_right_and_told_apart(tmp_path: Path) -> None:
    """Seconds since 1970 of two sittings of a day."""
    g = np.random.default_rng(0)
    near = np.repeat([[2.0, 3.0], [8.0, 7.0]], 1000, axis=0) + g.integers(-256, 256, (2000, 2)) / 512
    pd.DataFrame(near + 1.7e9, columns=["start", "end"]).to_parquet(tmp_path / "far.parquet")
    range_ = "1700000000:1700000010"
    ran(
        f"fit far.parquet -k 2 --epsilon 4 --delta 1e-6 --rows 2000 --columns start,end --bounds {range_},{range_} "
        "--out r.json",
        tmp_path,
    )
    shown = ran("profile r.json --rows far.parquet", tmp_path).stdout.partition("NOT private")[2]
    assert "e+09" not in shown
    for mean in near[:1000].mean(axis=0), near[1000:].mean(axis=0):
        assert all(f"{1.7e9 + value:,.4f}".rstrip("0") in shown for value in mean)
    found = json.loads(ran("evaluate r.json far.parquet --json", tmp_path).stdout)
    centers = Result.load(tmp_path / "r.json").centers - 1.7e9
    for name in ("silhouette", "davies_bouldin"):
        assert found[name] == pytest.approx(getattr(metrics, name)(near, centers), rel=1e-6)

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

FIT = "fit rows.csv -k 2 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 1000 --seed 1 --out r.json"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a result; the rows are gone."""
    folder = tmp_path_factory.mktemp("profiled")
    g = np.random.default_rng(0)
    rows = np.where(g.random((1000, 1)) < 0.3, -0.5, 0.5) + g.normal(0, 0.12, (1000, 2))
    np.savetxt(folder / "rows.csv", rows, delimiter=",", header="age,glucose", comments="")
    ran(f"{FIT} --columns age,glucose", folder)
    (folder / "rows.csv").unlink()
    return folder


def test_it_prints_sizes_centres_and_figures_with_their_errors_or_the_same_as_json(fitted: Path) -> None:
    shown = ran("profile r.json", fitted).stdout
    for words in ("age low", "silhouette: 0.", "is one standard error"):
        assert words in shown
    assert shown.count("\u00b1") >= 2 + 4 + 2
    found = json.loads(ran("profile r.json --json", fitted).stdout)
    low = min(found["clusters"], key=lambda cluster: cluster["center"][0])
    assert abs(low["size"] - 300) <= 4 * low["size_error"] < 200
    assert set(low["apart"]) == {"age low", "glucose low"}
    assert found["silhouette"]["error"] > 0


@pytest.fixture(scope="module")
def with_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result with a category, and rows of which one lacks a cell and one is far outside the bounds."""
    folder = tmp_path_factory.mktemp("with_rows")
    g = np.random.default_rng(1)
    low = g.random(2000) < 0.3
    table = pd.DataFrame(
        {
            "age": np.where(low, -0.5, 0.5) + g.normal(0, 0.12, 2000),
            "ward": np.where(g.random(2000) < 0.9, np.where(low, "A", "B"), "C"),
        }
    )
    table.to_csv(folder / "rows.csv", index=False)
    table.to_parquet(folder / "rows.parquet")
    odd = pd.concat([table, pd.DataFrame({"age": [np.nan, 1e6], "ward": ["A", "B"]})])
    odd.to_csv(folder / "odd.csv", index=False)
    ran(f"{FIT} --columns age --category ward=A,B,C", folder)
    return folder


def of_rows(folder: Path, words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ran(f"profile r.json --json --rows {words}", folder).stdout)["of_rows"]
    return found


def test_rows_that_one_may_see_are_added_up_in_each_cluster(with_rows: Path) -> None:
    result, table = Result.load(with_rows / "r.json"), pd.read_csv(with_rows / "rows.csv")
    features = np.column_stack([table["age"], *(table["ward"] == value for value in "ABC")]).astype(float)
    label = metrics.labels(features, result.centers, units=result.units)
    found = of_rows(with_rows, "rows.csv")
    assert (found["private"], found["rows"], found["left_out"], found["clipped"]) == (False, 2000, 0, 0)
    for i, group in enumerate(found["groups"]):
        assert group["rows"] == (label == i).sum()
        np.testing.assert_allclose(group["means"], features[label == i].mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(group["spreads"], features[label == i].std(axis=0), rtol=1e-9, atol=1e-7)
        assert "unclipped_means" not in group


def test_missing_cells_are_refused_or_counted_and_absurd_ones_clipped_with_both_figures(with_rows: Path) -> None:
    assert "--missing drop" in refused("profile r.json --rows odd.csv", with_rows)
    found = of_rows(with_rows, "odd.csv --missing drop")
    assert (found["rows"], found["left_out"], found["clipped"]) == (2001, 1, 1)
    means = [group["means"][0] for group in found["groups"]]
    unclipped = [group["unclipped_means"][0] for group in found["groups"]]
    assert max(means) <= 1 < 1e6 / 2000 / 2 < max(unclipped)


def test_what_rows_are_is_said_not_to_be_private_beside_the_released_centre(with_rows: Path) -> None:
    done = ran("profile r.json --rows odd.csv --missing drop", with_rows)
    released, _, exact = done.stdout.partition("NOT private: these figures were computed from the rows themselves.")
    assert "from released values alone" in released
    assert "2,001 rows, 1 of them clipped" in exact
    assert exact.count("centre (released)") == 2
    assert "mean, not clipped" in exact
    assert "NOT private" not in ran("profile r.json", with_rows).stdout

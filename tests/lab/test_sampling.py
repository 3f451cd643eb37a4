"""Synthetic rows: what is drawn follows what was released, and what cannot be drawn is refused or said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cloister.core.errors import InvalidInput
from cloister.lab.sampling import MARK, POINTS, _drawn, sample
from cloister.run.layers.histograms import descriptions_of
from tests.in_process import ran
from tests.showing.described import VALUES, described
from tests.showing.report.pages import made

ROWS = 40_000


def off(shares: Any, expected: Any, n: int) -> float:
    """The largest difference, in standard deviations of a share of n rows."""
    spread = np.sqrt(np.maximum(np.asarray(expected) * (1 - np.asarray(expected)), 1e-9) / n)
    return float((np.abs(np.asarray(shares) - expected) / spread).max())


def held(wards: Any) -> list[Any]:
    """The shares of their values."""
    return [np.mean(wards == value) for value in ("A", "B", "other")]


def test_groups_come_by_their_sizes_and_columns_by_their_counts_within_the_group() -> None:
    told = descriptions_of(described())
    assert told is not None
    made_rows, left = sample(described(), ROWS, 1)
    assert left == ["c0", "c1"]  # clustered by, not described, and nothing says how far rows are from centres
    sizes = np.bincount(made_rows.labels, minlength=3)
    assert off(sizes / ROWS, told.sizes / told.sizes.sum(), ROWS) < 5
    ward, stay, urgent = told.columns
    for group in range(3):
        mine, n = made_rows.labels == group, sizes[group]
        assert off(held(made_rows.columns["ward"][mine]), ward.shares[group], n) < 5
        parts = np.bincount((made_rows.columns["stay"][mine] // 5).astype(int), minlength=4) / n
        assert off(parts, stay.shares[group], n) < 5
        assert off([made_rows.columns["urgent"][mine].mean()], urgent.shares[group, :1], n) < 5


def test_booleans_are_booleans_and_what_was_not_listed_is_told_from_a_value_that_is_called_so() -> None:
    columns = sample(described(), 1000)[0].columns
    assert columns["urgent"].dtype == bool
    assert set(columns["ward"]) == {"A", "B", "other"}
    values = {**VALUES, "ward": ["A", "other"]}
    assert set(sample(described(values=values), 1000)[0].columns["ward"]) == {"A", "other", "other_"}


def test_a_category_that_is_clustered_and_not_described_comes_by_the_centre_s_shares() -> None:
    centers = np.array([[0.75, 0.25], [-0.1, 0.4], [0.9, 0.3]])
    problem = {**made(2).problem, "categories": {"ward": ["A", "B"]}}
    result = made(2, centers=centers, columns=("ward=A", "ward=B"), problem=problem, weights=np.full(3, 100.0))
    made_rows, left = sample(result, ROWS)
    assert left == []
    for group, expected in enumerate([[0.75, 0.25, 0], [0, 0.4, 0.6], [0.75, 0.25, 0]]):
        mine = made_rows.columns["ward"][made_rows.labels == group]
        assert off(held(mine), expected, len(mine)) < 5


def around(**changes: Any) -> Any:
    """A result that states how far rows are from centres: within 0.05 to 0.07 of them."""
    distances = {"edges": [0.05, 0.05 * 2**0.5], "counts": [0.0, 300.0], "errors": [1.0, 1.0]}
    details = {"distances": distances, "weights_error": [1.0] * 3}
    centers = np.array([[0.0, 0.0], [0.5, 0.5], [-0.99, 0.0]])
    return made(2, centers=centers, weights=np.array([100.0, 300.0, 50.0]), details=details, **changes)


def test_clustered_numbers_lie_around_the_centre_as_far_away_as_was_released_and_within_the_bounds() -> None:
    made_rows, left = sample(around(), ROWS)
    rows = np.column_stack([made_rows.columns["c0"], made_rows.columns["c1"]])
    assert left == []
    away = np.linalg.norm(rows - around().centers[made_rows.labels], axis=1)[made_rows.labels < 2]
    assert 0.0499 <= away.min() < away.max() <= 0.0708
    assert abs(rows[made_rows.labels == 1].mean(axis=0) - 0.5).max() < 0.005
    assert rows.min() == -1.0  # of the third group, at the border
    assert off(np.bincount(made_rows.labels) / ROWS, np.array([100, 300, 50]) / 450, ROWS) < 5


def test_in_cells_each_group_has_a_spread_of_its_own_in_the_columns_own_units() -> None:
    boxes = [[[middle - 0.1, -0.01], [middle + 0.1, 0.01]] for middle in (-11.0, -9.0, 4.0, 16.0)]
    details = {"cells": boxes, "cell_weights": [500.0] * 4, "cell_errors": [1.0] * 4, "units": [10.0, 1.0]}
    problem = {"k": 2, "bounds": {"lower": [-20.0, -1.0], "upper": [20.0, 1.0]}}
    centers = np.array([[-10.0, 0.0], [10.0, 0.0]])
    result = made(2, 2, centers=centers, weights=np.full(2, 1000.0), details=details, problem=problem)
    made_rows, _ = sample(result, ROWS)
    left, right = (made_rows.columns["c0"][made_rows.labels == group] for group in (0, 1))
    assert right.std() / left.std() == pytest.approx(6, rel=0.05)
    assert len(np.unique(left)) > POINTS / 4
    assert abs(abs(left + 10) - 1).max() < 0.11
    assert abs(abs(right - 10) - 6).max() < 0.11
    assert abs(made_rows.columns["c1"]).max() < 0.011


def test_what_has_no_weight_is_never_drawn_however_many_groups_there_are() -> None:
    groups = np.repeat(np.arange(5000), 40)
    for column in range(3):
        weights = np.zeros((5000, 3))
        weights[:, column] = np.geomspace(1e-9, 1e9, 5000)
        weights[:, column - 1] = -1.0
        assert (_drawn(weights, groups, np.random.default_rng(0)) == column).all()


def test_every_row_says_that_it_is_synthetic_and_a_seed_gives_its_rows_again() -> None:
    first, again, other = (sample(described(), 50, seed)[0].columns for seed in (3, 3, 4))
    assert list(first)[-1] == MARK == "synthetic"
    assert first[MARK].dtype == bool
    assert first[MARK].all()
    assert all((first[name] == again[name]).all() for name in first)
    assert (first["stay"] != other["stay"]).any()


@pytest.mark.parametrize(
    ("result", "rows", "said"),
    [
        (described(), 2**30, "too many"),
        (made(2, weights=None), 5, "no sizes of groups"),
        (made(2, weights=np.array([0.0, -3, -1])), 5, "no sizes of groups"),
        (made(2), 5, "no distribution of any column: fit with --describe"),
        (around(columns=("c0", MARK)), 5, "has a column 'synthetic'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(result: Any, rows: int, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        sample(result, rows)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_program_saves_the_rows_and_says_that_they_cost_nothing_and_what_is_left_out(
    ending: str, tmp_path: Path
) -> None:
    described().save(tmp_path / "r.json")
    said = ran(f"sample r.json -n 500 --seed 2 --out s.{ending}", tmp_path).stdout
    for words in ("left out: c0, c1", "500 synthetic rows of 4 columns", "at no cost", "epsilon = 1"):
        assert words in said
    read = pd.read_csv if ending == "csv" else pd.read_parquet
    table = read(tmp_path / f"s.{ending}")
    expected = sample(described(), 500, 2)[0].columns
    pd.testing.assert_frame_equal(table, pd.DataFrame(dict(expected)), check_dtype=False)

"""``cloister evaluate``: rows as fit reads them, clipped as the run clipped them, beside a reference that is not
private."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloister import metrics
from cloister.commands.evaluating import SILHOUETTE, Clipped
from cloister.rows.reading import Chunk, DrawnRows, user_numbers
from cloister.run.result import Result
from tests.in_process import ran, refused

G = np.random.default_rng(0)
ROWS = np.concatenate([G.normal(middle, 0.1, (900, 2)) for middle in (-0.5, 0.5)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows, the same with 3 cells that are missing and 2 that are absurd, and a result of both."""
    folder = tmp_path_factory.mktemp("evaluate")
    bad = np.concatenate([ROWS, [[np.nan, 0], [0, np.nan], [np.nan, np.nan], [1e7, 0], [0.5, -1e7]]])
    for name, (x, y) in {"rows": ROWS.T, "bad": bad.T}.items():
        pq.write_table(pa.table({"x": x, "y": y}), folder / f"{name}.parquet")
    ran(
        "fit rows.parquet -k 2 --epsilon 1 --delta 1e-6 --rows 2000 --columns x,y --bounds=-1:1 --out result.json",
        folder,
    )
    return folder


def figures(folder: Path, words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ran(f"evaluate result.json {words} --json", folder).stdout)
    return found


def test_figures_are_those_of_all_rows_at_once(folder: Path) -> None:
    found, centers = figures(folder, "rows.parquet"), Result.load(folder / "result.json").centers
    reference = metrics.reference_centers(ROWS, 2, seed=0)
    expected = metrics.evaluate(ROWS, centers, reference).as_dict()
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-9)
    assert found["reference_nicv"] == pytest.approx(metrics.nicv(ROWS, reference), rel=1e-9)
    assert found["ratio"] == pytest.approx(found["nicv"] / found["reference_nicv"])
    assert (found["rows"], found["left_out"], found["clipped"]) == (1800, 0, 0)
    assert found["unclipped_nicv"] is None
    assert figures(folder, "rows.parquet --no-reference")["ratio"] is None


def test_rows_with_missing_cells_are_refused_or_counted(folder: Path) -> None:
    assert "--missing drop" in refused("evaluate result.json bad.parquet", folder)
    assert figures(folder, "bad.parquet --missing drop")["left_out"] == 3
    told = ran("evaluate result.json bad.parquet --missing drop", folder).stdout
    assert "3 left out for missing or infinite cells" in told


def test_absurd_cells_are_clipped_as_the_run_clipped_them_and_the_other_figure_stands_beside(folder: Path) -> None:
    found, centers = figures(folder, "bad.parquet --missing drop"), Result.load(folder / "result.json").centers
    rows = np.concatenate([ROWS, [[1e7, 0], [0.5, -1e7]]])
    assert found["clipped"] == 2
    assert found["nicv"] == pytest.approx(metrics.nicv(np.clip(rows, -1, 1), centers), rel=1e-9)
    assert found["unclipped_nicv"] == pytest.approx(metrics.nicv(rows, centers), rel=1e-9)
    assert found["unclipped_k_median"] == pytest.approx(metrics.k_median_cost(rows, centers), rel=1e-9)
    assert 0.9 < found["ratio"] < 3
    told = ran("evaluate result.json bad.parquet --missing drop", folder).stdout
    assert told.startswith("NOT private")
    assert "2 of them clipped to the run's bounds" in told


def test_a_database_gives_the_figures_of_the_file(folder: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("ibis")
    with duckdb.connect(str(folder / "lake.db")) as lake:
        lake.execute(f"CREATE TABLE bad AS SELECT * FROM '{folder / 'bad.parquet'}'")
    asked = "--missing drop --no-reference"
    file = figures(folder, f"bad.parquet {asked}")
    database = figures(folder, f"duckdb:///lake.db --table bad {asked}")
    assert database.pop("groups") == file.pop("groups")
    names = set(file) - {"center_mse", "ratio", "reference_nicv"}
    assert {name: database[name] for name in names} == pytest.approx({name: file[name] for name in names}, rel=1e-9)
    assert "--missing drop" in refused("evaluate result.json duckdb:///lake.db --table bad", folder)


def test_units_of_the_run_have_figures_of_their_own(tmp_path: Path) -> None:
    g = np.random.default_rng(2)
    rows = np.concatenate([g.normal((middle, 0), (0.05, 50), (900, 2)) for middle in (-0.8, 0.8)])
    rows = np.clip(rows, [-1, -100], [1, 100])  # two groups where a column is a unit, and others where it is a hundred
    np.save(tmp_path / "rows.npy", rows)
    ran(
        "fit rows.npy -k 2 --epsilon 1 --delta 1e-6 --rows 2000 --bounds=-1:1,-100:100 --zoom off --out result.json",
        tmp_path,
    )
    found, result = figures(tmp_path, "rows.npy"), Result.load(tmp_path / "result.json")
    assert result.units is not None
    own = metrics.evaluate(rows / result.units, result.centers / result.units)
    assert found["scaled"]["nicv"] == pytest.approx(own.nicv, rel=1e-9)
    assert found["scaled"]["davies_bouldin"] == pytest.approx(own.davies_bouldin, rel=1e-9)
    for some, units, k_means in ((found, np.ones(2), rows), (found["scaled"], result.units, rows / result.units)):
        reference, centers = metrics.reference_centers(k_means, 2, seed=0), result.centers / units
        assert some["reference_nicv"] == pytest.approx(metrics.nicv(k_means, reference), rel=1e-9)
        assert some["ratio"] == pytest.approx(metrics.nicv(k_means, centers) / some["reference_nicv"], rel=1e-9)
        assert some["center_mse"] == pytest.approx(metrics.center_mse(centers, reference), rel=1e-9)


def test_a_sample_is_of_all_rows_and_does_not_depend_on_the_pieces_that_they_are_read_in() -> None:
    rows = np.sort(G.normal(size=(4 * SILHOUETTE, 1)), axis=0)

    def drawn(low: int, high: int) -> DrawnRows:
        return DrawnRows.of(SILHOUETTE, Chunk(low, rows[low:high]), user_numbers(low, high - low), rows[low:high])

    whole, pieces = drawn(0, 40_000), [drawn(*ends) for ends in ((9, 30_000), (0, 9), (30_000, 40_000))]
    np.testing.assert_array_equal(whole.rows, reduce(DrawnRows.merge, pieces).rows)
    assert len(whole.rows) == SILHOUETTE
    assert abs(whole.rows.mean()) < 5 / SILHOUETTE**0.5


def test_a_sample_is_drawn_by_the_places_of_rows(folder: Path) -> None:
    """Also where the same rows come again: those of one place have one lot."""
    result, chunks = Result.load(folder / "result.json"), [Chunk(start, ROWS[:100]) for start in (0, 100, 0)]
    numbers = [Clipped.of(chunk, result, "refuse").numbers.tolist() for chunk in chunks]
    assert numbers == [list(range(100)), list(range(100, 200)), list(range(100))]


@pytest.mark.parametrize(
    ("method", "objective", "cost"), [("auto", "k-means", "nicv"), ("private-lloyd-median", "k-median", "k_median")]
)
def test_the_cost_that_the_run_minimised_is_said_first_and_groups_by_size(
    tmp_path: Path, method: str, objective: str, cost: str
) -> None:
    draws = np.random.default_rng(0)
    groups = [(-0.5, 300), (0.5, 1500), (0.0, 700)]
    np.save(tmp_path / "groups.npy", np.vstack([draws.normal(middle, 0.05, (n, 2)) for middle, n in groups]))
    ran(
        f"fit groups.npy -k 3 --epsilon 20 --delta 1e-6 --bounds=-1:1 --rows 2500 --method {method} --out it.json",
        tmp_path,
    )
    lines = ran("evaluate it.json groups.npy", tmp_path).stdout.splitlines()
    figure = json.loads(ran("evaluate it.json groups.npy --json", tmp_path).stdout)[cost]
    assert lines[0].startswith("NOT private")
    assert lines[1].startswith(f"{objective} cost, which the run minimised: {figure:.6g} (")
    assert lines[4].split()[:2] == [cost, f"{figure:.6g}"]
    released = Result.load(tmp_path / "it.json")
    order = [int(part.split(":")[0]) for part in lines[3].removeprefix("Rows by nearest centre: ").split(", ")[:3]]
    assert released.weights is None or order == released.by_size

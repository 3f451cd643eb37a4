"""Profiles: from released values alone, and within two of their standard errors of what the rows say."""

from __future__ import annotations

import inspect
import json
import math
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats
from cloister.metrics import k_median_cost, labels, nicv, silhouette
from cloister.run.estimates import Estimate
from cloister.run.fit import fit, source
from cloister.run.request import Request
from cloister.run.result import Result
from cloister.showing.profile import profile_of
from tests.test_benchmark_datasets import datasets

EPSILON = 1.0


def fitted(table: Floats, k: int, seed: int, method: str = "auto", **more: Any) -> Result:
    n = len(table)
    given = {"bounds": "-1:1", "rows": n, "seed": seed, "delta": 1 / (n * math.log(n)), **more}
    request = Request(k=k, method=method, epsilon=EPSILON, **given)
    return fit(request, source(table), noise=NoiseRng.for_tests(seed))


def clumps(n: int, k: int, d: int, seed: int = 0, spread: float = 0.07) -> Floats:
    g = np.random.default_rng(seed)
    centers = g.uniform(-0.8, 0.8, (k, d))
    return np.clip(centers[g.integers(0, k, n)] + g.normal(0, spread, (n, d)), -1, 1)


def off(result: Result, rows: Floats) -> tuple[Floats, Floats, float, float]:
    """Sizes (k,), centres (k, d) of groups with rows, silhouette and cost, less exact ones, in standard errors."""
    found, units = profile_of(result), 1.0 if result.units is None else result.units
    own = labels(rows / units, result.centers / units)
    exact = np.bincount(own, minlength=len(result.centers))
    sizes = np.array([(c.size - n) / c.size_error for c, n in zip(found.clusters, exact, strict=True)])  # type: ignore[operator]
    centers = np.array(
        [
            (np.array(c.center) - rows[own == c.number].mean(axis=0)) / np.array(c.center_error)
            for c in found.clusters
            if exact[c.number] > len(rows) / len(exact) / 20
        ]
    )
    assert found.silhouette is not None
    assert found.cost is not None
    assert found.silhouette.error
    assert found.cost.error
    true = nicv(rows / units, result.centers / units)
    if found.power == 1:
        true = k_median_cost(rows / units, result.centers / units) / len(rows)
    score = found.silhouette.value - silhouette(rows / units, result.centers / units, sample=4000)
    return sizes, centers, score / found.silhouette.error, (found.cost.value - true) / found.cost.error


def check(found: list[tuple[Floats, Floats, float, float]]) -> None:
    """Nine of ten sizes and centres' coordinates are within two standard errors, and every silhouette and cost."""
    sizes, centers = (np.abs(np.concatenate([np.ravel(each[i]) for each in found])) for i in (0, 1))
    assert (sizes <= 2).mean() >= 0.9
    assert (centers <= 2).mean() >= 0.9
    assert max(abs(each[2]) for each in found) <= 2
    assert max(abs(each[3]) for each in found) <= 2.5


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["s1", "shuttle", "g10k_d32_k16"])
def test_sizes_and_silhouette_of_known_sets_are_within_two_standard_errors(data: Path, name: str) -> None:
    assert data.is_dir()
    found = datasets.load(name)
    check([off(fitted(found.rows, found.k, seed), found.rows) for seed in range(3)])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("method", "d"), [("grid-means", 2), ("radius-means", 6), ("hst-means", 2), ("grid-median", 2)]
)
def test_figures_of_generated_rows_are_within_two_standard_errors(method: str, d: int) -> None:
    rows = clumps(6000, 5, d)
    found = [off(fitted(rows, 5, seed, method), rows) for seed in range(3)]
    if method.endswith("median"):  # stands for a median, not for the mean
        found = [(each[0], np.zeros(1), each[2], each[3]) for each in found]
    check(found)


def test_errors_of_clear_groups_are_those_of_repeated_runs_not_half_and_not_twice() -> None:
    """Sizes of groups that no row changes are off by their noise alone: 24 runs of four groups."""
    corners = np.array([[-0.6, -0.6, -0.6], [0.6, -0.6, 0.6], [-0.6, 0.6, 0.6], [0.6, 0.6, -0.6]])
    g = np.random.default_rng(5)
    rows = corners[np.arange(4000) % 4] + g.normal(0, 0.05, (4000, 3))
    runs = [fitted(rows, 4, seed, "radius-means", zoom="off") for seed in range(24)]
    exact = [np.bincount(labels(rows, run.centers), minlength=4) for run in runs]
    z = np.array([(run.weights - n) / run.details["weights_error"] for run, n in zip(runs, exact, strict=True)])
    assert 0.6 < np.sqrt((z**2).mean()) < 1.2


def test_an_error_is_in_the_caller_s_units_as_the_centre_is() -> None:
    rows = clumps(3000, 3, 2)
    one = profile_of(fitted(rows, 3, 1))
    scale = np.array([1000.0, 0.5])
    other = profile_of(fitted(rows * scale, 3, 1, bounds=[(-1000, 1000), (-0.5, 0.5)], scale="bounds"))
    assert [c.size_error for c in one.clusters] == pytest.approx([c.size_error for c in other.clusters], rel=1e-3)
    for a, b in zip(one.clusters, other.clusters, strict=True):
        assert np.array(b.center_error) == pytest.approx(np.array(a.center_error) * scale, rel=1e-2)
    assert other.scaled
    assert not one.scaled
    assert one.cost is not None
    assert other.cost is not None
    tenfold = profile_of(fitted(rows * 10, 3, 1, bounds="-10:10"))
    assert tenfold.cost is not None
    assert tenfold.cost.value == pytest.approx(100 * one.cost.value, rel=1e-3)
    assert tenfold.cost.error == pytest.approx(100 * (one.cost.error or 0), rel=1e-2)


def test_counted_rows_and_unknown_bounds_have_errors_too() -> None:
    rows = clumps(8000, 3, 2)
    found = profile_of(fitted(rows, 3, 2, rows=None, bounds="unknown"))
    assert all(c.size_error and c.center_error for c in found.clusters)
    sizes = np.array([c.size for c in found.clusters])
    assert sizes.sum() == pytest.approx(8000, rel=0.05)


def test_a_profile_reads_a_result_and_nothing_else(tmp_path: Path) -> None:
    assert list(inspect.signature(profile_of).parameters) == ["result"]
    result = fitted(clumps(3000, 3, 2), 3, 1)
    result.save(tmp_path / "result.json")
    again = profile_of(Result.load(tmp_path / "result.json"))
    assert again == profile_of(result)
    assert json.loads(json.dumps(again.as_dict()))["clusters"][2]["number"] == 2


@pytest.fixture(scope="module")
def plain() -> Result:
    return fitted(clumps(2000, 3, 3), 3, 1, "radius-means")


def test_a_result_that_states_no_errors_has_none(plain: Result) -> None:
    found = profile_of(attrs.evolve(plain, details={}))
    assert (found.silhouette, found.cost) == (None, None)
    assert all(c.size is not None and c.size_error is None and c.center_error is None for c in found.clusters)
    assert "not known: the method releases too little" in found.text()
    assert "Standard errors are not known" in found.text()
    unsized = profile_of(attrs.evolve(plain, details={}, weights=None)).clusters
    assert all(c.size is None and c.share is None for c in unsized)


def test_details_of_a_stranger_that_mean_something_else_are_left_alone(plain: Result) -> None:
    names = ("weights_error", "centers_error", "cells", "cell_weights", "cell_errors", "distances")
    for given in ("words", {"a": 1}, [[1.0]], None, [["x", "y"]] * 3):
        found = profile_of(attrs.evolve(plain, details=dict.fromkeys(names, given)))
        assert (found.silhouette, found.clusters[0].size_error) == (None, None)


def wards(plain: Result, centers: Any, name: str) -> Result:
    """A result over this column and two wards."""
    return attrs.evolve(
        plain,
        centers=np.array(centers),
        weights=np.full(len(centers), 100.0),
        columns=(name, "ward=A", "ward=B"),
        details={},
        problem={**plain.problem, "categories": {"ward": ["A", "B"]}},
    )


def test_categories_are_shares_of_all_rows_of_a_group(plain: Result) -> None:
    """As its centre says, so that rows without a listed value show; noise lifts no sum above all rows."""
    centers = [[0.2, 0.6, 0.2], [0.2, 0.9, 0.3], [0.5, 0.0, -0.1]]
    one, lifted, other = profile_of(wards(plain, centers, "age")).clusters
    assert one.categories == {"ward": {"A": 0.6, "B": 0.2}}
    assert lifted.categories == {"ward": {"A": pytest.approx(0.75), "B": pytest.approx(0.25)}}
    assert other.categories == {}


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(1234.567, 12.3), "1,235 \u00b1 12"),
        (Estimate(0.012345, 0.00067), "0.01235 \u00b1 0.00067"),
        (Estimate(1947988581.0, 194137692.0), "1,950,000,000 \u00b1 190,000,000"),
        (Estimate(-0.001, 0.4), "0.00 \u00b1 0.40"),
        (Estimate(3.0), "3"),
        (Estimate(2.5, 0.0), "2.5 \u00b1 0"),
        (Estimate(1e6, math.inf), "1e+06"),
    ],
)
def test_a_figure_has_as_many_digits_as_its_error_lets_mean_something(estimate: Estimate, text: str) -> None:
    assert estimate.text == text


def test_a_notebook_shows_a_profile_and_no_name_becomes_a_tag(plain: Result) -> None:
    evil = "<script>alert(1)</script>"
    page = profile_of(wards(plain, [[0.3, 0.0, 1.0], [0.9, 1.0, 0.0]], evil))._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "ward mostly B" in page
    assert "silhouette: not known" in page

"""Profiles: from released values alone, and within two of their standard errors of what the rows say."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.decimals import resolved
from cloister.core.randomness import NoiseRng
from cloister.core.registry.registry import registry
from cloister.core.types import Floats
from cloister.metrics import k_median_cost, labels, nicv, silhouette
from cloister.run.estimates import Estimate
from cloister.run.fit import fit, source
from cloister.run.request import Request
from cloister.run.result import Result
from cloister.run.shown import center_texts
from cloister.showing.profile import Profile, profile_of
from cloister.showing.quality import SPHERES_COST, SPHERES_ERROR
from tests.showing.report.pages import made
from tests.test_benchmark_datasets import datasets


def fitted(table: Floats, k: int, seed: int, method: str = "auto", **more: Any) -> Result:
    n = len(table)
    given = {"bounds": "-1:1", "rows": n, "seed": seed, "delta": 1 / (n * math.log(n)), **more}
    request = Request(k=k, method=method, epsilon=1.0, **given)
    return fit(request, source(table), noise=NoiseRng.for_tests(seed))


def clumps(n: int, k: int, d: int) -> Floats:
    g = np.random.default_rng(0)
    centers = g.uniform(-0.8, 0.8, (k, d))
    return np.clip(centers[g.integers(0, k, n)] + g.normal(0, 0.07, (n, d)), -1, 1)


def off(result: Result, rows: Floats) -> tuple[Floats, Floats, float, float]:
    """Sizes (k,), centres (k, d) of groups with rows, silhouette and cost, less exact ones, in standard errors."""
    found, units = profile_of(result), 1.0 if result.units is None else result.units
    scaled, centers = rows / units, result.centers / units
    own = labels(scaled, centers)
    exact = np.bincount(own, minlength=len(centers))
    sizes = np.array([(c.size - n) / c.size_error for c, n in zip(found.clusters, exact, strict=True)])  # type: ignore[operator]
    away = np.array(
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
    true = k_median_cost(scaled, centers) / len(rows) if found.power == 1 else nicv(scaled, centers)
    score = found.silhouette.value - silhouette(scaled, centers, sample=4000)
    return sizes, away, score / found.silhouette.error, (found.cost.value - true) / found.cost.error


def check(rows: Floats, k: int, method: str = "auto") -> None:
    """Nine of ten sizes and centres' coordinates are within two standard errors, and every silhouette and cost."""
    sizes, centers, scores, costs = zip(*(off(fitted(rows, k, seed, method), rows) for seed in range(3)), strict=True)
    assert (np.abs(np.concatenate(sizes)) <= 2).mean() >= 0.9
    if not method.endswith("median"):  # which stands for a median, not for the mean
        assert (np.abs(np.concatenate(centers)) <= 2).mean() >= 0.9
    assert np.abs(scores).max() <= 2
    assert np.abs(costs).max() <= 2.5


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["s1", "shuttle", "g10k_d32_k16"])
def test_figures_of_known_sets_are_within_two_standard_errors(data: Path, name: str) -> None:
    assert data.is_dir()
    found = datasets.load(name)
    check(found.rows, found.k)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("method", "d"), [("grid-means", 2), ("radius-means", 6), ("hst-means", 2), ("grid-median", 2)]
)
def test_figures_of_generated_rows_are_within_two_standard_errors(method: str, d: int) -> None:
    check(clumps(6000, 5, d), 5, method)


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
    rows, scale = clumps(3000, 3, 2), np.array([1000.0, 0.5])
    one = profile_of(fitted(rows, 3, 1, "hst-means"))
    other = profile_of(fitted(rows * scale, 3, 1, "hst-means", bounds=[(-1000, 1000), (-0.5, 0.5)], scale="bounds"))
    for a, b in zip(one.by_size, other.by_size, strict=True):
        assert b.size_error == pytest.approx(a.size_error, rel=0.5)
        assert np.array(b.center_error) == pytest.approx(np.array(a.center_error) * scale, rel=0.5)
    assert (one.scaled, other.scaled) == (False, True)
    tenfold = profile_of(fitted(rows * 10, 3, 1, "hst-means", bounds="-10:10"))
    assert tenfold.cost is not None
    assert one.cost is not None
    assert tenfold.cost.value == pytest.approx(100 * one.cost.value, rel=1e-2)
    assert tenfold.cost.error == pytest.approx(100 * (one.cost.error or 0), rel=0.5)


CELLS = np.array([[[middle - 0.05, -0.05], [middle + 0.05, 0.05]] for middle in (-0.6, -0.2, 0.7)])
BINS = {"edges": [0.1, 0.3, 0.5], "counts": [400.0, 300.0, 200.0], "errors": [1.0] * 3}


@pytest.mark.parametrize("how", ["cells", "distances"])
@pytest.mark.parametrize(("name", "power"), [("hst-means", 2), ("hst-median", 1)])
def test_a_cost_and_its_error_grow_with_the_unit_as_its_power_says(name: str, power: int, how: str) -> None:
    """One unit, of seven, in both columns; most of the error is what a model of rows leaves open."""

    def profile(unit: float) -> Profile:
        cells = {"cells": unit * CELLS, "cell_weights": [500.0, 100.0, 900.0], "cell_errors": [1.0] * 3}
        details = cells if how == "cells" else {"distances": BINS, "weights_error": [1.0] * 2}
        changes: dict[str, Any] = {
            "centers": unit * np.array([[-0.5, 0.0], [0.7, 0.0]]),
            "method": {"name": name, "options": {}, "slots": {}},
            "problem": {"k": 2, "bounds": {"lower": [-unit] * 2, "upper": [unit] * 2}},
            "details": {**details, "units": [unit] * 2},
        }
        return profile_of(made(2, 2, **changes))

    one, other = profile(1.0), profile(7.0)
    assert one.cost is not None
    assert one.cost.error is not None
    assert other.cost is not None
    assert other.cost.value == pytest.approx(7**power * one.cost.value, rel=1e-9)
    assert other.cost.error == pytest.approx(7**power * one.cost.error, rel=1e-9)
    assert one.silhouette is not None
    assert other.silhouette is not None
    assert other.silhouette.value == pytest.approx(one.silhouette.value, rel=1e-6)
    if how == "distances":  # of which noise is hardly any
        assert one.cost.error == pytest.approx(SPHERES_COST * one.cost.value, rel=0.05)
        assert one.silhouette.error == pytest.approx(SPHERES_ERROR, rel=0.05)


def test_a_result_that_states_no_errors_has_none() -> None:
    found = profile_of(made())
    assert (found.silhouette, found.cost) == (None, None)
    assert all(c.size is not None and c.size_error is None and c.center_error is None for c in found.clusters)
    assert "unknown: the method releases too little" in found.text()
    assert "Standard errors are unknown" in found.text()
    assert all(c.size is None and c.share is None for c in profile_of(made(weights=None)).clusters)


def test_details_of_a_stranger_that_mean_something_else_are_left_alone() -> None:
    names = ("weights_error", "centers_error", "cells", "cell_weights", "cell_errors", "distances")
    for given in ("words", {"a": 1}, [[1.0]], None, [["x", "y"]] * 3):
        found = profile_of(made(details=dict.fromkeys(names, given)))
        assert (found.silhouette, found.clusters[0].size_error) == (None, None)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(1234.567, 12.3), "1,235 \u00b1 12"),
        (Estimate(0.012345, 0.00067), "0.01235 \u00b1 0.00067"),
        (Estimate(1947988581.0, 194137692.0), "1,950,000,000 \u00b1 190,000,000"),
        (Estimate(-0.001, 0.4), "0.00 \u00b1 0.40"),
        (Estimate(1e6, math.inf), "1,000,000"),
        (Estimate(0.5, math.nan), "0.5"),
        (Estimate.of_share(0.7512, 0.0234), "75.1% \u00b1 2.3%"),
        (Estimate.of_share(0.7512), "75.12%"),
        (Estimate.of_share(1.0, 0.0), "100% \u00b1 0%"),
        (Estimate.of_size(12345.6), "12,346"),
        (Estimate.of_size(12345.6, 43.21), "12,346 \u00b1 43"),
    ],
)
def test_a_figure_has_as_many_digits_as_its_error_lets_mean_something(estimate: Estimate, text: str) -> None:
    assert estimate.text == text


@pytest.mark.parametrize(
    ("value", "width", "text"),
    [
        (1700000002.0114, 0.3, "1,700,000,002.0114"),
        (1700000002.0114, 3600.0, "1,700,000,002"),
        (-1700000002.0114, 0.3, "-1,700,000,002.0114"),
        (12.3456, 100.0, "12.35"),
        (0.00012345678, 1e-6, "0.000123457"),
        (0.0, 1.0, "0"),
        (12.3456, 0.0, "12.35"),
        (12.3456, math.nan, "12.35"),
        (math.inf, 1.0, "inf"),
    ],
)
def test_a_value_has_as_many_digits_as_the_width_that_matters(value: float, width: float, text: str) -> None:
    assert resolved(value, width) == text


def test_centres_and_intervals_far_from_0_are_told_apart_where_no_error_is_stated() -> None:
    """Seconds since 1970 of two sittings of a day."""
    rows = 1.7e9 + np.repeat([[2.25, 3.25], [8.25, 7.25]], 500, axis=0)
    bounds = [(1.7e9, 1.7e9 + 10)] * 2
    exact = Request(k=2, epsilon=1.0, bounds=bounds, rows=1000, method="lloyd", not_private=True, seed=1)
    result = fit(exact, source(rows))
    stated = profile_of(result)
    bare = profile_of(attrs.evolve(result, details={**result.details, "centers_error": None}))
    expected = {"1,700,000,002.25", "1,700,000,008.25"}
    assert len({cluster.coordinates[0] for cluster in stated.clusters}) == 2
    assert {cluster.coordinates[0] for cluster in bare.clusters} == expected
    assert [list(cluster.coordinates) for cluster in stated.clusters] == center_texts(result)
    wide = Request(k=2, epsilon=9.0, delta=1e-6, bounds=(1.7e9, 1.7e9 + 1e4), rows=1000, zoom=0.3, seed=1)
    private = fit(wide, source(rows), noise=NoiseRng.for_tests(1))
    (interval,) = [note for note in private.privacy.notes if "It released these intervals" in note]
    ends = re.findall(r"0 (1,7[\d,.]+\d) to (1,7[\d,.]+\d)", interval)[0]
    assert ends[0] != ends[1]


def method_of(name: str, solver: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "options": {},
        "slots": {"solver": {"name": solver, "options": {}, "slots": {}}} if solver else {},
    }


@pytest.mark.parametrize(
    ("method", "power"),
    [
        (method_of("hst-median"), 1),  # its Spec says so
        (method_of("weighted-centers-median"), 1),
        (method_of("fastlloyd"), 2),
        (method_of("a-strangers", solver="kmedian++"), 1),
        (method_of("a-strangers", solver="kmeans++"), 2),
    ],
)
def test_what_a_method_makes_small_is_told_by_its_spec_before_its_name(method: dict[str, Any], power: int) -> None:
    assert profile_of(attrs.evolve(made(), method=method)).power == power


def test_the_cost_of_a_strangers_k_median_is_called_a_mean_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name says nothing; its Spec does."""
    stranger = attrs.evolve(registry().spec("Method", "fastlloyd"), objective="k-median")
    monkeypatch.setattr(type(registry()), "spec", lambda self, role, name: stranger)
    result = attrs.evolve(made(), method=method_of("theirs"))
    assert "mean distance to the nearest centre" in profile_of(result).text()

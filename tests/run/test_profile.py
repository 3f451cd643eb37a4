"""Profiles and their figures: of released values alone, within two of their standard errors of what the rows say."""

from __future__ import annotations

import math
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
from cloister.showing import figures
from cloister.showing.profile import profile_of
from tests.showing.report.pages import made

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
    tenfold = profile_of(fitted(rows * 10, 3, 1, bounds="-10:10"))
    assert tenfold.cost is not None
    assert tenfold.cost.value == pytest.approx(100 * one.cost.value, rel=1e-3)
    assert tenfold.cost.error == pytest.approx(100 * (one.cost.error or 0), rel=1e-2)


def test_a_result_that_states_no_errors_has_none() -> None:
    found = profile_of(made())
    assert (found.silhouette, found.cost) == (None, None)
    assert all(c.size is not None and c.size_error is None and c.center_error is None for c in found.clusters)
    assert "not known: the method releases too little" in found.text()
    assert "Standard errors are not known" in found.text()
    unsized = profile_of(made(weights=None)).clusters
    assert all(c.size is None and c.share is None for c in unsized)


def test_details_of_a_stranger_that_mean_something_else_are_left_alone() -> None:
    names = ("weights_error", "centers_error", "cells", "cell_weights", "cell_errors", "distances")
    for given in ("words", {"a": 1}, [[1.0]], None, [["x", "y"]] * 3):
        found = profile_of(made(details=dict.fromkeys(names, given)))
        assert (found.silhouette, found.clusters[0].size_error) == (None, None)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(1234.567, 12.3), "1,235 \u00b1 12"),
        (Estimate(1947988581.0, 194137692.0), "1,950,000,000 \u00b1 190,000,000"),
        (Estimate(-0.001, 0.4), "0.00 \u00b1 0.40"),
        (Estimate(3.0), "3"),
        (Estimate(1e6, math.inf), "1e+06"),
    ],
)
def test_a_figure_has_as_many_digits_as_its_error_lets_mean_something(estimate: Estimate, text: str) -> None:
    assert estimate.text == text


# what sets a centre apart


def grouped(centers: Any, weights: Any, **changes: Any) -> Result:
    places = np.array(centers, float)
    return made(places.shape[1], len(places), centers=places, weights=np.array(weights, float), **changes)


def test_a_column_sets_a_centre_apart_from_three_quarters_of_the_spread_on() -> None:
    """Of weights 1 and 2 the lighter centre is sqrt 2 spreads off the mean, the heavier 0.71; of equal ones both are
    one. Of 9 and 16 they are 4/3 and exactly 3/4."""
    heavy = profile_of(grouped([[0.0], [1.0]], [1, 2])).clusters
    assert [c.apart for c in heavy] == [("c0 low",), ()]
    assert [c.apart for c in profile_of(grouped([[0.0], [1.0]], [1, 1])).clusters] == [("c0 low",), ("c0 high",)]
    edge = profile_of(grouped([[0.0], [1.0]], [9, 15.9])).clusters
    assert [c.apart for c in edge] == [("c0 low",), ("c0 high",)]
    assert profile_of(grouped([[0.0], [1.0]], [9, 16.1])).clusters[1].apart == ()


def test_it_must_be_off_by_two_standard_errors() -> None:
    for error, said in ((0.249, ("c0 low",)), (0.251, ())):
        found = grouped([[0.0], [1.0]], [1, 1], details={"centers_error": [[error], [error]]})
        assert profile_of(found).clusters[0].apart == said


def test_no_more_than_three_columns_are_named_the_clearest_first() -> None:
    found = grouped([[0, 0, 0, 0, 0.0], [1, 1, 1, 1, 1], [2, 3, 4, 5, 6]], [1, 1, 1])
    assert len(profile_of(found).clusters[0].apart) == 3
    assert profile_of(found).clusters[2].apart == ("c4 high", "c3 high", "c2 high")


# figures


def boxes(
    weights: Any, errors: Any, centers: Any = ((0.0, 0.0), (10.0, 0.0)), side: float = 0.6
) -> figures.FilledBoxes:
    """Boxes around (2, 0) of centre 0, (11, 0) of centre 1, and (30, 0) far from both."""
    middles = np.array([[2.0, 0.0], [11.0, 0.0], [30.0, 0.0]])
    corners = np.stack([middles - side / 2, middles + side / 2], axis=1)
    return figures.FilledBoxes(corners, np.array(weights, float), np.array(errors, float), np.array(centers))


def test_a_boxs_variance_is_taken_off_but_for_fifteen_hundredths() -> None:
    """Squared distances 4 and 1: 2.5 on average; two sides of 0.6 have a variance of 0.06."""
    assert boxes([50, 50, 0], [1, 1, 1]).square == pytest.approx(2.5 - 0.06)
    assert boxes([50, 50, 0], [1, 1, 1], side=3.8).square == pytest.approx(0.15 * 2.5)


def test_boxes_too_wide_to_tell_distances_are_not_estimated_from() -> None:
    """A variance of twice the cost: 2 (2.5 - v) = v, at v = 5/3, a side of sqrt 10."""
    for side, told in ((3.1, True), (3.2, False)):
        model = boxes([50, 50, 0], [1, 1, 1], side=side)
        details = {"cells": model.boxes, "cell_weights": model.weights, "cell_errors": model.errors}
        found = grouped([[0.0, 0.0], [10.0, 0.0]], [50, 50], details=details)
        assert (figures.model_of(found) is not None) == told
        assert figures.model_of(attrs.evolve(found, details={**details, "projection": 1})) is None
        assert figures.model_of(attrs.evolve(found, details={**details, "cell_weights": [0, 0, -1]})) is None


def test_the_error_of_a_figure_has_its_doubt_and_what_noise_adds_on_average() -> None:
    """A figure that is 1, and 3 with any noise: nothing spreads, and the mean is off by 2."""

    class Fake:
        def again(self, g: Any) -> Fake:
            return Fake()

    first: Any = Fake()
    value, error = figures.estimated(first, lambda m: 1.0 if m is first else 3.0, 1.5)
    assert (value, error) == (1.0, 2.5)


CENTERS = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 5.0]])


def model_rows(n: int = 3000, seed: int = 0) -> Floats:
    g = np.random.default_rng(seed)
    return CENTERS[g.integers(0, 3, n)] + g.standard_normal((n, 2))


def counted_boxes(side: float, error: float = 0.0) -> figures.FilledBoxes:
    """What a grid of this side counts."""
    low, which = np.unique(np.floor(model_rows() / side), axis=0, return_inverse=True)
    counts = np.bincount(which.ravel()).astype(float)
    corners = np.stack([low * side, (low + 1) * side], axis=1)
    return figures.FilledBoxes(corners, counts, np.full(len(counts), error), CENTERS)


def counted_spheres(error: float = 0.0) -> figures.Spheres:
    """What bins of distances count."""
    edges = 8 * 2.0 ** (-np.arange(20)[::-1] / 2)
    away = np.sqrt(((model_rows()[:, None] - CENTERS) ** 2).sum(axis=2).min(axis=1))
    counts = np.bincount(np.searchsorted(edges, away), minlength=20).astype(float)
    sizes = np.bincount(labels(model_rows(), CENTERS)).astype(float)
    return figures.Spheres(edges, counts, np.full(20, error), sizes, np.full(3, error), CENTERS)


@pytest.mark.parametrize("n", [50, 400])
def test_the_silhouette_is_that_of_scikit_learn(n: int) -> None:
    assert figures.silhouette(model_rows(n), CENTERS) == pytest.approx(silhouette(model_rows(n), CENTERS), abs=1e-9)
    assert figures.silhouette(model_rows(n), CENTERS[:1]) == -1
    alone = np.concatenate([model_rows(n), [[90.0, 90.0]]])
    centers = np.concatenate([CENTERS, [[90.0, 90.0]]])
    assert figures.silhouette(alone, centers) == pytest.approx(silhouette(alone, centers), abs=1e-9)


@pytest.mark.parametrize("modelled", [lambda e: counted_boxes(0.5, e), counted_spheres], ids=["boxes", "distances"])
def test_the_error_of_a_cost_follows_the_noise_and_halving_it_is_seen(modelled: object) -> None:
    """The spread of 40 noisy costs over the mean stated error of noise: 1, less what the mean of so few leaves out."""
    assert callable(modelled)
    model, g = modelled(25.0), np.random.default_rng(2)
    noisy = [model.again(g) for _ in range(40)]
    values = [m.cost(2) for m in noisy]
    stated = np.mean([figures.estimated(m, lambda m: m.cost(2), 0.0)[1] for m in noisy])
    assert 0.6 < np.std(values) / stated < 1.3


def test_points_are_as_many_as_weights_ask_for_whatever_noise_made_of_them() -> None:
    assert np.bincount(figures.spread(np.array([1.0, 0.0, 3.0, -2.0]), 400)).tolist() == [100, 0, 300]
    assert np.bincount(figures.spread(np.array([-1.0, -2.0]), 10)).tolist() == [5, 5]

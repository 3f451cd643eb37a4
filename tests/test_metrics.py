"""Figures of merit against closed forms, brute force, SciPy and scikit-learn."""

from __future__ import annotations

import inspect
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister import metrics
from cloister.core.errors import InvalidInput

EIGHT = np.array([[0, 0], [1, 0], [0, 2], [1, 3], [9, 9], [8, 9], [9, 7], [5, 5]], np.float64)
TWO = np.array([[0.5, 1.0], [8.5, 8.0]])


def brute_labels(rows: Any, centers: Any) -> list[int]:
    return [min(range(len(centers)), key=lambda j: math.dist(row, centers[j])) for row in rows]


# costs


def test_the_cost_of_a_line_is_its_closed_form() -> None:
    rows, centers = [[0.0], [1.0], [2.0], [10.0]], [[1.0], [8.0]]
    assert metrics.cost(rows, centers) == 1 + 0 + 1 + 4
    assert metrics.nicv(rows, centers) == 6 / 4
    assert metrics.k_median_cost(rows, centers) == 1 + 0 + 1 + 2
    assert metrics.cost(rows, centers, power=3) == pytest.approx(1 + 0 + 1 + 8)


@given(n=st.integers(1, 40), d=st.integers(1, 6), k=st.integers(1, 9), chunk=st.integers(1, 100))
@settings(deadline=None, max_examples=50)
def test_chunks_of_any_size_give_the_same_cost(n: int, d: int, k: int, chunk: int) -> None:
    rng = np.random.default_rng((n, d, k))
    rows, centers = rng.normal(size=(n, d)), rng.normal(size=(k, d))
    whole = metrics.cost(rows, centers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "_CHUNK", chunk)
        assert metrics.cost(rows, centers) == pytest.approx(whole, rel=1e-12)
        assert metrics.labels(rows, centers).tolist() == brute_labels(rows, centers)
        exact = np.linalg.norm(rows[:, None] - centers, axis=2)
        assert metrics.distances(rows, centers) == pytest.approx(exact, rel=1e-9)


def test_the_cost_does_not_lose_digits_far_from_the_origin() -> None:
    rows = np.random.default_rng(3).integers(-512, 512, (500, 4)) / 1024.0
    far = 2.0**30
    assert metrics.cost(rows + far, rows[:5] + far) == pytest.approx(metrics.cost(rows, rows[:5]), rel=1e-12)
    assert metrics.labels(rows + far, rows[:5] + far).tolist() == brute_labels(rows, rows[:5])
    assert metrics.distances(rows + far, rows[:5] + far) == pytest.approx(metrics.distances(rows, rows[:5]), abs=1e-9)


def test_of_equal_centers_the_first_is_nearest() -> None:
    centers = np.array([[5.0, 5.0], [1.0, 2.0], [1.0, 2.0], [5.0, 5.0], [1.0, 2.0]])
    rows = np.random.default_rng(5).normal(size=(1000, 2)) * 5
    assert set(metrics.labels(rows, centers).tolist()) == {0, 1}


def test_the_distance_of_a_row_beside_its_center_keeps_its_digits() -> None:
    """The product alone would say 0, or 1e-8, beside terms of size 1."""
    rows = [[1.0 + 1e-10, 0.0], [1.0, 3e-13]]
    assert metrics.distances(rows, [[1.0, 0.0], [-1.0, 0.0]])[:, 0] == pytest.approx([1e-10, 3e-13], rel=1e-5)


# clusters


@pytest.mark.parametrize(
    "centers",
    [TWO, [*TWO.tolist(), [5.0, 5.0]], [*TWO.tolist(), [1e6, 1e6]]],
)
def test_silhouette_and_davies_bouldin_are_scikit_learns(centers: Any) -> None:
    """Which gives 0 to a row alone in its cluster, as Rousseeuw does."""
    from sklearn.metrics import davies_bouldin_score, silhouette_score

    labels = brute_labels(EIGHT, centers)
    expected = silhouette_score(EIGHT, labels), davies_bouldin_score(EIGHT, labels)
    assert (metrics.silhouette(EIGHT, centers), metrics.davies_bouldin(EIGHT, centers)) == pytest.approx(
        expected, rel=1e-12
    )


@pytest.mark.parametrize("far", [1e6, 1.7e9, 1e13, -1e13])
def test_figures_of_clusters_do_not_change_where_all_rows_are_moved(far: float) -> None:
    """Seconds since 1970, for one: products of numbers of 1e9 have no digits left for distances of 1."""
    g = np.random.default_rng(0)
    rows = np.repeat(TWO, 500, axis=0) + g.integers(-512, 512, (1000, 2)) / 512.0  # sums with 1e13 are exact
    for figure in (metrics.silhouette, metrics.davies_bouldin):
        assert figure(rows + far, TWO + far) == pytest.approx(figure(rows, TWO), rel=1e-4)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_figures_of_clusters_do_not_change_with_the_unit(unit: float) -> None:
    for figure in (metrics.silhouette, metrics.davies_bouldin):
        assert figure(EIGHT * unit, TWO * unit) == pytest.approx(figure(EIGHT, TWO), rel=1e-9)


def test_two_clusters_beside_each_other_are_seen_though_a_third_is_far_away() -> None:
    rows = np.concatenate([EIGHT, EIGHT + 1e7])
    centers = np.concatenate([TWO, TWO + 1e7])
    assert metrics.silhouette(rows, centers) == pytest.approx(metrics.silhouette(EIGHT, TWO), rel=1e-6)


@pytest.mark.parametrize(
    ("centers", "silhouette", "davies_bouldin"),
    [
        (EIGHT, 0.0, 0.0),
        ([[4.0, 4.0]], -1.0, math.inf),
        ([[4.0, 4.0], [1e6, 1e6]], -1.0, math.inf),
        ([[4.0, 4.0], [4.0, 4.0]], -1.0, math.inf),
    ],
)
def test_rows_that_are_all_alone_have_figures_and_a_single_cluster_the_worst(
    centers: Any, silhouette: float, davies_bouldin: float
) -> None:
    assert (metrics.silhouette(EIGHT, centers), metrics.davies_bouldin(EIGHT, centers)) == (silhouette, davies_bouldin)


# summaries


def test_the_interval_agrees_with_scipy() -> None:
    from scipy import stats

    values = np.random.default_rng(9).exponential(size=17)
    mean, error = metrics.mean_interval(values), stats.sem(values)
    expected = (*stats.t.interval(0.95, 16, loc=values.mean(), scale=error), error)
    assert (mean.low, mean.high, mean.standard_error) == pytest.approx(expected, rel=1e-12)


def test_an_evaluation_holds_every_figure_and_is_fit_for_json() -> None:
    found = metrics.evaluate(EIGHT, TWO, reference=TWO + 1)
    assert (found.k_median, found.center_mse) == (metrics.k_median_cost(EIGHT, TWO), metrics.center_mse(TWO, TWO + 1))
    for name in ("nicv", "silhouette", "davies_bouldin"):
        assert getattr(found, name) == getattr(metrics, name)(EIGHT, TWO)
    single = metrics.evaluate(EIGHT, [[4.0, 4.0]]).as_dict()
    assert (single["davies_bouldin"], single["center_mse"]) == ("inf", None)
    assert json.loads(json.dumps(single, allow_nan=False)) == single


def test_a_silhouette_of_a_sample_is_of_rows_that_are_drawn_once_each() -> None:
    """All but one of twelve rows: the figure without one of them, whichever it is."""
    rows = np.random.default_rng(8).normal(size=(12, 2)) + np.repeat([[0.0, 0.0], [3.0, 0.0]], 6, axis=0)
    centers = np.array([[0.0, 0.0], [3.0, 0.0]])
    without = [metrics.silhouette(np.delete(rows, i, axis=0), centers) for i in range(12)]
    found = [metrics.silhouette(rows, centers, sample=11, seed=seed) for seed in range(8)]
    assert all(min(abs(figure - each) for each in without) < 1e-12 for figure in found)
    assert len(set(found)) > 1
    assert metrics.silhouette(rows, centers, sample=12, seed=1) == metrics.silhouette(rows, centers)


# errors


ROWS_AND_CENTERS = [
    metrics.cost,
    metrics.nicv,
    metrics.k_median_cost,
    metrics.silhouette,
    metrics.davies_bouldin,
    metrics.labels,
    metrics.distances,
]


@pytest.mark.parametrize(
    ("rows", "centers", "says"),
    [
        (EIGHT, [[1.0, 2.0, 3.0]], "rows have 2 columns and centers 3"),
        (EIGHT, np.zeros((0, 2)), r"centers must be a table .* \(0, 2\)"),
        ([*EIGHT.tolist(), [math.nan, 1.0]], TWO, "rows must be finite: row 8 "),
        (EIGHT, [[1.0, 2.0], [math.inf, 1.0]], "centers must be finite: row 1 "),
        ([["a", "b"]], TWO, "rows must be real numbers"),
        ([[1 + 2j, 0j]], TWO, "rows must be real numbers, not of type complex128"),
        ([[1.0, 2.0], [1.0]], TWO, "rows must be numbers in a regular shape"),
    ],
)
def test_rows_and_centers_that_cannot_be_used_are_refused(rows: Any, centers: Any, says: str) -> None:
    for figure in (*ROWS_AND_CENTERS, metrics.evaluate):
        with pytest.raises(InvalidInput, match=says):
            figure(rows, centers)


def test_a_bad_row_in_a_later_chunk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_CHUNK", 20)
    rows = np.zeros((1000, 2))
    rows[777, 1] = np.nan
    for figure in ROWS_AND_CENTERS:
        with pytest.raises(InvalidInput, match="row 777 "):
            figure(rows, TWO)


def test_distances_of_rows_whose_squares_are_beyond_floats_are_infinite_and_no_bad_rows() -> None:
    found = metrics.distances(np.array([[3.0, 4.0], [1e200, 0.0]]), np.zeros((1, 2)))
    assert found.tolist() == [[5.0], [math.inf]]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: metrics.cost(EIGHT, TWO, power=math.nan), "power"),
        (lambda: metrics.silhouette(EIGHT, TWO, sample=1), "sample"),
        (lambda: metrics.center_mse(TWO, EIGHT), "cannot be matched"),
        (lambda: metrics.center_mse(TWO, TWO * np.nan), "reference must be finite"),
        (lambda: metrics.reference_centers(EIGHT, 9, seed=0), "between 1 and the 8 rows"),
        (lambda: metrics.mean_interval([]), "at least one"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(call: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        call()


# laws


def test_every_function_on_rows_says_that_it_is_not_private() -> None:
    public = {n: f for n, f in inspect.getmembers(metrics, inspect.isfunction) if f.__module__ == metrics.__name__}
    on_rows = {n for n, f in public.items() if not n.startswith("_") and "rows" in inspect.signature(f).parameters}
    assert on_rows == {f.__name__ for f in (*ROWS_AND_CENTERS, metrics.reference_centers, metrics.evaluate)}
    for name in on_rows | {"center_mse", "Evaluation"}:
        assert "NOT private" in (getattr(metrics, name).__doc__ or ""), name

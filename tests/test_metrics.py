"""Figures of merit against closed forms, brute force, SciPy and scikit-learn."""

from __future__ import annotations

import inspect
import itertools
import json
import math
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from cloister import metrics
from cloister.core.errors import InvalidInput

EIGHT = np.array([[0, 0], [1, 0], [0, 2], [1, 3], [9, 9], [8, 9], [9, 7], [5, 5]], np.float64)
TWO = np.array([[0.5, 1.0], [8.5, 8.0]])


def brute_cost(rows: Any, centers: Any, power: float) -> float:
    return math.fsum(min(math.dist(row, center) for center in centers) ** power for row in rows)


def brute_labels(rows: Any, centers: Any) -> list[int]:
    return [min(range(len(centers)), key=lambda j: math.dist(row, centers[j])) for row in rows]


# costs


def test_the_cost_of_a_line_is_its_closed_form() -> None:
    rows, centers = [[0.0], [1.0], [2.0], [10.0]], [[1.0], [8.0]]
    assert metrics.cost(rows, centers) == 1 + 0 + 1 + 4
    assert metrics.nicv(rows, centers) == 6 / 4
    assert metrics.k_median_cost(rows, centers) == 1 + 0 + 1 + 2
    assert metrics.cost(rows, centers, power=3) == pytest.approx(1 + 0 + 1 + 8)


def test_the_cost_agrees_with_the_inertia_of_scikit_learn() -> None:
    from sklearn.cluster import KMeans

    rows = np.random.default_rng(1).normal(size=(2000, 5))
    found = KMeans(n_clusters=6, n_init=1, random_state=0).fit(rows)
    assert metrics.cost(rows, found.cluster_centers_) == pytest.approx(found.inertia_, rel=1e-12)


tables = hnp.arrays(np.float64, st.tuples(st.integers(1, 30), st.just(3)), elements=st.floats(-100, 100))


@given(rows=tables, centers=tables, power=st.sampled_from([1.0, 2.0, 2.5]))
@settings(deadline=None, max_examples=50)
def test_the_cost_of_any_table_is_brute_force(rows: Any, centers: Any, power: float) -> None:
    """Of two centres almost as near either may be taken: squared distances are compared to about 1e-11, so distances to
    1e-5."""
    wanted, slack = brute_cost(rows, centers, power), {1.0: 1e-5, 2.0: 1e-9, 2.5: 1e-7}[power]
    assert metrics.cost(rows, centers, power) == pytest.approx(wanted, rel=1e-9, abs=slack * len(rows))


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


@pytest.mark.parametrize("kind", ["f4", "i8", "u1", "?"])
def test_rows_of_any_real_type_are_welcome(kind: str) -> None:
    rows = np.random.default_rng(2).integers(0, 2, (50, 3)).astype(kind)
    wanted = brute_cost(rows.astype(float), [[0.25, 0.5, 0.75]], 2)
    assert metrics.cost(rows, [[0.25, 0.5, 0.75]]) == pytest.approx(wanted, rel=1e-12)


def test_the_cost_does_not_lose_digits_far_from_the_origin() -> None:
    rows = np.random.default_rng(3).integers(-512, 512, (500, 4)) / 1024.0
    far = 2.0**30
    assert metrics.cost(rows + far, rows[:5] + far) == pytest.approx(metrics.cost(rows, rows[:5]), rel=1e-12)
    assert metrics.labels(rows + far, rows[:5] + far).tolist() == brute_labels(rows, rows[:5])
    assert metrics.distances(rows + far, rows[:5] + far) == pytest.approx(metrics.distances(rows, rows[:5]), abs=1e-9)


def test_float32_rows_far_away_are_told_apart_by_what_they_differ_in() -> None:
    rows = (np.random.default_rng(4).integers(0, 9, (1000, 3)) + 1e6).astype(np.float32)
    centers = np.unique(rows[:40], axis=0).astype(np.float64)
    exact = np.linalg.norm(rows[:, None].astype(np.float64) - centers, axis=2)
    assert (exact[np.arange(len(rows)), metrics.labels(rows, centers)] == exact.min(axis=1)).all()
    assert metrics.distances(rows, centers) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_of_equal_centers_the_first_is_nearest(sign: float) -> None:
    centers = sign * np.array([[5.0, 5.0], [1.0, 2.0], [1.0, 2.0], [5.0, 5.0], [1.0, 2.0]])
    rows = np.random.default_rng(5).normal(size=(1000, 2)) * 5
    assert set(metrics.labels(rows, centers).tolist()) == {0, 1}


def test_the_distance_of_a_row_beside_its_center_keeps_its_digits() -> None:
    """The product alone would say 0, or 1e-8, beside terms of size 1."""
    centers = np.array([[1.0, 0.0], [-1.0, 0.0]])
    rows = centers[:1] + np.array([[1e-10, 0.0], [0.0, 3e-13]])
    assert metrics.distances(rows, centers)[:, 0] == pytest.approx([1e-10, 3e-13], rel=1e-5)


@pytest.mark.parametrize(("figure", "most"), [(metrics.labels, 8 * 200_000 + 2**22), (metrics.cost, 2**22)])
def test_memory_does_not_grow_with_the_rows(figure: Any, most: int) -> None:
    """Beyond what is returned."""
    rows, centers = np.ones((200_000, 10), np.float32), np.random.default_rng(6).normal(size=(10, 10))
    figure(rows[:1000], centers)
    tracemalloc.start()
    figure(rows, centers)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < most


def test_threads_change_no_figure() -> None:
    rng = np.random.default_rng(7)
    rows, centers = rng.normal(size=(60_000, 4)), rng.normal(size=(7, 4))
    for figure in (metrics.labels, metrics.distances, metrics.cost):
        assert np.array_equal(figure(rows, centers, threads=3), figure(rows, centers, threads=1))


# clusters


@pytest.mark.parametrize(
    "centers",
    [TWO, [*TWO.tolist(), [5.0, 5.0]], [*TWO.tolist(), [1e6, 1e6]]],
    ids=["two", "and one with a row of its own", "and one without rows"],
)
def test_silhouette_and_davies_bouldin_are_scikit_learns(centers: Any) -> None:
    """Which gives 0 to a row alone in its cluster, as Rousseeuw does."""
    from sklearn.metrics import davies_bouldin_score, silhouette_score

    labels = brute_labels(EIGHT, centers)
    assert metrics.silhouette(EIGHT, centers) == pytest.approx(silhouette_score(EIGHT, labels), rel=1e-12)
    assert metrics.davies_bouldin(EIGHT, centers) == pytest.approx(davies_bouldin_score(EIGHT, labels), rel=1e-12)


def test_rows_that_are_all_alone_have_figures() -> None:
    assert (metrics.silhouette(EIGHT, EIGHT), metrics.davies_bouldin(EIGHT, EIGHT)) == (0.0, 0.0)


@pytest.mark.parametrize("centers", [[[4.0, 4.0]], [[4.0, 4.0], [1e6, 1e6]], [[4.0, 4.0], [4.0, 4.0]]])
def test_a_single_cluster_has_the_worst_figures(centers: list[list[float]]) -> None:
    assert metrics.silhouette(EIGHT, centers) == -1.0
    assert metrics.davies_bouldin(EIGHT, centers) == math.inf


def test_the_silhouette_of_a_sample_is_seeded_and_close_to_the_whole() -> None:
    rng = np.random.default_rng(4)
    rows = np.concatenate([rng.normal(0, 1, (1000, 2)), rng.normal(6, 1, (1000, 2))])
    centers = [[0.0, 0.0], [6.0, 6.0]]
    whole = metrics.silhouette(rows, centers, sample=2000)
    some = metrics.silhouette(rows, centers, sample=1000, seed=7)
    assert some == metrics.silhouette(rows, centers, sample=1000, seed=7)
    assert some != metrics.silhouette(rows, centers, sample=1000, seed=8)
    assert some == pytest.approx(whole, abs=0.03)


# centres


def test_matched_centers_are_the_best_of_all_permutations() -> None:
    rng = np.random.default_rng(5)
    found, wanted = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    best = min(np.mean(np.sum((found[list(p)] - wanted) ** 2, axis=1)) for p in itertools.permutations(range(5)))
    assert metrics.center_mse(found, wanted) == pytest.approx(best, rel=1e-12)
    assert metrics.center_mse(wanted[::-1], wanted) == 0.0


def test_reference_centers_find_clear_clusters_and_are_seeded() -> None:
    rng = np.random.default_rng(6)
    wanted = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    rows = (wanted[:, None, :] + rng.normal(0, 0.1, (3, 200, 2))).reshape(-1, 2).astype(np.float32)
    found = metrics.reference_centers(rows, 3, seed=1)
    assert found.dtype == np.float64
    assert metrics.center_mse(found, wanted) < 1e-3
    np.testing.assert_array_equal(found, metrics.reference_centers(rows, 3, seed=1))


# summaries


def test_the_interval_agrees_with_scipy() -> None:
    from scipy import stats

    values = np.random.default_rng(9).exponential(size=17)
    mean = metrics.mean_interval(values)
    low, high = stats.t.interval(0.95, 16, loc=values.mean(), scale=stats.sem(values))
    assert (mean.low, mean.high) == pytest.approx((low, high), rel=1e-12)
    assert mean.standard_error == pytest.approx(stats.sem(values), rel=1e-12)


def test_a_single_run_says_nothing_about_its_spread() -> None:
    assert metrics.mean_interval([3.5]) == metrics.Mean(3.5, math.inf, -math.inf, math.inf)


def test_an_evaluation_holds_every_figure_and_is_fit_for_json() -> None:
    found = metrics.evaluate(EIGHT, TWO, reference=TWO + 1)
    assert (found.nicv, found.k_median) == (metrics.nicv(EIGHT, TWO), metrics.k_median_cost(EIGHT, TWO))
    assert found.silhouette == metrics.silhouette(EIGHT, TWO)
    assert found.davies_bouldin == metrics.davies_bouldin(EIGHT, TWO)
    assert found.center_mse == metrics.center_mse(TWO, TWO + 1)
    single = metrics.evaluate(EIGHT, [[4.0, 4.0]]).as_dict()
    assert (single["davies_bouldin"], single["center_mse"]) == ("inf", None)
    assert json.loads(json.dumps(single, allow_nan=False)) == single


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
        (np.zeros((3, 0)), np.zeros((1, 0)), r"not of shape \(3, 0\)"),
        ([1.0, 2.0], TWO, r"not of shape \(2,\)"),
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
    with pytest.raises(InvalidInput, match="row 777"):
        metrics.nicv(rows, TWO)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: metrics.cost(EIGHT, TWO, power=0), "power"),
        (lambda: metrics.cost(EIGHT, TWO, power=math.nan), "power"),
        (lambda: metrics.silhouette(EIGHT, TWO, sample=1), "sample"),
        (lambda: metrics.center_mse(TWO, EIGHT), "cannot be matched"),
        (lambda: metrics.center_mse(TWO, TWO * np.nan), "reference must be finite"),
        (lambda: metrics.reference_centers(EIGHT, 9, seed=0), "between 1 and the 8 rows"),
        (lambda: metrics.reference_centers(EIGHT, 0, seed=0), "between 1 and the 8 rows"),
        (lambda: metrics.mean_interval([]), "at least one"),
        (lambda: metrics.mean_interval([[0.1, 0.2]]), "plain list"),
        (lambda: metrics.mean_interval([1.0, math.inf]), "values must be finite: number 1"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(call: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        call()


# laws


def test_importing_the_module_loads_neither_scipy_nor_scikit_learn() -> None:
    code = "import sys, cloister.metrics; print([m for m in ('scipy', 'sklearn', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_function_on_rows_says_that_it_is_not_private() -> None:
    public = {n: f for n, f in inspect.getmembers(metrics, inspect.isfunction) if f.__module__ == metrics.__name__}
    on_rows = {n for n, f in public.items() if not n.startswith("_") and "rows" in inspect.signature(f).parameters}
    assert on_rows == {f.__name__ for f in (*ROWS_AND_CENTERS, metrics.reference_centers, metrics.evaluate)}
    for name in on_rows | {"center_mse", "Evaluation"}:
        assert "NOT private" in (getattr(metrics, name).__doc__ or ""), name

"""Gaussian clusters at a wanted separation: against closed forms, an optimiser and samples."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.errors import InvalidInput
from cloister.lab.made import scaled
from cloister.lab.separated import (
    Mixture,
    _apart,
    _sharpest,
    _shifted_simplex,
    in_proportion,
    separated,
)
from tests.alarms import Alarm

Z = 1.959963984540054


def separation_index(mixture: Mixture) -> Any:
    """The separation index J of every pair of clusters (k, k), 1 on the diagonal.

    On a line w with m = w'(c2 - c1) and standard deviations s1, s2, J = (m - z (s1 + s2)) / (m + z (s1 + s2)) with
    z = 1.96. It grows with m / (s1 + s2), and the line is the one that makes that largest.

    Source: Qiu and Joe, Separation index and partial membership for clustering, CSDA 50 (2006).
    """
    reach, width, _ = _sharpest(mixture.centers, mixture.covariances)
    apart = _apart(reach, width)
    np.fill_diagonal(apart, 0.0)
    index = (apart - Z) / (apart + Z)
    np.fill_diagonal(index, 1.0)
    return index


def test_centers_start_on_a_regular_simplex_and_its_shifted_copies() -> None:
    simplex = _shifted_simplex(6, 5)
    for a, b in itertools.combinations(simplex, 2):
        assert math.dist(a, b) == pytest.approx(2)
    r = math.sqrt(3)
    strip = np.array([[-1, 0], [1, 0], [0, r], [3, 0], [2, r], [5, 0], [4, r]])
    np.testing.assert_allclose(_shifted_simplex(7, 2), strip, atol=1e-12)


@pytest.mark.parametrize(("apart", "index"), [(4, 0.01011020), (6, 0.2096862), (8, 0.34229)])
def test_the_index_has_the_values_of_its_authors(apart: float, index: float) -> None:
    """Qiu and Joe's examples: N(0, 1) and N(apart, 1) are close, separated, well separated."""
    pair = Mixture(np.array([[0.0, 0.0], [apart, 0.0]]), np.array([np.eye(2), np.eye(2)]))
    assert separation_index(pair)[0, 1] == pytest.approx(index, abs=1e-5)


def test_the_index_agrees_with_a_general_optimiser() -> None:
    from scipy.optimize import minimize

    made = separated(3, 6, 0.3, np.random.default_rng(2))
    index = separation_index(made)
    rng = np.random.default_rng(3)
    for i, j in itertools.combinations(range(3), 2):
        step = made.centers[j] - made.centers[i]

        def minus(w: Any, i: int = i, j: int = j, step: Any = step) -> float:
            half = Z * sum(math.sqrt(w @ made.covariances[c] @ w) for c in (i, j))
            return float(-(w @ step - half) / (w @ step + half)) if w @ step > 0 else 1.0

        found = min(minimize(minus, step + rng.normal(size=6), method="BFGS").fun for _ in range(5))
        assert index[i, j] == pytest.approx(-found, abs=1e-6)


@given(k=st.integers(2, 12), d=st.integers(2, 9), wanted=st.floats(-0.5, 0.9), seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=30)
def test_every_cluster_is_at_the_wanted_index_from_its_nearest_neighbour(
    k: int, d: int, wanted: float, seed: int
) -> None:
    index = separation_index(separated(k, d, wanted, np.random.default_rng(seed)))
    np.testing.assert_allclose(index, index.T, atol=1e-6)
    np.testing.assert_allclose(np.sort(index, axis=1)[:, 0], wanted, atol=1e-5)


@pytest.mark.alarm(1e-8)
def test_samples_have_the_sizes_means_and_covariances_of_the_mixture(alarm: Alarm) -> None:
    """Six standard errors on each of 2 * (3 + 6) moments."""
    rng = np.random.default_rng(5)
    made = separated(2, 3, 0.2, rng)
    rows = made.sample(np.array([100_000, 50_000]), rng)
    assert rows.shape == (150_000, 3)
    for i, part in enumerate((rows[:100_000], rows[100_000:])):
        spread = np.sqrt(np.diagonal(made.covariances[i]))
        alarm.near(part.mean(axis=0), made.centers[i], spread / math.sqrt(len(part)), of=100)
        bound = alarm.errors(10_000) * math.sqrt(2 / len(part)) * np.outer(spread, spread)
        assert np.all(np.abs(np.cov(part.T) - made.covariances[i]) < bound)


@pytest.mark.parametrize(("k", "d", "wanted"), [(1, 2, 0.2), (2, 1, 0.2), (2, 2, 1.0), (2, 2, -1.0), (2, 2, math.nan)])
def test_clusters_that_cannot_be_made_are_refused(k: int, d: int, wanted: float) -> None:
    with pytest.raises(InvalidInput, match="k >= 2, d >= 2"):
        separated(k, d, wanted, np.random.default_rng(0))


def test_cluster_sizes_are_in_the_ratio_one_to_k() -> None:
    assert in_proportion(10_000, 4).tolist() == [1000, 2000, 3000, 4000]
    for k in (2, 4, 8, 16, 32, 64, 128):
        sizes = in_proportion(10_000, k)
        assert sizes.sum() == 10_000
        assert np.all(np.abs(sizes - 20_000 * np.arange(1, k + 1) / (k * (k + 1))) <= 1)
    with pytest.raises(InvalidInput, match="too few"):
        in_proportion(10, 10)


def test_scaling_is_affine_and_a_constant_column_becomes_zero() -> None:
    rows = np.random.default_rng(0).normal(3, 7, (100, 4))
    rows[:, 2] = 5.5
    found = scaled(rows)
    assert np.all(found[:, 2] == 0)
    assert np.all(np.abs(found) <= 1)
    np.testing.assert_allclose(scaled(-3 * rows + 8), -found, atol=1e-12)
    np.testing.assert_allclose(scaled(found), found, atol=1e-15)

"""Small sums over released points."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.core.domains import Box
from cloister.plugins.methods.post_processing import (
    denoised,
    empirical_bayes,
    place_clusters,
    pooled_james_stein,
    project_to_simplex,
)
from tests.plugins.tables import coreset


def test_one_factor_for_all_steps_takes_the_noise_off_their_energy() -> None:
    steps, errors = np.array([[3.0, 4.0], [0.0, 5.0]]), np.array([1.0, 2.0])
    assert np.isclose(pooled_james_stein(steps, errors), 1 - 2 * 5 / 50)
    assert np.isclose(pooled_james_stein(steps, errors, np.array([1.0, 0.0])), 1 - 2 / 25)
    assert pooled_james_stein(steps, 10 * errors) == 0.0


def test_projected_counts_are_the_nearest_of_their_total_that_are_not_negative() -> None:
    """Kuhn and Tucker: one number is taken off all that stay positive, and no more than that off the others."""
    g = np.random.default_rng(2)
    for _ in range(100):
        counts, total = g.standard_normal(5) * 10, float(g.uniform(0.1, 30))
        found = project_to_simplex(counts, total)
        assert found.min() >= 0
        assert np.isclose(found.sum(), total)
        less, positive = counts - found, found > 0
        assert np.allclose(less[positive], less.max())


def test_denoised_sums_are_the_mean_of_what_two_estimators_make_of_their_singular_values() -> None:
    """Those of James and Stein, and of Efron and Morris, in units of the noise: k = 2, d = 5."""
    values, errors = np.array([12.0, 4.0]), np.full(2, 3.0)
    sums = 3.0 * np.diag(values) @ np.eye(2, 5)
    pooled, apart = 1 - 10 / 160, 1 - 2 / values**2 - 2 * (5 - 2) / 160
    assert np.allclose(denoised(sums, errors), sums * (pooled + apart)[:, None] / 2)
    assert np.allclose(denoised(sums.T, np.full(5, 3.0)), (sums * (pooled + apart)[:, None] / 2).T)
    assert np.array_equal(denoised(sums, 0 * errors), sums)
    assert np.array_equal(denoised(0 * sums, errors), 0 * sums)


def test_clusters_of_released_points_move_by_the_noise_of_their_sums() -> None:
    square = Box((-1.0, 2.0), (1.0, 4.0))
    points = np.array([[0.5, 0.5], [0.5, 0.7], [-0.5, -0.5], [-0.6, 0.0]])
    cells = coreset(points, [60.0, 40.0, 20.0, -5.0], 1.0, [30.0, 40.0, 10.0, 99.0])
    centers = np.array([[0.5, 0.6], [-0.5, -0.4], [9.0, 9.0]])
    found, weights = place_clusters(centers, cells, square)
    kept = (2 / 3) / (2 / 3 + 2 * np.array([50 / 100, 10 / 20, 0.0]) ** 2)  # a light point counts nowhere
    assert np.allclose(found, np.array([0.0, 3.0]) + kept[:, None] * [[0.5, 0.6], [-0.5, -0.4], [1.0, 1.0]])
    assert weights.tolist() == [100.0, 20.0, 0.0]
    nothing = coreset(points, -1.0, 1.0, 1e9)
    assert np.allclose(place_clusters(centers[:2], nothing, square)[0], [0.0, 3.0])  # clusters of no weight are nowhere


def test_factors_of_steps_are_those_of_one_energy_that_all_of_them_share() -> None:
    """t / (t + noise), where the steps' squares less their noise, the better known ones first, are t on average."""
    squares, noise = np.array([30.0, 7.0, 9.0, 14.0]), np.array([10.0, 0.5, 2.0, 5.0])
    found = empirical_bayes(squares, noise)
    true = noise * found / (1 - found)
    assert np.allclose(true, true[0])
    assert np.average(squares - noise, weights=(true + noise) ** -2) == pytest.approx(true[0], rel=1e-3)
    assert empirical_bayes(np.array([1.0, 4.0]), np.zeros(2)).tolist() == [1, 1]
    assert np.isfinite(empirical_bayes(np.array([1e300, 0.0]), np.array([1e-300, 1e300]))).all()


def test_a_repeated_centre_is_moved_as_far_as_the_one_it_repeats() -> None:
    """One point, three centres: the two that hold nothing know no more than the first."""
    points = coreset(np.array([[0.8, 0.0]]), 10.0, 50.0, 28.0)
    centers, _ = place_clusters(np.repeat(points.points, 3, axis=0), points, Box((-1.0, -1.0), (1.0, 1.0)))
    assert (centers == centers[0]).all()
    assert np.abs(centers).max() < 0.1

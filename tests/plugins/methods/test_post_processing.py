"""Small sums over released points."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.core.clustering import Coreset
from cloister.core.domains import Ball, Box
from cloister.plugins.methods.post_processing import (
    believed,
    denoised,
    empirical_bayes,
    james_stein,
    placed,
    pooled_james_stein,
    projected,
    towards_middle,
)
from tests.plugins.tables import coreset


def test_a_step_is_shortened_by_what_noise_alone_gives_it() -> None:
    squares, noise = np.array([4.0, 2.0, 1.0, 0.0, 0.0, 1e-320]), np.array([1.0, 2.0, 3.0, 1e300, 0.0, 1e300])
    assert np.array_equal(james_stein(squares, noise), [0.75, 0.0, 0.0, 0.0, 1.0, 0.0])  # and no warning of an overflow


def test_one_factor_for_all_steps_takes_the_noise_off_their_energy() -> None:
    steps, errors = np.array([[3.0, 4.0], [0.0, 5.0]]), np.array([1.0, 2.0])
    assert np.isclose(pooled_james_stein(steps, errors), 1 - 2 * 5 / 50)
    assert np.isclose(pooled_james_stein(steps, errors, np.array([1.0, 0.0])), 1 - 2 / 25)
    assert pooled_james_stein(steps, 10 * errors) == 0.0
    assert pooled_james_stein(np.zeros((2, 2)), np.zeros(2)) == 1.0
    assert pooled_james_stein(np.zeros((2, 2)), errors) == 0.0


def test_projected_counts_are_the_nearest_of_their_total_that_are_not_negative() -> None:
    """Against every choice of which counts stay positive, on small numbers."""
    g = np.random.default_rng(2)
    for _ in range(100):
        counts, total = g.standard_normal(5) * 10, float(g.uniform(0.1, 30))
        found = projected(counts, total)
        assert found.min() >= 0
        assert np.isclose(found.sum(), total)
        best = np.inf
        for kept in range(1, 32):
            mask = np.array([kept >> i & 1 for i in range(5)], bool)
            other = np.where(mask, counts - (counts[mask].sum() - total) / mask.sum(), 0.0)
            if other.min() >= 0:
                best = min(best, float(((other - counts) ** 2).sum()))
        assert np.isclose(((found - counts) ** 2).sum(), best)


def test_counts_of_nothing_are_projected_on_equal_ones_and_huge_ones_stay_finite() -> None:
    assert np.allclose(projected(np.zeros(4), 8.0), 2.0)
    assert np.isfinite(projected(np.array([1e300, -1e300, 1e300]), 1.0)).all()


def lost(found: np.ndarray, true: np.ndarray) -> float:
    """Squared error of many matrices, over the noise's: d * k each."""
    return float(((found - true) ** 2).mean())


@pytest.mark.parametrize(("k", "d"), [(3, 4), (5, 40), (40, 5), (1, 20)])
def test_denoised_sums_are_nearer_to_the_truth_where_it_lies_along_few_directions(k: int, d: int) -> None:
    g = np.random.default_rng(2)
    true = [g.standard_normal((k, 1)) * g.standard_normal((1, d)) for _ in range(300)]
    seen = [t + g.standard_normal((k, d)) for t in true]
    ours = lost(np.array([denoised(s, np.ones(k)) for s in seen]), np.array(true))
    pooled = lost(np.array([s * pooled_james_stein(s, np.ones(k)) for s in seen]), np.array(true))
    assert ours < 0.8  # the noise has 1
    assert ours < 1.02 * pooled
    if min(k, d) == 5:
        assert ours < 0.75 * pooled


def test_denoised_noise_is_mostly_gone_and_clear_sums_stay() -> None:
    g = np.random.default_rng(3)
    noise = g.standard_normal((300, 6, 12))
    assert lost(np.array([denoised(s, np.ones(6)) for s in noise]), np.zeros_like(noise)) < 0.1
    clear = g.standard_normal((6, 12)) * 1e4
    assert np.allclose(denoised(clear, np.ones(6)), clear, rtol=1e-3)
    assert np.array_equal(denoised(clear, np.zeros(6)), clear)
    assert np.array_equal(denoised(np.zeros((6, 12)), np.ones(6)), np.zeros((6, 12)))


def test_half_is_believed_where_noise_is_as_wide_as_the_domain() -> None:
    """R^2 is a third of the squared half diameter: d for a cube of half width 1, over 3."""
    cube = Box((-1.0,) * 5, (1.0,) * 5)
    errors = np.array([0.0, 1 / np.sqrt(3), 1e9, np.inf])
    assert np.allclose(believed(errors, cube)[:, 0], [1, 0.5, 0, 0])
    for domain in (cube, Box((4.0,), (6.0,)), Ball((1.0, 2.0), 3.0)):
        centers = domain.middle + np.full((4, domain.dimension), 0.5)
        found = towards_middle(centers, errors, domain)
        assert np.array_equal(found[0], centers[0])
        assert np.allclose(found[2:], domain.middle)


def test_clusters_of_released_points_move_by_the_noise_of_their_sums() -> None:
    square = Box((-1.0, 2.0), (1.0, 4.0))
    points = np.array([[0.5, 0.5], [0.5, 0.7], [-0.5, -0.5], [-0.6, 0.0]])
    cells = coreset(points, [60.0, 40.0, 20.0, -5.0], 1.0, [30.0, 40.0, 10.0, 99.0])
    centers = np.array([[0.5, 0.6], [-0.5, -0.4], [9.0, 9.0]])
    found, weights = placed(centers, cells, square)
    kept = (2 / 3) / (2 / 3 + 2 * np.array([50 / 100, 10 / 20, 0.0]) ** 2)  # a light point counts nowhere
    assert np.allclose(found, np.array([0.0, 3.0]) + kept[:, None] * [[0.5, 0.6], [-0.5, -0.4], [1.0, 1.0]])
    assert weights.tolist() == [100.0, 20.0, 0.0]
    nothing = coreset(points, -1.0, 1.0, 1e9)
    assert np.allclose(placed(centers[:2], nothing, square)[0], [0.0, 3.0])  # clusters of no weight are nowhere
    bare = placed(centers, Coreset(points, np.ones(4)), square)[0]
    assert np.allclose(bare, [[0.5, 3.6], [-0.5, 2.6], [1.0, 4.0]])


def test_factors_of_many_steps_come_near_those_of_who_knows_how_long_they_are() -> None:
    """Steps of energy 1 and known noises from 0.1 to 10: the best factor of each is 1 / (1 + noise)."""
    g, d = np.random.default_rng(3), 5
    noise = np.tile(10.0 ** np.linspace(-1, 1, 50), 40)
    true = g.standard_normal((2000, d)) * np.sqrt(1 / d)
    seen = true + g.standard_normal((2000, d)) * np.sqrt(noise / d)[:, None]
    found = empirical_bayes((seen**2).sum(axis=1), noise)
    assert np.abs(found / (1 / (1 + noise)) - 1).max() < 0.1
    assert empirical_bayes(np.zeros(3), np.ones(3)).tolist() == [0, 0, 0]
    assert empirical_bayes(np.array([1.0, 4.0]), np.zeros(2)).tolist() == [1, 1]
    assert np.isfinite(empirical_bayes(np.array([1e300, 0.0]), np.array([1e-300, 1e300]))).all()


def test_a_repeated_centre_is_moved_as_far_as_the_one_it_repeats() -> None:
    """One point, three centres: the two that hold nothing know no more than the first."""
    points = coreset(np.array([[0.8, 0.0]]), 10.0, 50.0, 28.0)
    centers, _ = placed(np.repeat(points.points, 3, axis=0), points, Box((-1.0, -1.0), (1.0, 1.0)))
    assert (centers == centers[0]).all()
    assert np.abs(centers).max() < 0.1

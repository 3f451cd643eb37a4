"""Small sums over released points."""

from __future__ import annotations

import numpy as np

from cloister.plugins.methods.post_processing import (
    empirical_bayes,
    james_stein,
    pooled_james_stein,
    projected,
)


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


def test_one_factor_beats_no_shrinking_and_a_factor_each_where_noise_is_as_large_as_the_steps() -> None:
    g = np.random.default_rng(1)
    true = g.standard_normal((400, 8, 3))
    seen = true + g.standard_normal(true.shape)
    pooled = np.stack([step * pooled_james_stein(step, np.ones(8)) for step in seen])
    each = seen * james_stein((seen**2).sum(axis=2, keepdims=True), np.full((400, 8, 1), 3.0))
    lost = [((found - true) ** 2).mean() for found in (pooled, each, seen)]
    assert lost[0] < 0.9 * lost[1] < 0.9 * lost[2]


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

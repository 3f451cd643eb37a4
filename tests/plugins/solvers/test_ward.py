"""Noise-corrected Ward clustering: what noise adds is taken off, and nothing else is."""

from __future__ import annotations

from typing import Any

import numpy as np

from cloister.core.clustering import Coreset, Released
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats
from cloister.plugins.solvers.ward import Ward
from tests.plugins.tables import coreset

KEY = PublicRng.from_seed(0)


def solve(
    points: Floats, weights: Any, k: int, sums: float | None = None, counts: float = 0.0, **options: Any
) -> Floats:
    cells = Coreset(points, weights) if sums is None else coreset(points, weights, counts, sums)
    return Ward(**options).solve(Released(cells, ()), k, KEY)


def noisy_cells(
    centers: Floats, per_cell: Floats, owner: Floats, error: float, g: np.random.Generator
) -> tuple[Floats, Floats]:
    """Cells of the given owners (-1: empty) with noise on their sums."""
    true = np.where(owner[:, None] >= 0, centers[owner.astype(int)], 0.0) * per_cell[:, None]
    sums = true + error * g.standard_normal(true.shape)
    return sums / per_cell[:, None], per_cell


def test_without_noise_ward_merges_as_scipy_does() -> None:
    """On equal weights step 1 alone is the classical method: scipy's is an independent implementation of it."""
    from scipy.cluster.hierarchy import fcluster, linkage

    for seed in range(5):
        points = np.random.default_rng(seed).standard_normal((40, 3))
        labels = fcluster(linkage(points, "ward"), 5, "maxclust")
        wanted = np.array([points[labels == label].mean(axis=0) for label in range(1, 6)])
        found = solve(points, np.ones(40), 5, sweeps=0)
        assert max(np.linalg.norm(found - w, axis=1).min() for w in wanted) < 1e-9


def test_many_weak_cells_of_a_cluster_are_not_taken_for_clusters() -> None:
    """Noise puts weak cells of one cluster farther from each other than two true clusters are: uncorrected, they would
    win."""
    d, g = 100, np.random.default_rng(3)
    centers = g.standard_normal((2, d))
    centers *= 0.5 / np.linalg.norm(centers, axis=1, keepdims=True)
    owner = np.array([0, 1, 0, 0, 1, 1, 0, 1])
    points, weights = noisy_cells(centers, np.array([9e4, 9e4, 3e4, 3e4, 3e4, 3e4, 3e4, 3e4]), owner, 1000.0, g)
    found = solve(points, weights, 2, sums=1000.0, counts=4000.0)
    assert max(np.linalg.norm(found - c, axis=1).min() for c in centers) < 0.15


def test_a_cell_that_two_clusters_share_is_left_to_the_other_partition() -> None:
    d, g = 100, np.random.default_rng(5)
    centers = g.standard_normal((3, d))
    centers /= np.linalg.norm(centers, axis=1, keepdims=True)
    apart, weights = noisy_cells(centers, np.full(3, 6e4), np.array([0, 1, 2]), 1800.0, g)
    shared = ((centers[0] + centers[1]) * 6e4 + 1800.0 * g.standard_normal(d)) / 12e4
    third = (centers[2] * 6e4 + 1800.0 * g.standard_normal(d)) / 6e4
    points, size = np.vstack([apart, shared, third]), np.append(weights, [12e4, 6e4])
    found = solve(points, size, 3, sums=1800.0, counts=5000.0)
    errors = [np.linalg.norm(found - c, axis=1).min() for c in centers]
    assert max(errors) < 1.3 * 1800 * 10 / 6e4  # sqrt(d) * error / rows of one cell


def test_shrinking_lessens_the_error_of_noisy_centers() -> None:
    """James and Stein: at v = |noise|^2 / |c|^2 near one the expected error falls from v to v / (1 + v)."""
    d, runs, g = 100, 200, np.random.default_rng(6)
    center = np.eye(1, d)
    lost = []
    for _ in range(runs):
        points, weights = noisy_cells(center, np.array([1e5]), np.array([0]), 1e4, g)
        lost.append(((solve(points, weights, 1, sums=1e4)[0] - center[0]) ** 2).sum())
    assert 0.40 < np.mean(lost) < 0.62  # v = 1: 0.5, and a little for estimating |c|; standard error 0.005


def test_a_scattered_group_is_averaged_by_its_counts_and_a_tight_one_by_its_precision() -> None:
    g = np.random.default_rng(7)
    far = np.array([[-1.0, 0.0], [1.0, 0.0]])
    found = solve(far, np.array([3e5, 1e5]), 1, sums=1.0)
    assert np.allclose(found, [[-0.5, 0.0]], atol=1e-3)
    tight = np.tile([[0.6, 0.3]], (2, 1)) + np.array([[1.0], [4.0]]) * 0.01 * g.standard_normal((2, 2))
    found = solve(tight, np.array([4e4, 1e4]), 1, sums=400.0)
    precise = (16 * tight[0] + tight[1]) / 17
    assert np.linalg.norm(found[0] - precise) < 0.01


def test_more_points_than_are_merged_join_later() -> None:
    g = np.random.default_rng(8)
    centers = np.array([[0.0, 0.0], [9.0, 0.0]])
    points = np.repeat(centers, 50, axis=0) + 0.01 * g.standard_normal((100, 2))
    found = solve(points, np.ones(100), 2, most=6)
    assert sorted(np.round(found[:, 0]).tolist()) == [0.0, 9.0]


def test_empty_cells_are_left_out() -> None:
    """Cells without rows whose count is noise: each centre is as good as without them, to a tenth of its error."""
    d, g = 100, np.random.default_rng(4)
    centers = g.standard_normal((3, d))
    centers /= np.linalg.norm(centers, axis=1, keepdims=True)
    points, weights = noisy_cells(centers, np.array([1e5] * 3 + [15e3] * 8), np.array([0, 1, 2] + [-1] * 8), 2600.0, g)
    alone = solve(points[:3], weights[:3], 3, sums=2600.0, counts=7000.0)
    found = solve(points, weights, 3, sums=2600.0, counts=7000.0)
    for center in alone:
        assert np.linalg.norm(found - center, axis=1).min() < 0.03

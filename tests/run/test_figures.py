"""Estimates of silhouette and cost: right of rows that are as the model has them, and honest about noise."""

from __future__ import annotations

import numpy as np
import pytest

from cloister import metrics
from cloister.core.types import Floats
from cloister.showing.quality import FilledBoxes, Model, Spheres, estimate, silhouette

CENTERS = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 5.0]])


def rows(n: int = 3000) -> Floats:
    g = np.random.default_rng(0)
    return CENTERS[g.integers(0, 3, n)] + g.standard_normal((n, 2))


def boxes(side: float, error: float = 0.0) -> FilledBoxes:
    """What a grid of this side counts."""
    low, which = np.unique(np.floor(rows() / side), axis=0, return_inverse=True)
    counts = np.bincount(which.ravel()).astype(float)
    corners = np.stack([low * side, (low + 1) * side], axis=1)
    return FilledBoxes(corners, counts, np.full(len(counts), error), CENTERS)


def spheres(error: float = 0.0) -> Spheres:
    """What bins of distances count."""
    edges = 8 * 2.0 ** (-np.arange(20)[::-1] / 2)
    away = np.sqrt(((rows()[:, None] - CENTERS) ** 2).sum(axis=2).min(axis=1))
    counts = np.bincount(np.searchsorted(edges, away), minlength=20).astype(float)
    sizes = np.bincount(metrics.labels(rows(), CENTERS)).astype(float)
    return Spheres(edges, counts, np.full(20, error), sizes, np.full(3, error), CENTERS)


@pytest.mark.parametrize("n", [50, 400])
def test_the_silhouette_is_that_of_scikit_learn(n: int) -> None:
    far = [[90.0, 90.0]]
    for points, centers in ((rows(n), CENTERS), (np.concatenate([rows(n), far]), np.concatenate([CENTERS, far]))):
        assert silhouette(points, centers) == pytest.approx(metrics.silhouette(points, centers), abs=1e-9)
    assert silhouette(rows(n), CENTERS[:1]) == -1


@pytest.mark.parametrize("model", [boxes(0.25), boxes(1.0), spheres()], ids=["fine boxes", "boxes", "distances"])
def test_without_noise_figures_are_near_those_of_the_rows(model: Model) -> None:
    assert model.cost(2) == pytest.approx(metrics.nicv(rows(), CENTERS), rel=0.06)
    assert model.cost(1) == pytest.approx(metrics.k_median_cost(rows(), CENTERS) / 3000, rel=0.06)
    assert silhouette(model.points(1500), CENTERS) == pytest.approx(metrics.silhouette(rows(), CENTERS), abs=0.03)


@pytest.mark.parametrize("made", [lambda e: boxes(0.5, e), spheres], ids=["boxes", "distances"])
def test_the_error_of_a_cost_follows_the_noise_and_halving_it_is_seen(made: object) -> None:
    """The spread of 40 noisy costs over the mean stated error of noise: 1, less what the mean of so few leaves out."""
    assert callable(made)
    model, g = made(25.0), np.random.default_rng(2)
    noisy = [model.resampled(g) for _ in range(40)]
    values = [m.cost(2) for m in noisy]
    stated = np.mean([estimate(m, lambda m: m.cost(2), 0.0)[1] for m in noisy])
    assert 0.6 < np.std(values) / stated < 1.3

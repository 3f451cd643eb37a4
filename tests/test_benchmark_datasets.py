"""The benchmark sets: recipes, scaling, and the measured separation of the synthetic ones.

Sets that are stored outside the repository are tested where CLOISTER_DATA names their folder.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister import metrics
from cloister.core.errors import InvalidInput, UnknownName

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def script(name: str) -> Any:
    """A module of the benchmarks folder, which is not a package."""
    spec = importlib.util.spec_from_file_location(f"cloister_benchmarks_{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


datasets, peers = script("datasets"), script("peers")
needs_data = pytest.mark.skipif(not os.environ.get("CLOISTER_DATA"), reason="CLOISTER_DATA names no folder")
Z = 1.959963984540054


# stored sets

SHAPES = {
    "iris": (150, 4, 3),
    "wine": (178, 13, 3),
    "lsun": (400, 2, 3),
    "house": (1837, 3, 3),
    "digits8x8": (1797, 64, 10),
    "s1": (5000, 2, 15),
    "birch2_25k": (25_000, 2, 100),
    "adult": (48_842, 6, 3),
    "shuttle": (58_000, 9, 7),
    "mnist_test10k": (10_000, 784, 10),
    "g10k_d32_k16": (10_000, 32, 16),
    "g100k_d10_k10": (100_000, 10, 10),
    "yeast": (1484, 8, 10),
    "breast_wisconsin_699": (699, 9, 2),
    "g2-2-10": (2048, 2, 2),
    "g2-256-100": (2048, 256, 2),
}
EVERYWHERE = ("g10k_d32_k16", "g100k_d10_k10")
SETS = [pytest.param(name, marks=() if name in EVERYWHERE else needs_data) for name in SHAPES]


@pytest.mark.parametrize("name", SETS)
def test_a_set_has_its_shape_and_fills_the_box(name: str) -> None:
    found = datasets.load(name)
    assert (*found.rows.shape, found.k) == SHAPES[name]
    assert found.name == name
    assert found.rows.dtype == np.float64
    low, high = found.rows.min(axis=0), found.rows.max(axis=0)
    constant = low == high
    assert np.all(low[~constant] == -1)
    assert np.all(high[~constant] == 1)
    assert np.all(low[constant] == 0)


@pytest.mark.parametrize("name", [p for p in SETS if p.values[0] in datasets.TWELVE])
def test_the_midpoint_and_the_mean_cost_what_was_measured_for_the_rivals(name: str) -> None:
    rows = datasets.load(name).rows
    another_sample = 0.01 if name == "birch2_25k" else 0.0
    for method, center in (("midpoint", np.zeros((1, rows.shape[1]))), ("mean", rows.mean(axis=0, keepdims=True))):
        measured, _ = peers.PEERS[name][method][1.0]
        assert metrics.nicv(rows, center) == pytest.approx(measured, rel=0.005 + another_sample)


@pytest.mark.parametrize("name", [pytest.param(n, marks=needs_data) for n in ("iris", "wine", "lsun", "house", "s1")])
def test_scikit_learn_costs_what_was_measured(name: str) -> None:
    found = datasets.load(name)
    measured, _ = peers.PEERS[name]["scikit-learn"][0.1]
    centers = metrics.reference_centers(found.rows, found.k, seed=0)
    assert metrics.nicv(found.rows, centers) == pytest.approx(measured, rel=0.01)


def test_twelve_sets_are_listed_once_and_have_rivals() -> None:
    assert len(set(datasets.TWELVE)) == 12
    assert set(datasets.TWELVE) <= set(SHAPES)
    assert list(peers.PEERS) == list(datasets.TWELVE) == list(peers.RUNS)


def test_every_rival_has_a_figure_at_every_epsilon() -> None:
    stars = {"SuLloyd*", "GLloyd*", "FastLloyd*"}
    wanted = stars | {"diffprivlib", "google", "scikit-learn", "midpoint", "mean"}
    for name in datasets.TWELVE:
        assert set(peers.PEERS[name]) - {"tree"} == wanted
        assert ("tree" in peers.PEERS[name]) == (name != "mnist_test10k")
        for figures in peers.PEERS[name].values():
            assert tuple(figures) == datasets.EPSILONS
            assert all(mean > 0 and 0 <= error < mean for mean, error in figures.values())
    assert peers.PEERS["iris"]["FastLloyd*"][0.1] == (1.14, 0.0495)
    assert peers.PEERS["mnist_test10k"]["SuLloyd*"][0.75] == (278.5, 2.98)
    assert peers.PEERS["g100k_d10_k10"]["google"][1.0] == (0.185, 0.00609)


def test_without_a_folder_the_variable_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CLOISTER_DATA", raising=False)
    with pytest.raises(InvalidInput, match=r"set CLOISTER_DATA to the folder that holds iris\.npz"):
        datasets.load("iris")
    monkeypatch.setenv("CLOISTER_DATA", str(tmp_path))
    with pytest.raises(InvalidInput, match=r"does not hold g2/g2-512-10\.npz"):
        datasets.load("g2-512-10")


def test_a_misspelt_set_offers_near_names() -> None:
    with pytest.raises(UnknownName, match="did you mean iris") as caught:
        datasets.load("irirs")
    assert caught.value.near[0] == "iris"


def test_stored_rows_of_any_type_are_scaled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    np.savez(tmp_path / "iris.npz", X=np.array([[0, 7], [128, 7], [255, 7]], np.uint8))
    monkeypatch.setenv("CLOISTER_DATA", str(tmp_path))
    wanted = np.array([[-1, 0], [256 / 255 - 1, 0], [1, 0]])
    np.testing.assert_allclose(datasets.load("iris").rows, wanted, atol=1e-15)


def test_scaling_is_affine_and_a_constant_column_becomes_zero() -> None:
    rows = np.random.default_rng(0).normal(3, 7, (100, 4))
    rows[:, 2] = 5.5
    scaled = datasets.scale(rows)
    assert np.all(scaled[:, 2] == 0)
    assert np.all(np.abs(scaled) <= 1)
    np.testing.assert_allclose(datasets.scale(-3 * rows + 8), -scaled, atol=1e-12)
    np.testing.assert_allclose(datasets.scale(scaled), scaled, atol=1e-15)


def test_delta_is_its_formula() -> None:
    assert datasets.delta(1000) == pytest.approx(1 / (1000 * math.log(1000)))
    with pytest.raises(InvalidInput, match="at least 2 rows"):
        datasets.delta(1)


# separation


def test_centers_start_on_a_regular_simplex_and_its_shifted_copies() -> None:
    simplex = datasets._shifted_simplex(6, 5)
    for a, b in itertools.combinations(simplex, 2):
        assert math.dist(a, b) == pytest.approx(2)
    r = math.sqrt(3)
    strip = np.array([[-1, 0], [1, 0], [0, r], [3, 0], [2, r], [5, 0], [4, r]])
    np.testing.assert_allclose(datasets._shifted_simplex(7, 2), strip, atol=1e-12)


def test_the_index_of_two_spheres_is_its_closed_form() -> None:
    """N(0, s^2) and N(a, t^2) in every direction: the best line joins the centres."""
    s, t, a = 0.7, 2.0, 11.0
    pair = datasets.Mixture(np.array([[0.0, 0, 0], [0, a, 0]]), np.array([s * s * np.eye(3), t * t * np.eye(3)]))
    wanted = (a - Z * (s + t)) / (a + Z * (s + t))
    np.testing.assert_allclose(datasets.separation_index(pair), [[1, wanted], [wanted, 1]], rtol=1e-12)


@pytest.mark.parametrize(("apart", "index"), [(4, 0.01011020), (6, 0.2096862), (8, 0.34229)])
def test_the_index_has_the_values_of_its_authors(apart: float, index: float) -> None:
    """Qiu and Joe's examples: N(0, 1) and N(apart, 1) are close, separated, well separated."""
    pair = datasets.Mixture(np.array([[0.0, 0.0], [apart, 0.0]]), np.array([np.eye(2), np.eye(2)]))
    assert datasets.separation_index(pair)[0, 1] == pytest.approx(index, abs=1e-5)


def test_the_index_is_that_of_the_best_of_all_lines() -> None:
    made = datasets.separated(5, 2, 0.2, np.random.default_rng(1))
    index = datasets.separation_index(made)
    angles = np.linspace(0, math.pi, 20_001)
    lines = np.stack([np.cos(angles), np.sin(angles)])
    for i, j in itertools.combinations(range(5), 2):
        widths = [np.sqrt(np.einsum("da,de,ea->a", lines, made.covariances[c], lines)) for c in (i, j)]
        reach = np.abs((made.centers[j] - made.centers[i]) @ lines)
        half = Z * (widths[0] + widths[1])
        assert index[i, j] == pytest.approx(((reach - half) / (reach + half)).max(), abs=1e-6)


def test_the_index_agrees_with_a_general_optimiser() -> None:
    from scipy.optimize import minimize

    made = datasets.separated(3, 6, 0.3, np.random.default_rng(2))
    index = datasets.separation_index(made)
    rng = np.random.default_rng(3)
    for i, j in itertools.combinations(range(3), 2):
        step = made.centers[j] - made.centers[i]

        def minus(w: Any, i: int = i, j: int = j, step: Any = step) -> float:
            half = Z * sum(math.sqrt(w @ made.covariances[c] @ w) for c in (i, j))
            return float(-(w @ step - half) / (w @ step + half)) if w @ step > 0 else 1.0

        found = min(minimize(minus, step + rng.normal(size=6), method="BFGS").fun for _ in range(5))
        assert index[i, j] == pytest.approx(-found, abs=1e-6)


@given(k=st.integers(2, 12), d=st.integers(2, 9), wanted=st.floats(-0.5, 0.9), seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=60)
def test_every_cluster_is_at_the_wanted_index_from_its_nearest_neighbour(
    k: int, d: int, wanted: float, seed: int
) -> None:
    index = datasets.separation_index(datasets.separated(k, d, wanted, np.random.default_rng(seed)))
    np.testing.assert_allclose(index, index.T, atol=1e-6)
    np.testing.assert_allclose(np.sort(index, axis=1)[:, 0], wanted, atol=1e-5)


def test_rows_are_as_far_apart_as_the_index_says() -> None:
    """The index of sampled rows from their own 2.5% quantiles, on the line of the covariances.

    With 200,000 rows a cluster the standard error of the index is below 0.001: 0.006 is more than five of them (false
    alarm rate below 1e-6), and a width that is wrong by 2% would show, being 0.01.
    """
    rng = np.random.default_rng(4)
    made = datasets.separated(2, 8, 0.21, rng)
    rows = made.sample(np.array([200_000, 200_000]), rng)
    _, _, lines = datasets._sharpest(made.centers, made.covariances)
    one, two = np.split(rows @ lines[0, 1], 2)
    (low1, high1), (low2, high2) = np.quantile(one, [0.025, 0.975]), np.quantile(two, [0.025, 0.975])
    assert (low2 - high1) / (high2 - low1) == pytest.approx(0.21, abs=0.006)


def test_samples_have_the_sizes_means_and_covariances_of_the_mixture() -> None:
    """Six standard errors on each of 2 * (3 + 6) moments."""
    rng = np.random.default_rng(5)
    made = datasets.separated(2, 3, 0.2, rng)
    rows = made.sample(np.array([100_000, 50_000]), rng)
    assert rows.shape == (150_000, 3)
    for i, part in enumerate((rows[:100_000], rows[100_000:])):
        spread = np.sqrt(np.diagonal(made.covariances[i]))
        assert np.all(np.abs(part.mean(axis=0) - made.centers[i]) < 6 * spread / math.sqrt(len(part)))
        bound = 6 * math.sqrt(2 / len(part)) * np.outer(spread, spread)
        assert np.all(np.abs(np.cov(part.T) - made.covariances[i]) < bound)


def test_a_large_set_has_the_wanted_separation() -> None:
    made = datasets.separated(16, 128, 0.26, np.random.default_rng(6))
    np.testing.assert_allclose(np.sort(datasets.separation_index(made), axis=1)[:, 0], 0.26, atol=1e-6)


def test_a_hundred_and_twenty_eight_clusters_fit_in_the_plane() -> None:
    found = datasets.synth_k(128, seed=0)
    assert found.k == 128
    assert found.rows.shape[1] == 2


@pytest.mark.parametrize(("k", "d", "wanted"), [(1, 2, 0.2), (2, 1, 0.2), (2, 2, 1.0), (2, 2, -1.0), (2, 2, math.nan)])
def test_clusters_that_cannot_be_made_are_refused(k: int, d: int, wanted: float) -> None:
    with pytest.raises(InvalidInput, match="k >= 2, d >= 2"):
        datasets.separated(k, d, wanted, np.random.default_rng(0))


# synthetic sets


def test_cluster_sizes_are_in_the_ratio_one_to_k() -> None:
    assert datasets._in_proportion(10_000, 4).tolist() == [1000, 2000, 3000, 4000]
    for k in datasets.SYNTH_K_CLUSTERS:
        sizes = datasets._in_proportion(10_000, k)
        assert sizes.sum() == 10_000
        assert np.all(np.abs(sizes - 20_000 * np.arange(1, k + 1) / (k * (k + 1))) <= 1)
    with pytest.raises(InvalidInput, match="too few"):
        datasets._in_proportion(10, 10)


@pytest.mark.parametrize(("k", "d"), [(2, 2), (8, 4), (4, 64), (32, 2)])
def test_a_synth_set_has_the_papers_form(k: int, d: int) -> None:
    found = datasets.synth(k, d, seed=1)
    assert found.k == k
    assert found.rows.shape[1] == d
    assert 10_000 <= len(found.rows) <= 10_100
    assert np.all(found.rows.min(axis=0) == -1)
    assert np.all(found.rows.max(axis=0) == 1)


def test_a_synth_set_depends_on_its_seed_alone() -> None:
    first, again, other = (datasets.synth(3, 3, seed, n=500).rows for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert first.shape != other.shape or not np.array_equal(first, other)


def test_the_number_of_outliers_is_uniform_from_0_to_100() -> None:
    """Mean of 400 draws within 5 standard errors of 50 (a false alarm rate below 1e-6)."""
    counts = np.array([len(datasets.synth(2, 2, seed, n=60).rows) - 60 for seed in range(400)])
    assert counts.min() >= 0
    assert counts.max() <= 100
    assert abs(counts.mean() - 50) < 5 * math.sqrt((101**2 - 1) / 12 / 400)


def test_a_wider_separation_is_easier_to_cluster() -> None:
    near, far = (datasets.synth(4, 8, 3, n=2000, separation=s) for s in (0.0, 0.8))
    costs = [
        metrics.nicv(s.rows, metrics.reference_centers(s.rows, 4, seed=0))
        / metrics.nicv(s.rows, s.rows.mean(axis=0, keepdims=True))
        for s in (near, far)
    ]
    assert costs[1] < 0.5 * costs[0]


@pytest.mark.parametrize(("k", "d"), list(itertools.product((2, 16), (2, 16))))
def test_an_ablation_set_has_the_papers_form(k: int, d: int) -> None:
    for separation in datasets.ABLATION_SEPARATIONS:
        found = datasets.ablation(k, d, separation, seed=0)
        assert (found.k, found.rows.shape[1]) == (k, d)
        assert 1433 <= len(found.rows) <= 2662


def test_a_generated_g2_set_follows_the_recipe() -> None:
    """Between-cluster and within-cluster spread in proportion 50 : sd, within 3% (more than six standard errors)."""
    found = datasets.g2(32, 50, seed=0)
    assert found.rows.shape == (2048, 32)
    one, two = found.rows[:1024], found.rows[1024:]
    ratio = np.mean(two.mean(axis=0) - one.mean(axis=0)) / np.mean([one.std(axis=0), two.std(axis=0)])
    assert ratio == pytest.approx(100 / 50, rel=0.03)


@needs_data
def test_a_generated_g2_set_is_like_the_stored_one() -> None:
    """One law before scaling; after it the sets differ by their extremes only, a few percent."""
    for name, made in (("g2-64-30", datasets.g2(64, 30, 1)), ("g2-16-70", datasets.g2(16, 70, 1))):
        stored = datasets.load(name)
        assert made.rows.shape == stored.rows.shape
        assert made.rows.std() == pytest.approx(stored.rows.std(), rel=0.05)

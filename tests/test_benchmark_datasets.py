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

from cloister import metrics
from cloister.core.errors import InvalidInput, UnknownName
from tests.alarms import Alarm

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
    with pytest.raises(InvalidInput, match=r"does not hold g2/g2-512-10\.npz: put it there"):
        datasets.load("g2-512-10")
    with pytest.raises(InvalidInput, match=rf"'cloister data get iris --out {tmp_path}' gets it"):
        datasets.load("iris")


def test_a_misspelt_set_offers_near_names() -> None:
    with pytest.raises(UnknownName, match="did you mean iris") as caught:
        datasets.load("irirs")
    assert caught.value.near[0] == "iris"


def test_stored_rows_of_any_type_are_scaled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    np.savez(tmp_path / "iris.npz", X=np.array([[0, 7], [128, 7], [255, 7]], np.uint8))
    monkeypatch.setenv("CLOISTER_DATA", str(tmp_path))
    wanted = np.array([[-1, 0], [256 / 255 - 1, 0], [1, 0]])
    np.testing.assert_allclose(datasets.load("iris").rows, wanted, atol=1e-15)


def test_delta_is_its_formula() -> None:
    assert datasets.delta(1000) == pytest.approx(1 / (1000 * math.log(1000)))
    with pytest.raises(InvalidInput, match="at least 2 rows"):
        datasets.delta(1)


# synthetic sets


def test_a_hundred_and_twenty_eight_clusters_fit_in_the_plane() -> None:
    found = datasets.synth_k(128, seed=0)
    assert found.k == 128
    assert found.rows.shape[1] == 2


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


@pytest.mark.alarm(1e-7)
def test_the_number_of_outliers_is_uniform_from_0_to_100(alarm: Alarm) -> None:
    """By the mean of 400 draws."""
    counts = np.array([len(datasets.synth(2, 2, seed, n=60).rows) - 60 for seed in range(400)])
    assert counts.min() >= 0
    assert counts.max() <= 100
    alarm.near(counts.mean(), 50, math.sqrt((101**2 - 1) / 12 / 400))


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

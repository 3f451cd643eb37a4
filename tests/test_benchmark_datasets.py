"""The benchmark sets: recipes, scaling, and the measured separation of the synthetic ones.

Sets that are stored outside the repository are tested where CLOISTER_DATA names their folder.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister import metrics
from cloister.core.errors import InvalidInput
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


def test_every_rival_has_a_figure_at_every_epsilon() -> None:
    assert list(peers.PEERS) == list(datasets.TWELVE) == list(peers.RUNS)
    for name, rivals in peers.PEERS.items():
        assert ("tree" in rivals) == (name != "mnist_test10k")
        assert len(set(rivals) - {"tree"}) == 8
        for figures in rivals.values():
            assert tuple(figures) == datasets.EPSILONS
            assert all(mean > 0 and 0 <= error < mean for mean, error in figures.values())


def test_without_a_folder_the_variable_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CLOISTER_DATA", raising=False)
    with pytest.raises(InvalidInput, match=r"set CLOISTER_DATA to the folder that holds iris\.npz"):
        datasets.load("iris")
    monkeypatch.setenv("CLOISTER_DATA", str(tmp_path))
    with pytest.raises(InvalidInput, match=r"does not hold g2/g2-512-10\.npz: put it there"):
        datasets.load("g2-512-10")
    with pytest.raises(InvalidInput, match=rf"'cloister data get iris --out {tmp_path}' gets it"):
        datasets.load("iris")


# synthetic sets


@pytest.mark.parametrize(("k", "d"), [(2, 2), (4, 64), (32, 2), (128, 2)])
def test_a_synthetic_set_has_the_papers_form(k: int, d: int) -> None:
    found = datasets.synth(k, d, seed=1)
    assert (found.k, found.rows.shape[1]) == (k, d)
    assert 10_000 <= len(found.rows) <= 10_100
    assert np.all(found.rows.min(axis=0) == -1)
    assert np.all(found.rows.max(axis=0) == 1)
    for separation in datasets.ABLATION_SEPARATIONS:
        found = datasets.ablation(min(k, 16), min(d, 16), separation, seed=0)
        assert (found.k, found.rows.shape[1]) == (min(k, 16), min(d, 16))
        assert 1433 <= len(found.rows) <= 2662


@pytest.mark.alarm(1e-7)
def test_the_number_of_outliers_is_uniform_from_0_to_100(alarm: Alarm) -> None:
    """By the mean of 200 draws."""
    counts = np.array([len(datasets.synth(2, 2, seed, n=60).rows) - 60 for seed in range(200)])
    assert 0 <= counts.min() <= counts.max() <= 100
    alarm.near(counts.mean(), 50, math.sqrt((101**2 - 1) / 12 / 200))


def test_a_wider_separation_is_easier_to_cluster() -> None:
    near, far = (datasets.synth(4, 8, 3, n=2000, separation=s) for s in (0.0, 0.8))
    costs = [
        metrics.nicv(s.rows, metrics.reference_centers(s.rows, 4, seed=0))
        / metrics.nicv(s.rows, s.rows.mean(axis=0, keepdims=True))
        for s in (near, far)
    ]
    assert costs[1] < 0.5 * costs[0]


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

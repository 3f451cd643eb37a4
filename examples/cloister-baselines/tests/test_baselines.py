"""The conformance kit on the baselines, and what is particular to each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from cloister_baselines.evolution import Evolution, fittest
from cloister_baselines.k_variates import KVariates, seeded
from cloister_baselines.naive_noise import NaiveNoise
from scipy.stats import chisquare

import cloister
from cloister.core.encoding import encode_lattice
from cloister.metrics import nicv
from cloister.plugin import (
    Box,
    Budget,
    InvalidInput,
    Local,
    NoiseRng,
    Problem,
    PublicRng,
    Session,
    filled,
    forecast,
    make,
)
from cloister.plugins.oracles.central.exact import Exact
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.trees.simhash import SimHash
from cloister.testing import parametrize

SEED = PublicRng.from_seed(80)
CUBE = Box((-1.0,) * 3, (1.0,) * 3)
LOCAL_COUNTS = make("FrequencyOracle", "optimised-local-hashing")
LOCAL_SUMS = make("VectorSumOracle", "hadamard-vector")


class NoiselessCounts:
    """Noisy counts of so many points, without noise."""

    def __init__(self, values: list[float]) -> None:
        self.values = np.array(values)

    def at(self, ids: Any, level: int = 0) -> Any:
        return self.values[ids]

    def standard_error(self, ids: Any, level: int = 0) -> Any:
        return np.zeros(len(ids))


@parametrize(Evolution, named={"local": filled(Evolution, counts=LOCAL_COUNTS)})
def test_evolution_conforms(component: Any, check: Any) -> None:
    check(component)


@parametrize(
    KVariates,
    named={"local": filled(KVariates, counts=LOCAL_COUNTS, sums=LOCAL_SUMS), "squares": filled(KVariates, power=2.0)},
)
def test_k_variates_conforms(component: Any, check: Any) -> None:
    check(component)


@parametrize(NaiveNoise)
def test_naive_noise_conforms(component: Any, check: Any) -> None:
    check(component)


def clustered(method: Any, rows: Any, problem: Problem) -> Any:
    session: Any = Session(problem, SEED.child(0), Arrays(rows), noise=NoiseRng.for_tests(0))
    return method.cluster(problem, session, SEED)


@pytest.mark.parametrize("method", ["evolution", "k-variates"])
def test_clear_clusters_are_found(method: str) -> None:
    g = np.random.default_rng(1)
    places = np.array([[-0.6, -0.6], [0.6, 0.6], [0.6, -0.6]])
    rows = places[np.arange(6000) % 3] + 0.03 * g.standard_normal((6000, 2))
    estimator = cloister.KMeans(3, method=method, epsilon=1.0, delta=1e-6, bounds=(-1, 1), rows=6000, random_state=0)
    centers = estimator.fit(rows).cluster_centers_
    assert nicv(rows, centers) < (0.05 if method == "evolution" else 0.5) * nicv(rows, np.zeros((1, 2)))


def test_evolution_keeps_the_largest_counts_until_they_hold_all_rows() -> None:
    points = np.arange(8.0).reshape(4, 2)
    kept = fittest(points, NoiselessCounts([1.0, 7.0, -3.0, 5.0]), 10)
    assert kept.points.tolist() == [[2.0, 3.0], [6.0, 7.0]]
    assert kept.weights.tolist() == [7.0, 3.0]
    without_counts = fittest(points, NoiselessCounts([-1.0, -1.0, -1.0, 0.0]), 10)
    assert len(without_counts.points) == 4
    assert not without_counts.weights.any()


def test_evolution_divides_its_users_among_the_rounds_under_local_trust() -> None:
    problem = Problem(3, CUBE, 3000, Budget("pure", 1.0, delta=1e-6))
    rounds = forecast(filled(Evolution, counts=LOCAL_COUNTS), problem, SEED)
    assert {event.spent.epsilon for asked in rounds for event in asked.events} == {1.0}
    assert {asked.trust for asked in rounds} == {Local}
    users, rows = np.arange(3000, dtype=np.uint64), np.zeros((3000, 3), np.int64)
    answered = [r.users for asked in rounds for r in encode_lattice(asked, rows, users, NoiseRng.for_tests(0))]
    assert sorted(np.concatenate(answered).tolist()) == users.tolist()


def test_without_noise_the_centres_of_k_variates_are_means_of_nodes() -> None:
    rows = CUBE.sample(np.random.default_rng(6), 2000, 0.0)
    method = KVariates(nodes=SimHash(depth=5), counts=Exact(), sums=Exact())
    problem = Problem(6, CUBE, 2000, Budget("exact", math.inf))
    clustering = clustered(method, rows, problem)
    ids = method.nodes.open(problem, SEED.child("nodes")).locate(CUBE.snap(rows))[:, -1]
    means = np.array([rows[ids == i].mean(axis=0) for i in np.unique(ids)])
    assert np.linalg.norm(clustering.centers[:, None] - means, axis=2).min(axis=1).max() < 1e-5
    assert len(np.unique(clustering.centers, axis=0)) == 6
    assert clustering.weights.sum() == 2000


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_k_variates_draws_in_proportion_to_weight_and_distance(power: float) -> None:
    """Second draws from four points on a line after the first, 4,000 of them, with a fixed seed."""
    points, weights = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([1e12, 2.0, 2.0, 1.0])
    g = np.random.default_rng(8)
    drawn = np.array([seeded(points, weights, 2, power, g) for _ in range(4000)])
    assert not drawn[:, 0].any()
    masses = weights[1:] * points[1:, 0] ** power
    assert chisquare(np.bincount(drawn[:, 1], minlength=4)[1:], 4000 * masses / masses.sum()).pvalue > 1e-6


def test_k_variates_refuses_more_nodes_than_it_can_draw_from_before_anything_is_asked() -> None:
    with pytest.raises(InvalidInput, match="too many to draw from"):
        forecast(filled(KVariates, nodes=SimHash(depth=20)), Problem(3, CUBE, 1000, Budget("gaussian", 1.0)), SEED)


def test_naive_noise_cannot_run_under_a_curator() -> None:
    with pytest.raises(InvalidInput, match="'naive-noise' as composed is Local, and the trust model asked"):
        make("Method", "naive-noise", trust="central")

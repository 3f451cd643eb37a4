"""radius-means: clusters found, whatever the bounds; its exact privacy loss; what it does with too little budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Box, Domain
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import built_in
from cloister.core.session import Session
from cloister.core.types import Floats
from cloister.metrics import nicv
from cloister.plugins.methods.measuring import Moved
from cloister.plugins.methods.radius_means import candidates, shares
from cloister.plugins.populations.arrays import Arrays

SEED = PublicRng.from_seed(80)
LOCAL = {"counts": "optimised-local-hashing", "sums": "hadamard-vector"}


def box(d: int, scale: float = 1.0) -> Box:
    return Box((-scale,) * d, (scale,) * d)


def made(**wires: str) -> Any:
    return compose(built_in(), "Method", "radius-means", wires, {}).value


def clumps(d: int, k: int = 6, n: int = 6000) -> tuple[Floats, Floats]:
    g = np.random.default_rng(d)
    centers = g.uniform(-0.8, 0.8, (k, d))
    return np.clip(centers[g.integers(0, k, n)] + g.normal(0, 0.03, (n, d)), -1, 1), centers


def ran(rows: Floats, k: int, mu2: float, seed: int, domain: Domain, n: int = 0, **wires: str) -> tuple[Floats, Any]:
    problem = Problem(k, domain, n or len(rows), Budget("gaussian", mu2))
    session: Any = Session(problem, SEED.child(seed), Arrays(rows), noise=NoiseRng.for_tests(seed))
    found = made(**wires).cluster(problem, session, SEED.child("method", seed))
    return found.centers, session


@pytest.mark.parametrize("d", [2, 5, 20, 60])
def test_clear_clusters_are_found_in_any_number_of_columns(d: int) -> None:
    rows, truth = clumps(d)
    found = min(nicv(rows, ran(rows, 6, 1.0, s, box(d))[0]) for s in range(3))
    assert found < 1.5 * nicv(rows, truth) + 0.002 * d


def test_bounds_a_thousand_times_too_wide_cost_little() -> None:
    rows, truth = clumps(8, n=20_000)
    found = min(nicv(rows, ran(rows, 6, 1.0, s, box(8, 1000.0))[0]) for s in range(3))
    assert found < 2 * nicv(rows, truth)


def test_a_group_behind_another_is_found() -> None:
    """Seen from the mean of all rows, two of the five groups lie in one direction."""
    g = np.random.default_rng(1)
    middles = np.array([[0.0] * 6, [0.45] + [0.0] * 5, [0.9] + [0.0] * 5, [0, 0.4, 0, 0, 0, 0], [0, 0, -0.4, 0, 0, 0]])
    groups = g.choice(5, 20_000, p=[0.5, 0.08, 0.02, 0.2, 0.2])
    rows = middles[groups] + 0.03 * g.standard_normal((20_000, 6))
    for seed in range(3):
        assert nicv(rows, ran(rows, 5, 0.25, seed, box(6))[0]) < 1.3 * nicv(rows, middles)


@pytest.mark.thorough
@pytest.mark.parametrize("k", [1, 3, 150])
@pytest.mark.parametrize("d", [1, 3, 20])
def test_with_a_budget_worth_nothing_all_centres_are_in_the_middle(d: int, k: int) -> None:
    """150 rows in a corner at mu = 0.0003, an epsilon of about 0.001: never worse than one centre at the middle."""
    rows = np.random.default_rng(2).uniform(0.2, 0.9, (150, d))
    for seed in range(10):
        centers, _ = ran(rows, k, 0.0003**2, seed, box(d))
        assert np.linalg.norm(centers, axis=1).max() < 0.05 * np.sqrt(d)
        assert nicv(rows, centers) < 1.02 * nicv(rows, np.zeros((1, d)))


def test_without_noise_it_is_k_means() -> None:
    rows, truth = clumps(5)
    centers, _ = ran(rows, 6, 1.0, 0, box(5), counts="exact", sums="exact")
    best = np.array(
        [rows[((rows[:, None] - truth) ** 2).sum(axis=2).argmin(axis=1) == j].mean(axis=0) for j in range(6)]
    )
    assert nicv(rows, centers) < 1.01 * nicv(rows, best)


def test_shares_of_the_budget_add_up_to_it() -> None:
    for rounds in range(9):
        for d in (1, 64):
            given = shares(d, rounds)
            assert min(given) > 0
            assert sum(given) == pytest.approx(1.0 if rounds else 0.62)


def test_candidates_beyond_those_that_count_repeat_the_first_and_are_as_many_in_every_run() -> None:
    ones = np.ones(1024)
    for significant in (0, 30, 1024):
        sizes = np.where(np.arange(1024) < significant, 100.0, 0.0)
        cells = Moved(sizes, ones, np.arange(2048.0).reshape(1024, 2), ones, ones, 50.0)
        found, offsets = candidates(cells, 4)
        assert len(offsets) == 64
        assert found == min(max(20, significant), 64)
        assert (offsets[found:] == offsets[0]).all()

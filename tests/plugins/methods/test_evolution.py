"""evolution: clusters found from counts alone; its exact privacy loss; who answers what under Local trust."""

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
from cloister.core.session import Session, forecast
from cloister.core.types import Floats
from cloister.metrics import nicv
from cloister.plugins.methods.evolution import MOST, fittest, levy
from cloister.plugins.populations.arrays import Arrays

SEED = PublicRng.from_seed(90)


def box(d: int) -> Box:
    return Box((-1.0,) * d, (1.0,) * d)


def made(counts: str = "discrete-gaussian", **values: Any) -> Any:
    return compose(built_in(), "Method", "evolution", {"counts": counts}, values).value


def ran(rows: Floats, k: int, mu2: float, seed: int, domain: Domain, n: int = 0, **values: Any) -> tuple[Any, Any]:
    measure: Any = "exact" if values.get("counts") == "exact" else "gaussian"
    problem = Problem(k, domain, n or len(rows), Budget(measure, mu2))
    session: Any = Session(problem, SEED.child(seed), Arrays(rows), noise=NoiseRng.for_tests(seed))
    return made(**values).cluster(problem, session, SEED.child("method", seed)), session


def clumps(d: int, k: int = 5, n: int = 10_000) -> tuple[Floats, Floats]:
    g = np.random.default_rng(d)
    centers = g.uniform(-0.7, 0.7, (k, d))
    return np.clip(centers[g.integers(0, k, n)] + g.normal(0, 0.1, (n, d)), -1, 1), centers


@pytest.mark.parametrize("d", [2, 8])
def test_clear_clusters_are_found_from_counts_alone(d: int) -> None:
    rows, truth = clumps(d)
    found = min(nicv(rows, ran(rows, 5, 1.0, seed, box(d))[0].centers) for seed in range(2))
    assert found < 1.5 * nicv(rows, truth)


@pytest.mark.thorough
def test_the_number_of_points_is_public_and_bounded() -> None:
    rows, _ = clumps(4, n=2000)
    asked = [
        {part.cells.space.sizes for round in session.rounds for part in round.parts}
        for _, session in (ran(x, 5, 0.05, seed, box(4), n=2000) for seed, x in enumerate([rows, -rows, rows[:100]]))
    ]
    assert asked[0] == asked[1] == asked[2]
    for k, mu2, points in ((5, 1e4, 5 * (MOST // 5)), (5, 1e-9, 25), (300, 1.0, 1500)):
        problem = Problem(k, box(4), 2000, Budget("gaussian", mu2))
        assert forecast(made(), problem, SEED)[0].parts[0].cells.space.sizes == (points,)


class _Exactly:
    def __init__(self, values: list[float]) -> None:
        self.values = np.array(values)

    def at(self, ids: Any, level: int = 0) -> Floats:
        return np.asarray(self.values[ids], np.float64)

    def standard_error(self, ids: Any, level: int = 0) -> Floats:
        return np.ones(len(ids))


def test_the_largest_counts_are_kept_until_they_hold_the_rows() -> None:
    points = np.arange(8.0).reshape(4, 2)
    kept = fittest(points, _Exactly([1.0, 7.0, -3.0, 5.0]), 10)
    assert kept.points.tolist() == [[2.0, 3.0], [6.0, 7.0]]
    assert kept.weights.tolist() == [7.0, 3.0]
    nothing = fittest(points, _Exactly([-1.0, -1.0, -1.0, 0.0]), 10)
    assert len(nothing.points) == 4
    assert not nothing.weights.any()


def test_most_mutations_are_small_and_a_few_are_far() -> None:
    steps = np.abs(levy((20_000,), SEED))
    assert np.median(steps) < 1
    assert 0.003 < (steps > 10).mean() < 0.03

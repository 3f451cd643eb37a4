"""evolution: clusters found from counts alone, whose number is public."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.session import forecast
from cloister.metrics import nicv
from cloister.plugins.methods.evolution import MOST, fittest, levy
from tests.plugins.methods.runs import SEED, cube, groups, made, run
from tests.plugins.tables import Table


def test_clear_clusters_are_found_from_counts_alone() -> None:
    rows, truth = groups(5000, 5, 8, spread=0.1)
    problem = Problem(5, cube(8), 5000, Budget("gaussian", 1.0))
    found = min(nicv(rows, run(made("evolution"), rows, problem, seed)[0].centers) for seed in range(2))
    assert found < 1.5 * nicv(rows, truth)


@pytest.mark.thorough
@pytest.mark.parametrize(("k", "mu2", "points"), [(5, 1e4, 5 * (MOST // 5)), (5, 1e-9, 25), (210, 1.0, 1050)])
def test_the_number_of_points_is_public_and_bounded(k: int, mu2: float, points: int) -> None:
    problem = Problem(k, cube(4), 2000, Budget("gaussian", mu2))
    assert {part.cells.space.sizes for asked in forecast(made("evolution"), problem, SEED) for part in asked.parts} == {
        (points,)
    }


def test_the_largest_counts_are_kept_until_they_hold_the_rows() -> None:
    points = np.arange(8.0).reshape(4, 2)
    kept = fittest(points, Table(np.array([1.0, 7.0, -3.0, 5.0])), 10)
    assert kept.points.tolist() == [[2.0, 3.0], [6.0, 7.0]]
    assert kept.weights.tolist() == [7.0, 3.0]
    nothing = fittest(points, Table(np.array([-1.0, -1.0, -1.0, 0.0])), 10)
    assert len(nothing.points) == 4
    assert not nothing.weights.any()


def test_most_mutations_are_small_and_a_few_are_far() -> None:
    steps = np.abs(levy((20_000,), SEED))
    assert np.median(steps) < 1
    assert 0.003 < (steps > 10).mean() < 0.03

"""Lloyd's rounds for few rows: what is asked, what a step does, and what noise cannot do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cloister.accounting import Total
from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.session import forecast
from cloister.plugins.methods.clipping import SCALE, ClippedOffsets
from tests.plugins.methods.runs import EXACT, SEED, cube, made, run

CUBE = cube(4)


def gauss(**options: Any) -> Any:
    return made("shrunk-lloyd", **options)


def exact(**options: Any) -> Any:
    return made("shrunk-lloyd", EXACT, **options)


def problem_of(k: int, rows: int, epsilon: float = 1.0) -> Problem:
    return Problem(k, CUBE, rows, Total(epsilon, 1e-6).measured({"gaussian"}))


def test_four_equal_rounds_of_one_count_and_one_vector_spend_the_budget() -> None:
    problem = problem_of(3, 150)
    rounds = forecast(gauss(), problem, SEED)
    spent = [[event.spent.amount for event in round.events] for round in rounds]
    assert len(rounds) == 4
    assert np.allclose(spent, spent[0])
    assert np.sum(spent) == pytest.approx(problem.budget.amount)
    for round in rounds:
        assert round.parts[0].vectors is None
        assert isinstance(round.parts[1].vectors, ClippedOffsets)
        assert round.parts[1].vectors.bound.l2 == SCALE


def test_the_start_is_packed_around_the_middle() -> None:
    cells: Any = forecast(gauss(extent=0.2), problem_of(5, 150), SEED)[0].parts[0].cells
    centers = CUBE.real(cells.centers)
    assert abs(centers).max() <= 0.2
    assert np.linalg.norm(centers[:, None] - centers, axis=2)[np.triu_indices(5, 1)].min() > 0.1


@pytest.mark.parametrize("first", [0.5, 0.1])
def test_rows_beyond_the_radius_are_clipped_and_not_dropped(first: float) -> None:
    """All rows in one corner, 2 from the middle: one exact step goes 1.3 clipping radii there."""
    problem = Problem(1, CUBE, 100, Budget("exact", math.inf))
    found, _ = run(exact(rounds=1, extent=1e-9, first_radius=first), np.ones((100, 4)), problem)
    assert np.linalg.norm(found.centers) == pytest.approx(1.3 * first * 2, rel=1e-4)
    assert np.ptp(found.centers) < 1e-4


@pytest.mark.parametrize("rows", [100, 1000, 100_000])
def test_a_step_divides_by_an_average_group_until_counts_are_well_known(rows: int) -> None:
    """q = n mu / k below 25: n / k rows; above: 25 standard errors of a count; never less than a row."""
    problem = problem_of(4, rows)
    q = rows / 4 * problem.budget.mu
    assert gauss().least_rows(problem) == pytest.approx(rows / 4 * min(1.0, 25 / q), rel=1e-3)
    assert exact().least_rows(Problem(4, CUBE, rows, Budget("exact", math.inf))) == 1.0


def test_two_groups_are_found_and_weighed() -> None:
    g = np.random.default_rng(3)
    rows = np.repeat([[0.6, 0.5, -0.4, 0.2], [-0.5, -0.3, 0.4, -0.6]], [260, 140], axis=0) + g.normal(0, 0.05, (400, 4))
    found, _ = run(gauss(), rows, problem_of(2, 400, 2.0))
    order = np.argsort(-found.centers[:, 0])
    assert abs(found.centers[order] - [rows[:260].mean(axis=0), rows[260:].mean(axis=0)]).max() < 0.25
    assert found.weights.sum() == pytest.approx(400)
    assert abs(found.weights[order] - [260, 140]).max() < 100


@pytest.mark.parametrize("seed", range(5))
def test_a_budget_that_tells_nothing_leaves_centres_together_near_the_middle(seed: int) -> None:
    found, _ = run(gauss(), np.ones((100, 4)), problem_of(3, 100, 0.001), seed)
    assert np.linalg.norm(found.centers, axis=1).max() < 0.5

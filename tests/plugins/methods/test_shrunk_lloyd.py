"""Lloyd's rounds for few rows: what is asked, what a step does, and what noise cannot do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cloister.accounting import PrivacyTarget
from cloister.core.budget import Budget, Measure
from cloister.core.clustering import Problem
from cloister.core.session import Session, forecast
from cloister.plugins.methods.measuring import Measuring
from tests.plugins.methods.runs import EXACT, LAPLACE, SEED, cube, groups, made, run

CUBE = cube(4)


def gauss(**options: Any) -> Any:
    return made("shrunk-lloyd", **options)


def exact(components: dict[str, str] = EXACT, rounds: int = 1, **options: Any) -> Any:
    return made("shrunk-lloyd", components, rounds=rounds, **options)


EVERYTHING = Budget("exact", math.inf)


def problem_of(k: int, rows: int, epsilon: float = 1.0) -> Problem:
    return Problem(k, CUBE, rows, PrivacyTarget(epsilon, 1e-6).measured({"gaussian"}))


@pytest.mark.parametrize("rows", [30, 20_000])
@pytest.mark.parametrize("measure", ["gaussian", "pure"])
def test_mean_reach_and_growing_rounds_spend_the_budget(rows: int, measure: Measure) -> None:
    """Few rows: the noise of a reach would hide it. In pure noise no mean, and a quarter of the rounds."""
    pure = measure == "pure"
    problem = Problem(3, CUBE, rows, PrivacyTarget(1.0, 0.0 if pure else 1e-6).measured({measure}))
    rounds = forecast(made("shrunk-lloyd", LAPLACE) if pure else gauss(), problem, SEED)
    spent = [sum(event.spent.amount for event in round.events) for round in rounds]
    many = rows > 30
    asked = [0.06 ** (2 / 3)] * 2 * many if pure else [0.08, *[0.03] * 2 * many]
    first = len(asked) - many
    assert len(rounds) == len(asked) + (2 if pure else 8)
    assert sum(spent) == pytest.approx(problem.budget.amount)
    left = (1 - 0.12 * many) ** (2 / 3) if pure else 1 - sum(asked)
    shares = np.array([*asked, left]) / (sum(asked) + left)
    assert np.divide(spent[:first], problem.budget.amount) == pytest.approx(shares[:first], rel=1e-3)
    growing = spent[first:]
    if many:  # distances of each group, before the last round
        assert growing.pop(-2) / problem.budget.amount == pytest.approx(shares[-2], rel=1e-3)
    assert np.allclose(np.divide(growing[1:], growing[:-1]), 1.2 ** (2 / 3 if pure else 1), rtol=1e-4)


def test_the_start_is_packed_around_the_mean() -> None:
    cells: Any = forecast(gauss(extent=0.2), problem_of(5, 150), SEED)[1].parts[0].cells
    centers = CUBE.real(cells.centers)  # a forecast's answers are zero: the mean is the middle
    assert abs(centers).max() <= 0.2
    assert np.linalg.norm(centers[:, None] - centers, axis=2)[np.triu_indices(5, 1)].min() > 0.1
    rows = np.full((400, 4), 0.4)
    _, session = run(exact(extent=0.2), rows, Problem(5, CUBE, 400, EVERYTHING))
    moved: Any = session.rounds[-1].parts[0].cells
    assert abs(CUBE.real(moved.centers) - 0.4).max() <= 0.2001


def test_a_start_that_asks_says_where_rows_are() -> None:
    """Its centres are taken as they are, and no mean is asked for."""
    asking = made("shrunk-lloyd", {"start": "grid-means"}, start_share=0.5, extent=1.0)
    rounds = forecast(asking, problem_of(3, 150), SEED)
    assert len(rounds) == len(forecast(made("grid-means"), problem_of(3, 150), SEED)) + 8
    within = EXACT | {"start": "grid-means"} | {f"start.{slot}": oracle for slot, oracle in EXACT.items()}
    table, places = groups(400, 3, 4)
    asking = exact(components=within, start_share=0.5, extent=1.0)
    _, session = run(asking, table, Problem(3, CUBE, 400, EVERYTHING))
    cells: Any = session.rounds[-1].parts[0].cells
    away = np.linalg.norm(CUBE.real(cells.centers)[:, None] - places, axis=2)
    assert away.min(axis=1).max() < 0.2


@pytest.mark.parametrize("first", [1.0, 0.2])
def test_rows_beyond_the_radius_are_clipped_and_not_dropped(first: float) -> None:
    """Rows in two opposite corners: one exact step from their mean is 1.3 times the mean of clipped offsets."""
    rows = np.repeat([[1.0] * 4, [-1.0] * 4], [60, 40], axis=0)
    _, session = run(exact(extent=1e-9, first_radius=first, rounds=2), rows, Problem(1, CUBE, 100, EVERYTHING))
    reach = float(session.rounds[2].parts[1].vectors.radii[0]) * CUBE.unit / first
    assert 1 <= reach <= 2.8
    mean = 0.2 * np.ones(4)
    steps = [np.minimum(1.0, first * reach / np.linalg.norm(corner - mean)) * (corner - mean) for corner in rows]
    after: Any = session.rounds[-1].parts[0].cells
    assert CUBE.real(after.centers)[0] == pytest.approx(mean + 1.3 * np.mean(steps, axis=0), abs=1e-3)


def test_the_last_round_clips_nothing_that_noise_does_not_ask_for() -> None:
    """Without noise the radius of a group holds all of its rows, so that its centre is their mean."""
    rows = np.repeat([[1.0] * 4, [-1.0] * 4], [60, 40], axis=0)
    found, _ = run(exact(extent=1e-9), rows, Problem(1, CUBE, 100, EVERYTHING))
    assert found.centers[0] == pytest.approx(0.2 * np.ones(4), abs=1e-3)
    assert found.details["centers_error"].max() < 0.06


@pytest.mark.parametrize("rows", [100, 1000, 100_000])
def test_a_step_divides_by_an_average_group_until_counts_are_well_known(rows: int) -> None:
    """q = n mu / k below 40: n / k rows; above: 40 standard errors of a count; never less than a row."""
    problem = problem_of(4, rows)
    q = rows / 4 * problem.budget.mu
    assert least_rows(gauss(), problem) == pytest.approx(rows / 4 * min(1.0, 40 / q), rel=1e-3)
    assert least_rows(exact(), Problem(4, CUBE, rows, EVERYTHING)) == 1.0


def least_rows(method: Any, problem: Problem) -> float:
    return Measuring(problem, Session(problem, SEED), method.counts, method.sums, iter(())).least_rows()


@pytest.mark.parametrize("seed", range(5))
def test_a_budget_that_tells_nothing_leaves_centres_together_near_the_middle(seed: int) -> None:
    found, _ = run(gauss(), np.ones((100, 4)), problem_of(3, 100, 0.001), seed)
    assert np.linalg.norm(found.centers, axis=1).max() < 0.5

"""k-means on a grid: who is asked what, what answers cannot change, rows of every kind, and the worst noise.

Which cells are kept: those that noise does not explain, as many as hold the rows, weighed as they were released.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cloister.accounting.total import Total
from cloister.core.budget import Budget
from cloister.core.clustering import Clustering, Coreset, Problem
from cloister.core.domains import Ball, Box, Domain
from cloister.core.errors import InvalidInput
from cloister.core.session import forecast
from cloister.core.types import Floats
from cloister.metrics import nicv
from cloister.plugins.methods.grid_means import STEP, occupied, stepped
from cloister.plugins.trees.grid_cells import GridCells
from tests.plugins.methods.runs import SEED, cube, groups, made, run
from tests.plugins.tables import Table

METHOD = made("grid-means")


def problem_of(
    rows: int, k: int = 3, domain: Domain | None = None, budget: Budget | None = None, epsilon: float = 1.0
) -> Problem:
    gaussian = Total(epsilon, 1 / (rows * math.log(rows + 2))).measured({"gaussian"})
    return Problem(k, domain or cube(2), rows, budget or gaussian)


def ran(rows: Floats, problem: Problem, seed: int = 0) -> Clustering:
    return run(METHOD, rows, problem, seed)[0]


def test_two_rounds_of_one_question_each_spend_the_budget() -> None:
    problem = problem_of(5000)
    asked = forecast(METHOD, problem, SEED)
    spent = [event.spent.amount for round in asked for event in round.events]
    assert [len(round.parts) for round in asked] == [1, 1]
    assert spent == pytest.approx([0.8 * problem.budget.amount, 0.2 * problem.budget.amount])


@pytest.mark.parametrize(("d", "epsilon", "most"), [(1, 0.001, 1.0), (2, 0.01, 1.2), (4, 0.001, 1.0)])
def test_no_noise_makes_it_worse_than_one_centre_at_the_domains_middle(d: int, epsilon: float, most: float) -> None:
    """Rows in the middle, uniform, and in groups: n = 150, means of 15 seeded runs, of 0.81 to 0.94 times the middle's
    cost at epsilon = 0.001, of 0.64 to 1.10 at 0.01."""
    g, problem = np.random.default_rng(d), problem_of(150, 3, cube(d), epsilon=epsilon)
    middle = 0.3 * g.standard_normal((150, d)).clip(-3, 3)
    for rows in (middle, g.uniform(-1, 1, (150, d)), groups(150, 3, d)[0]):
        cost = np.mean([nicv(rows, ran(rows, problem, seed).centers) for seed in range(15)])
        assert cost < most * nicv(rows, np.zeros((1, d)))


def test_the_grid_has_the_cells_of_the_formula() -> None:
    """15 groups of 5,000 rows in two columns: cells of a standard error of 1 / (mu sqrt 0.8)."""
    problem = problem_of(5000, 15, budget=Budget("gaussian", 0.25))
    per_count, _ = METHOD.shares(problem.budget, SEED)
    side = round(1.35 * math.sqrt(15) * (5000 / 15 * 0.5 * math.sqrt(0.8)) ** (1 / 3))
    assert METHOD.grid(problem, per_count).parts == (side, side)


def test_a_step_is_never_longer_than_what_clipping_leaves_of_an_offset() -> None:
    """Sums of pure noise, as large as can be: the step is within 1.3 radii all the same."""
    g, radii, sizes = np.random.default_rng(1), np.array([0.1, 0.5]), np.array([20.0, 5.0])
    for scale in (1.0, 1e3, 1e9):
        steps = [stepped(g.standard_normal((2, 3)) * scale, np.full(2, scale), sizes, radii) for _ in range(200)]
        assert (np.linalg.norm(steps, axis=2).mean(axis=0) <= STEP * radii).all()


def test_many_columns_are_refused_with_a_way_out() -> None:
    with pytest.raises(InvalidInput, match="at most 6 columns, not 7: use 'hst-means'"):
        forecast(METHOD, problem_of(1000, 3, cube(7)), SEED)


SQUARE = GridCells(Box((0.0, 0.0), (1.0, 1.0)), (20, 20))


def kept(values: Floats, error: float, k: int, rows: int, grid: GridCells = SQUARE) -> Coreset:
    return occupied(grid, Table(values.ravel(), error), k, rows)


def ids(cells: Coreset) -> list[int]:
    return cells.leaves.ids.tolist()


def test_without_noise_occupied_cells_are_kept_and_no_more_than_hold_the_rows() -> None:
    values = np.zeros((20, 20))
    values[3, 4], values[10, 10], values[17, 2] = 60, 30, 10
    found = kept(values, 0.0, 1, 100)
    assert {3 * 20 + 4, 10 * 20 + 10, 17 * 20 + 2} <= set(ids(found))
    assert found.weights.sum() == 100
    assert len(kept(np.full((20, 20), 10.0), 0.0, 1, 1000).weights) == 100


def test_weights_are_the_counts_as_released_and_points_the_middles() -> None:
    values = np.zeros((20, 20))
    values[5, 5] = 100
    found: Any = kept(values, 1.0, 1, 100)
    at = ids(found).index(5 * 20 + 5)
    assert found.weights[at] == 100
    assert found.points[at] == pytest.approx([0.275, 0.275], abs=1e-5)
    assert (found.errors.weights == 1).all()


def test_a_group_that_each_cell_hides_shows_in_its_neighbours() -> None:
    """Nine cells of 2.5 standard errors each: of single noisy cells as many stand out by chance alone."""
    g, hits = np.random.default_rng(2), 0
    group = {i * 20 + j for i in (14, 15, 16) for j in (3, 4, 5)}
    for _ in range(50):
        values = g.standard_normal((20, 20))
        values[2, 2] += 200
        values[14:17, 3:6] += 2.5
        hits += len(group & set(ids(kept(values, 1.0, 2, 222))))
    assert hits > 50 * 5


@pytest.mark.parametrize("value", [0.0, -1e12, 1e300, -1e300])
@pytest.mark.parametrize("k", [1, 1000])
def test_at_least_k_cells_or_all_are_kept_whatever_was_released(value: float, k: int) -> None:
    for grid in (SQUARE, GridCells(Ball((1.0, 2.0), 0.5), (7, 7)), GridCells(Box((0.0, 0.0), (1.0, 1e-7)), (5, 5))):
        found = kept(np.full(grid.space.sizes[0], value), 3.0, k, 50, grid)
        assert len(found.points) >= min(k, len(grid.possible))
        assert np.isfinite(found.points).all()

"""k-means on a grid: who is asked what, what answers cannot change, rows of every kind, and the worst noise.

Which cells are kept: those that noise does not explain, as many as hold the rows, weighed as they were released.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.accounting.privacy_target import PrivacyTarget
from cloister.core.clustering import Coreset, Problem
from cloister.core.domains import Box
from cloister.core.errors import InvalidInput
from cloister.core.session import forecast
from cloister.core.types import Floats
from cloister.metrics import nicv
from cloister.plugins.methods.grid_means import STEP, measured, occupied, stepped
from cloister.plugins.trees.grid_cells import GridCells
from tests.plugins.methods.runs import SEED, cube, groups, made, run

METHOD = made("grid-means")


def problem_of(rows: int, k: int = 3, d: int = 2, epsilon: float = 1.0) -> Problem:
    return Problem(k, cube(d), rows, PrivacyTarget(epsilon, 1 / (rows * math.log(rows + 2))).measured({"gaussian"}))


@pytest.mark.parametrize(("rows", "shares"), [(500, [0.8, 0.2]), (50_000, [0.8, 0.05, 0.15])])
def test_rounds_of_one_question_each_spend_the_budget(rows: int, shares: list[float]) -> None:
    """Where groups are well known, distances of each group are counted before the sums."""
    problem = problem_of(rows)
    asked = forecast(METHOD, problem, SEED)
    spent = [event.spent.amount for round in asked for event in round.events]
    assert [len(round.parts) for round in asked] == [1] * len(shares)
    assert spent == pytest.approx([share * problem.budget.amount for share in shares])


@pytest.mark.parametrize(("d", "epsilon", "most"), [(1, 0.001, 1.0), (2, 0.01, 1.2), (4, 0.001, 1.0)])
def test_no_noise_makes_it_worse_than_one_centre_at_the_domains_middle(d: int, epsilon: float, most: float) -> None:
    """Rows in the middle, uniform, and in groups: n = 150, means of 15 seeded runs, of 0.81 to 0.94 times the middle's
    cost at epsilon = 0.001, of 0.64 to 1.10 at 0.01."""
    g, problem = np.random.default_rng(d), problem_of(150, 3, d, epsilon=epsilon)
    middle = 0.3 * g.standard_normal((150, d)).clip(-3, 3)
    for rows in (middle, g.uniform(-1, 1, (150, d)), groups(150, 3, d)[0]):
        cost = np.mean([nicv(rows, run(METHOD, rows, problem, seed)[0].centers) for seed in range(15)])
        assert cost < most * nicv(rows, np.zeros((1, d)))


def test_a_step_is_never_longer_than_what_clipping_leaves_of_an_offset() -> None:
    """Sums of pure noise, as large as can be: the step is within 1.3 radii all the same."""
    g, radii, sizes = np.random.default_rng(1), np.array([0.1, 0.5]), np.array([20.0, 5.0])
    for scale in (1.0, 1e3, 1e9):
        steps = [stepped(g.standard_normal((2, 3)) * scale, np.full(2, scale), sizes, radii) for _ in range(200)]
        assert (np.linalg.norm(steps, axis=2).mean(axis=0) <= STEP * radii).all()


def test_many_columns_are_refused_with_a_way_out() -> None:
    with pytest.raises(InvalidInput, match="at most 6 columns, not 7: use 'hst-means'"):
        forecast(METHOD, problem_of(1000, 3, 7), SEED)


SQUARE = GridCells(Box((0.0, 0.0), (1.0, 1.0)), (20, 20))


def kept(values: Floats, error: float, k: int, rows: int) -> Coreset:
    return occupied(SQUARE, values.ravel(), np.full(values.size, error), k, rows)


def ids(cells: Coreset) -> list[int]:
    return cells.leaves.ids.tolist()


def test_without_noise_occupied_cells_are_kept_and_no_more_than_hold_the_rows() -> None:
    """Their weights are the counts as they were released, and their points the middles."""
    values, places = np.zeros((20, 20)), np.array([[3, 4], [10, 10], [17, 2]])
    values[tuple(places.T)] = 60, 30, 10
    found = kept(values, 0.0, 1, 100)
    at = [ids(found).index(20 * i + j) for i, j in places]
    assert found.weights[at].tolist() == [60, 30, 10]
    assert found.weights.sum() == 100
    assert found.points[at] == pytest.approx((places + 0.5) / 20, abs=1e-5)
    assert len(kept(np.full((20, 20), 10.0), 0.0, 1, 1000).weights) == 100


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


# Constants, by what they do to figures worked out by hand


def test_a_group_on_a_grid_has_three_tenths_of_a_mean_group_added_to_its_radius_and_at_least_as_many_rows() -> None:
    """100 rows in two groups: pooled with 15 rows of the mean square. A cell of sides 0.6 and 0.8 adds 1 / 12."""
    cells = Coreset(np.array([[0.0, 0.0], [0.0, 2.0], [10.0, 0.0]]), np.array([30.0, 10.0, 5.0]))
    sizes, radii = measured(cells, np.array([[0.0, 0.0], [10.0, 0.0]]), 100, np.array([0.6, 0.8]))
    assert sizes.tolist() == [40.0, 15.0]
    mean = (40 + 45 / 12) / 45
    assert radii[0] == pytest.approx(math.sqrt((40 + 40 / 12 + 15 * mean) / 55))
    assert radii[1] == pytest.approx(math.sqrt((5 / 12 + 15 * mean) / 20))


def test_without_noise_a_step_is_lengthened_for_clipping_by_three_tenths() -> None:
    steps = stepped(np.array([[10.0, 0.0], [0.0, 20.0]]), np.zeros(2), np.array([100.0, 50.0]), np.ones(2))
    np.testing.assert_allclose(steps, [[0.13, 0.0], [0.0, 0.52]])


def test_a_step_in_noise_is_no_longer_than_what_can_be_known_of_the_radius() -> None:
    """1 / (1 + d (noise / radius)^2), here 1 / (1 + 2 x 0.25), where the sums are far above their noise."""
    found = stepped(np.array([[1e6, 0.0]] * 3), np.full(3, 50.0), np.full(3, 100.0), np.ones(3))
    np.testing.assert_allclose(found[0, 0], 1.3 * 1e4 / 1.5, rtol=1e-3)

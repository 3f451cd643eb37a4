"""The curve of cost against k, and the k that it suggests: known groups, noise, too few points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem, Released
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats
from cloister.plugins.methods.suggesting import Suggestion, clearness, fewer, separation, suggested
from cloister.plugins.solvers.plus_plus import KMeansPlusPlus
from tests.plugins.methods.runs import cube, groups
from tests.plugins.tables import coreset

SEED = PublicRng.from_seed(5)


def rows_of(k: int, each: int, d: int = 2) -> Floats:
    """So many rows around each of k places."""
    return groups(k * each, k, d, spread=0.02)[0]


def asked(points: Floats, most: int = 20, fewest: int = 2, extent: float = 0.0, **given: Any) -> Suggestion:
    """What is suggested from points. Args: given (their weights and error)."""
    problem = Problem(most, cube(points.shape[1]), 10_000, Budget("pure", 1.0), fewest)
    extents = np.full(len(points), extent)
    return suggested(Released(coreset(points, **given), ()), extents, problem, KMeansPlusPlus(), SEED)


@pytest.mark.parametrize(("k", "d"), [(2, 5), (3, 2), (7, 1), (12, 1), (12, 2), (12, 5)])
def test_groups_that_are_apart_are_counted(k: int, d: int) -> None:
    found = asked(rows_of(k, 40, d))
    assert found.k == k
    assert found.clear[found.numbers == k]
    assert found.apart[found.numbers == k]


def test_points_that_are_few_are_not_a_group_each() -> None:
    """Of three groups in nine cells, nine centres cost nothing; as cells are wide, three are suggested all the same."""
    points = np.repeat([[-0.8], [0.0], [0.8]], 3, axis=0) + np.tile([[-0.05], [0.0], [0.05]], (3, 1))
    assert asked(points, most=9, extent=0.05**2).k == 3


def test_a_far_cell_of_noise_takes_no_group_from_the_others() -> None:
    """Ward alone would merge two of seven groups, which are near one another, before it gave up a far cell."""
    middles = np.column_stack([np.linspace(-0.6, 0.6, 7), np.zeros(7)])
    rows = np.repeat(middles, 5, axis=0) + 0.01 * np.random.default_rng(1).standard_normal((35, 2))
    points, weights = np.concatenate([rows, [[0.0, 0.9]]]), np.full(36, 20.0)
    assert asked(points, weights=weights, error=4.5).k == 7
    cells = coreset(points, weights, 4.5)
    (seven,) = (centers for centers in fewer(cells, points, 8, 7) if len(centers) == 7)
    assert (clearness(cells, seven) > 9).all()


@pytest.mark.parametrize(("error", "clear"), [(4.0, False), (3.99, True)])
def test_centres_are_given_up_only_below_the_most_that_is_asked_and_where_they_are_not_clear(
    error: float, clear: bool
) -> None:
    """Six even cells and a far one of 20 rows, which five standard errors of 4 are not clearly more than. At most 6 are
    asked: the first step merges two cells, whatever is clear; the next gives up the far one, or merges two others."""
    near = np.column_stack([np.arange(6) / 10, np.zeros(6)])
    points, weights = np.concatenate([near, [[0.0, 0.3]]]), np.array([100.0] * 6 + [20.0])
    six, five = fewer(coreset(points, weights, error), points, 6, 5)
    assert (len(six), len(five)) == (6, 5)
    assert (six[:, 1] == 0.3).any()
    assert (five[:, 1] == 0.3).any() == clear


def test_a_curve_holds_the_cost_per_row_and_the_silhouette_less_noise_and_with_what_points_stand_for() -> None:
    """Two groups of two points each, 0.1 from their mean. Of a squared distance the noise of the point's place, one
    column's variance for each of two, comes off; half of the extent comes on."""
    points, weights = np.array([[-0.9, 0], [-0.7, 0], [0.7, 0], [0.9, 0.0]]), np.array([300.0, 300.0, 100.0, 100.0])
    sums = np.array([15.0, 15.0, 4.0, 4.0])
    problem = Problem(3, cube(2), 10_000, Budget("pure", 1.0), 2)
    extents = np.array([0.02, 0.02, 0.06, 0.06])
    found = suggested(Released(coreset(points, weights, 1.0, sums), ()), extents, problem, KMeansPlusPlus(), SEED)
    noise = 2 * np.array([15 / 300, 15 / 300, 4 / 100, 4 / 100]) ** 2
    own = 0.1**2 - noise + extents / 2
    other = np.array([1.7, 1.5, 1.5, 1.7]) ** 2 - noise + extents / 2
    assert found.numbers.tolist() == [2, 3]
    assert found.costs[0] == pytest.approx(weights @ own / 800)
    assert found.silhouettes[0] == pytest.approx(weights @ (1 - np.sqrt(own / other)) / 800)


def test_a_few_groups_that_are_far_from_the_others_are_not_one() -> None:
    """Three large groups on one side and five small ones on the other, which silhouettes of rows take for one."""
    middles = np.array([[-0.9, -0.3], [-0.9, 0.0], [-0.9, 0.3], *([0.9, 0.15 * i] for i in range(-2, 3))])
    sizes = np.array([100] * 3 + [5] * 5)
    points = np.repeat(middles, sizes, axis=0) + 0.02 * np.random.default_rng(1).standard_normal((325, 2))
    found = asked(points, most=12)
    assert found.numbers[found.silhouettes.argmax()] == 4
    assert found.k == 8
    assert "though 4 groups fit their rows a little tighter" in found.why
    assert found.details["curve"]["why"] == found.why


def test_what_points_stand_for_and_the_noise_of_their_places_are_in_the_separation() -> None:
    """Two groups, 2 apart along the first of two columns, of variance 0.01, and half of the rows' squared distance from
    their points; centres have standard errors of 0.04 and 0.03."""
    points = np.array([[-1.1, 0.0], [-0.9, 0.0], [0.9, 0.5], [1.1, 0.5], [0.9, -0.5], [1.1, -0.5]])
    weights, centers = np.array([4.0, 4, 1, 1, 1, 1]), np.array([[-1.0, 0.0], [1.0, 0.0]])
    for extent, part, expected in (
        (0.0, 0.0, 4 / 0.01),
        (0.02, 0.0, 4 / 0.02),
        (0.02, 1.0, (2 - 2 * 0.05) ** 2 / 0.02),
    ):
        sums = part * np.array([0.32 / np.sqrt(2)] * 2 + [0.06] * 4)
        np.testing.assert_allclose(
            separation(coreset(points, weights, 0.0, sums), np.full(6, extent), centers), expected
        )


def test_noise_alone_suggests_the_least_number_and_says_so() -> None:
    found = asked(rows_of(5, 20), fewest=3, error=50.0)
    assert (found.k, found.clear.any()) == (3, False)
    assert "hardly more rows than the noise" in found.why
    assert asked(rows_of(5, 20), fewest=3, weights=-1.0, error=50.0).k == 3

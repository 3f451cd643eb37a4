"""The curve of cost against k, and the k that it suggests: exact costs, known groups, noise, too few points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans

from cloister.core.budget import Budget
from cloister.core.clustering import Problem, Released
from cloister.core.nearest import NearestCenter
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats
from cloister.plugins.methods.post_processing import filled
from cloister.plugins.methods.suggesting import APART, Suggestion, clearness, fewer, merged, separation, suggested
from cloister.plugins.solvers.plus_plus import KMeansPlusPlus
from tests.plugins.methods.runs import cube
from tests.plugins.tables import coreset

SEED = PublicRng.from_seed(5)


def groups(k: int, each: int, d: int = 2, spread: float = 0.02) -> Floats:
    """Rows (k each, d) around k points of a grid."""
    side = int(np.ceil(k ** (1 / d)))
    middles = np.stack(np.meshgrid(*[np.linspace(-0.8, 0.8, side)] * d), axis=-1).reshape(-1, d)[:k]
    return np.repeat(middles, each, axis=0) + spread * np.random.default_rng(k).standard_normal((k * each, d))


def asked(points: Floats, most: int = 20, fewest: int = 2, extent: float = 0.0, **given: Any) -> Suggestion:
    """What is suggested from points. Args: given (their weights and error)."""
    problem = Problem(most, cube(points.shape[1]), 10_000, Budget("pure", 1.0), fewest)
    extents = np.full(len(points), extent)
    return suggested(Released(coreset(points, **given), ()), extents, problem, KMeansPlusPlus(), SEED)


@pytest.mark.parametrize(("k", "d"), [(2, 5), (3, 2), (7, 1), (12, 1), (12, 2), (12, 5)])
def test_groups_that_are_apart_are_counted(k: int, d: int) -> None:
    found = asked(groups(k, 40, d))
    assert found.k == k
    assert found.clear[found.numbers == k]
    assert found.apart[found.numbers == k]


@pytest.mark.parametrize("each", [20, 200])  # points that are merged themselves, and the solver's centres of many
def test_costs_are_those_of_the_best_clusterings(each: int) -> None:
    rows = groups(6, each)
    found = asked(rows, most=12)
    exact = [KMeans(k, n_init=20, random_state=0).fit(rows).inertia_ / len(rows) for k in found.numbers]
    assert found.numbers.tolist() == list(range(2, 13))
    np.testing.assert_allclose(found.costs[4], exact[4], rtol=1e-9)
    np.testing.assert_allclose(found.costs[4:], exact[4:], rtol=0.05)
    assert (found.costs[:4] >= np.array(exact[:4]) * (1 - 1e-9)).all()  # groups that are merged, one pair after another
    assert (found.costs[:4] <= 1.25 * np.array(exact[:4])).all()


def test_what_points_stand_for_is_in_the_costs() -> None:
    rows = groups(3, 10)
    plain, wide = asked(rows, most=5), asked(rows, most=5, extent=0.5)
    np.testing.assert_allclose(wide.costs - plain.costs, 0.25)
    assert (wide.silhouettes < plain.silhouettes).all()


def test_points_that_are_few_are_not_a_group_each() -> None:
    """Of three groups in nine cells, nine centres cost nothing; as cells are wide, three are suggested all the same."""
    points = np.repeat([[-0.8], [0.0], [0.8]], 3, axis=0) + np.tile([[-0.05], [0.0], [0.05]], (3, 1))
    assert asked(points, most=9, extent=0.05**2).k == 3


def test_noise_is_no_group() -> None:
    """Two groups, and a far cell that noise of three standard errors gave rows."""
    points = np.concatenate([groups(2, 30), [[0.0, 0.9]]])
    weights = np.append(np.full(60, 20.0), 15.0)
    assert asked(points, weights=weights, error=0.1).k == 3
    assert asked(points, weights=weights, error=5.0).k == 2


def test_a_far_cell_of_noise_takes_no_group_from_the_others() -> None:
    """Ward alone would merge two of seven groups, which are near one another, before it gave up a far cell."""
    middles = np.column_stack([np.linspace(-0.6, 0.6, 7), np.zeros(7)])
    rows = np.repeat(middles, 5, axis=0) + 0.01 * np.random.default_rng(1).standard_normal((35, 2))
    points, weights = np.concatenate([rows, [[0.0, 0.9]]]), np.full(36, 20.0)
    assert asked(points, weights=weights, error=4.5).k == 7
    cells = coreset(points, weights, 4.5)
    (seven,) = (centers for centers in fewer(cells, points, 8, 7) if len(centers) == 7)
    assert (clearness(cells, seven) > 9).all()


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


@pytest.mark.parametrize(("even", "expected"), [(False, 7.0), (True, 12.0)])
def test_halves_of_one_group_are_not_apart_whatever_else_there_is(even: bool, expected: float) -> None:
    g = np.random.default_rng(2)
    along = 2 * g.uniform(-1, 1, 20_000) if even else g.standard_normal(20_000)
    far = g.standard_normal((300, 2)) + np.array([40.0, 0.0])
    points = np.concatenate([np.column_stack([0 * along, along]), far])
    middle = np.abs(along).mean()
    centers = np.array([[0.0, -middle], [0.0, middle], [40.0, 0.0]])
    found = separation(coreset(points), np.zeros(len(points)), centers)
    np.testing.assert_allclose(found, expected, rtol=0.03)
    assert found < APART


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


def test_rows_are_clear_by_the_errors_of_their_own_points() -> None:
    points, errors = np.array([[0.0], [0.1], [5.0], [9.0]]), np.array([3.0, 4.0, 0.0, 1.0])
    cells = coreset(points, [10.0, 15.0, 1.0, -1.0], errors)
    np.testing.assert_allclose(clearness(cells, np.array([[0.0], [5.0], [9.0]])), [5.0, np.inf, 0.0])


def test_noise_alone_suggests_the_least_number_and_says_so() -> None:
    found = asked(groups(5, 20), fewest=3, error=50.0)
    assert (found.k, found.clear.any()) == (3, False)
    assert "hardly more rows than the noise" in found.why
    assert asked(groups(5, 20), fewest=3, weights=-1.0, error=50.0).k == 3


def test_the_two_whose_union_costs_least_are_merged() -> None:
    centers, sizes = np.array([[0.0, 0.0], [1.0, 0.0], [1.5, 0.0], [9.0, 9.0]]), np.array([1.0, 1.0, 30.0, 5.0])
    np.testing.assert_allclose(merged(centers, sizes)[[0, 1]], [[0.0, 0.0], [46 / 31, 0.0]])
    np.testing.assert_allclose(merged(centers, np.array([1.0, 30.0, 30.0, 5.0]))[0], [30 / 31, 0.0])
    assert len(merged(centers, np.zeros(4))) == 3


def test_copies_that_fill_a_round_hold_no_row() -> None:
    rows = np.random.default_rng(3).integers(-900, 900, (5000, 2))
    centers = np.array([[5, 5], [-400, 300], [700, -20]], np.int64)
    near = NearestCenter(filled(centers, 11), 2000)
    assert len(near.centers) == 11
    np.testing.assert_array_equal(near.locate(rows), NearestCenter(centers, 2000).locate(rows))
    assert filled(centers, 2) is not None
    np.testing.assert_array_equal(filled(centers, 3), centers)

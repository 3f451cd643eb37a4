"""radius-means: wide bounds, its shares and candidates, too little budget, cells around a point."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.types import Floats
from cloister.metrics import nicv
from cloister.plugins.methods.clipping import SCALE
from cloister.plugins.methods.measuring import Moved, Shells
from cloister.plugins.methods.radius_means import candidates, shares
from cloister.plugins.trees.directions import NORM
from tests.plugins.methods.runs import SEED, cube, groups, made, run


def ran(rows: Floats, k: int, mu2: float, seed: int, half: float = 1.0, **wires: str) -> Floats:
    problem = Problem(k, cube(rows.shape[1], half), len(rows), Budget("gaussian", mu2))
    return run(made("radius-means", wires), rows, problem, seed)[0].centers


def test_bounds_a_thousand_times_too_wide_cost_little() -> None:
    rows, truth = groups(20_000, 6, 8)
    assert min(nicv(rows, ran(rows, 6, 1.0, seed, 1000.0)) for seed in range(3)) < 2 * nicv(rows, truth)


def test_a_group_behind_another_is_found() -> None:
    """Seen from the mean of all rows, two of the five groups lie in one direction."""
    g, middles = np.random.default_rng(1), np.zeros((5, 6))
    middles[[1, 2], 0], middles[3, 1], middles[4, 2] = (0.45, 0.9), 0.4, -0.4
    rows = middles[g.choice(5, 20_000, p=[0.5, 0.08, 0.02, 0.2, 0.2])] + 0.03 * g.standard_normal((20_000, 6))
    for seed in range(3):
        assert nicv(rows, ran(rows, 5, 0.25, seed)) < 1.3 * nicv(rows, middles)


@pytest.mark.thorough
@pytest.mark.parametrize(("d", "k"), [(1, 3), (3, 1), (3, 150), (20, 3)])
def test_with_a_budget_worth_nothing_all_centres_are_in_the_middle(d: int, k: int) -> None:
    """150 rows in a corner at mu = 0.0003, an epsilon of about 0.001: never worse than one centre at the middle."""
    rows = np.random.default_rng(2).uniform(0.2, 0.9, (150, d))
    for seed in range(10):
        centers = ran(rows, k, 0.0003**2, seed)
        assert np.linalg.norm(centers, axis=1).max() < 0.05 * np.sqrt(d)
        assert nicv(rows, centers) < 1.02 * nicv(rows, np.zeros((1, d)))


def test_shares_of_the_budget_are_those_of_its_study_and_add_up_to_it() -> None:
    """In four columns, with two rounds: the mean, the radius, cells 1 : 2, a radius, the lift 1 : 4, and per round."""
    np.testing.assert_allclose(shares(4, 2), [0.03, 0.02, 0.1, 0.2, 0.02, 0.05, 0.2] + [0.02, 0.034, 0.136] * 2)
    for rounds in range(9):
        for d in (1, 64):
            given = shares(d, rounds)
            assert min(given) > 0
            assert sum(given) == pytest.approx(1.0 if rounds else 0.62)


@pytest.mark.parametrize(("k", "heavy", "most"), [(2, 0, 10), (2, 12, 12), (4, 3, 20), (4, 60, 60), (30, 300, 300)])
def test_candidates_are_three_errors_above_zero_and_the_others_repeat_the_first(k: int, heavy: int, most: int) -> None:
    """At least five per centre, and as many in every run."""
    sizes, ones = np.where(np.arange(400) < heavy, 12.1, 11.9), np.ones(400)
    cells = Moved(sizes, 4 * ones, np.arange(800.0).reshape(400, 2), 0.1 * ones, ones, 10.0)
    found, offsets = candidates(cells, k)
    assert found == most
    assert len(offsets) == max(64, 12 * k)
    assert (offsets[found:] == offsets[0]).all()


def test_only_the_last_shell_clips_and_inner_ones_have_less_noise() -> None:
    middle = np.array([[50_000, -70_000]])
    cells = Shells.around(middle, 1000, 8, SEED)
    vectors = cells.offsets()
    assert vectors.radii[:4].tolist() == [708, 1000, 1415, 2000]
    rows = np.array([[700, 0], [0, -999], [1400, 0], [1900, 0], [0, 100_000]])
    buckets = cells.locate(middle + rows)
    back = vectors.values(middle + rows, buckets) * vectors.radii[buckets[:, 0]][:, None] / SCALE
    assert np.allclose(back, [*rows[:4], [0, 2000]], atol=0.01)
    assert abs(cells.cells.around).max() <= NORM

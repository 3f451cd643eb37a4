"""Algorithm 1 of the tree paper: what it asks, and what its centres cost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.accounting import PrivacyTarget
from cloister.core.clustering import Problem
from cloister.core.session import forecast
from cloister.metrics import k_median_cost
from tests.plugins.methods.runs import SEED, cube, groups, made, run

NAME = "tree-alone-median"


def test_all_of_a_pure_budget_goes_into_one_question_about_every_level_from_the_root() -> None:
    problem = Problem(4, cube(5), 3000, PrivacyTarget(0.7, 0.0).measured({"pure"}))
    ((asked,),) = [round.parts for round in forecast(made(NAME), problem, SEED)]
    sizes = asked.cells.space.sizes
    assert sizes[0] == 1
    assert len(sizes) == 1 + 7 * 5  # seven splits of each column, none of which is left out
    assert asked.vectors is None


def test_without_noise_it_finds_groups_that_are_far_apart() -> None:
    rows, places = groups(2000, 4, 2, 0.005)
    problem = Problem(4, cube(2), 2000, PrivacyTarget(1.0, 0.0).measured({"exact"}))
    found, _ = run(made(NAME, {"tree_counts": "exact"}), rows, problem)
    assert k_median_cost(rows, found.centers) / 2000 < 0.1
    assert sorted(found.weights) == pytest.approx([500] * 4, rel=0.05)
    assert found.details["weights_error"].shape == (4,)
    assert k_median_cost(rows, places) < k_median_cost(rows, found.centers)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_its_cost_is_within_theorem_1(epsilon: float) -> None:
    """With constant 1, which is generous: the mean of five runs is far below the expectation that it bounds."""
    rows, places = groups(5000, 5, 2)
    best, logarithm = k_median_cost(rows, places), math.log2(5000)
    bound = 2**1.5 * logarithm * best + 2**2 * logarithm**2 * 5 / epsilon
    problem = Problem(5, cube(2), 5000, PrivacyTarget(epsilon, 0.0).measured({"pure"}))
    costs = [k_median_cost(rows, run(made(NAME), rows, problem, seed)[0].centers) for seed in range(5)]
    assert np.mean(costs) < bound

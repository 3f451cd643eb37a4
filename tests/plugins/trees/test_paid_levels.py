"""What is paid for a tree's counts is what carries noise: every level that is asked, the root included, and no
other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cloister.core.buckets import QuestionContext
from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.types import Floats, Ints
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.plugins.trees.quadtree import Quadtree, ShiftedQuadtree

SEED, BOX = PublicRng.from_seed(81), Box((-1.0,) * 3, (1.0,) * 3)
DRAWS = 300
TREES = {"one cell": (1, 0), "shallow": (3, 0), "without a root": (12, 4), "deep": (60, 20)}
ROWS = {"empty": 0, "one row": 1, "many rows": 700}


def opened(depth: int, top: int) -> Quadtree:
    builder = ShiftedQuadtree(depth=depth, top=top)
    return builder.open(Problem(3, BOX, 1000, Budget("pure", 1.0)), SEED)


def noise(tree: Quadtree, rows: Ints, oracle: Any, budget: Budget) -> Floats:
    """Noise (draws, levels) in the counts of the cells that the middle of the domain is in."""
    channel = oracle.open(tree.space, budget, QuestionContext(1000, BOX.unit, SEED))
    users = np.arange(len(rows), dtype=np.uint64)
    ids = tree.locate(rows)
    summary = channel.absorb(channel.encode(ids, users, NoiseRng.for_tests(0)))
    (cells,) = tree.locate(np.zeros((1, 3), np.int64))
    exact = (ids == cells).sum(axis=0)
    drawn = np.empty((DRAWS, len(cells)))
    for i in range(DRAWS):
        table = channel.decode(summary, NoiseRng.for_tests(i + 1))
        drawn[i] = [table.at(cells[[level]], level)[0] for level in range(len(cells))]
    return drawn - exact


@pytest.mark.thorough
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("shape", TREES.values(), ids=TREES)
@pytest.mark.parametrize(
    ("oracle", "budget"),
    [(DiscreteLaplace(), Budget("pure", 1.0)), (DiscreteGaussian(), Budget("gaussian", 0.1))],
)
def test_every_asked_level_has_the_noise_that_all_of_them_together_pay_for(
    oracle: Any, budget: Budget, shape: tuple[int, int], rows: int
) -> None:
    """A mean square of 300 draws (fourth moment at most 6 times the squared variance: relative s.e. 0.13) is 0.4 or 2.5
    times the law's once in 1e7 levels at most: squares are bounded from below, so that their means fall short less
    often than normal ones."""
    tree = opened(*shape)
    levels = shape[0] + 1 - shape[1]
    found = noise(tree, BOX.snap(BOX.sample(np.random.default_rng(rows), rows, 0.0)), oracle, budget)
    assert found.shape[1] == levels
    of_pure, of_gaussian = 0.5 / math.sinh(0.5 * budget.amount / levels) ** 2, levels / budget.amount
    law = of_pure if budget.measure == "pure" else of_gaussian  # scale levels / eps; sigma^2 = levels / mu^2
    ratios = (found**2).mean(axis=0) / law
    assert (ratios > 1 / 2.5).all()
    assert (ratios < 2.5).all()
    assert 1 / 1.8 < ratios.mean() < 1.8
    assert abs(np.corrcoef(found.T) - np.eye(levels)).max() < 0.4


def test_a_budget_per_level_would_be_too_small() -> None:
    """The mutant: noise as if one level were asked. It is caught by the bounds above on every tree of more than two
    levels."""
    tree = opened(3, 0)
    channel = DiscreteLaplace().open(tree.space, Budget("pure", 1.0), QuestionContext(1000, BOX.unit, SEED))
    assert channel.deviation > 2.5 * math.sqrt(0.5) / math.sinh(0.5)

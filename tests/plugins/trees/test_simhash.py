"""The tree of sign bits: every row in one leaf, growth against a recursion, ties, blocks, options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Ball
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats
from cloister.plugins.trees.simhash import SimHash, SimHashTree
from tests.plugins.tables import Table

SEED = PublicRng.from_seed(33)


def opened(k: int = 4, d: int = 6, rows: int = 1000, **options: Any) -> SimHashTree:
    return SimHash(**options).open(Problem(k, Ball((0.0,) * d, 1.0), rows, Budget("pure", 1.0)), SEED)


def leaves_by_recursion(tree: SimHashTree, counts: list[Floats], level: int, node: int) -> list[tuple[int, int]]:
    """Algorithm as printed: a node of at least the threshold has two children, down to the last level."""
    last = level + 1 == tree.space.levels
    if last or not counts[level][node] >= tree.threshold:
        return [(level, node)]
    return [leaf for bit in (0, 1) for leaf in leaves_by_recursion(tree, counts, level + 1, 2 * node + bit)]


@pytest.mark.parametrize("seed", range(4))
def test_growth_is_the_paper_s_recursion(seed: int) -> None:
    g, tree = np.random.default_rng(seed), opened(depth=6)
    counts = [g.normal(tree.threshold, 200, size) for size in tree.space.sizes]
    grown = tree.grow(Table(counts, [np.arange(size) / 100 for size in tree.space.sizes]))
    found = list(zip(grown.leaves.levels.tolist(), grown.leaves.ids.tolist(), strict=True))
    assert sorted(found) == sorted(leaves_by_recursion(tree, counts, 0, 0) + leaves_by_recursion(tree, counts, 0, 1))
    assert grown.weights.tolist() == [counts[level][node] for level, node in found]
    assert grown.errors.weights.tolist() == [node / 100 for _, node in found]


@pytest.mark.parametrize(("k", "levels"), [(1, 3), (2, 4), (8, 6), (9, 7)])
def test_the_default_depth_is_the_paper_s(k: int, levels: int) -> None:
    assert opened(k=k).space.levels == levels


def test_the_threshold_rounds_the_fair_share_down() -> None:
    assert opened(k=3, rows=1000).threshold == 1.5 * 333
    assert opened(k=3, rows=1000, branch=2.0).threshold == 2.0 * 333

"""Grown trees: splitting, and weights that agree against a general least-squares solver."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.core.types import Floats, Ints
from cloister.plugins.trees.quadtree import Nodes


def share(level: int, cell: int) -> float:
    """Of the rows: 0.4 of a cell's are in its left child."""
    return float(np.prod([0.6 if cell >> i & 1 else 0.4 for i in range(level)]))


class Random:
    """Noisy counts of cells that split their rows unevenly, remembered."""

    def __init__(self, seed: int, rows: float) -> None:
        self._g, self._rows, self._known = np.random.default_rng(seed), rows, dict[tuple[int, int], float]()

    def at(self, ids: Ints, level: int = 0) -> Floats:
        for i in ids.tolist():
            self._known.setdefault((level, i), self._rows * share(level, i) + self._g.normal(0, 5))
        return np.array([self._known[level, i] for i in ids.tolist()])

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), 5.0 + level)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("top", [0, 2])
def test_weights_are_the_generalised_least_squares_where_none_is_negative(seed: int, top: int) -> None:
    nodes = Nodes.grown(Random(seed, 1e6), top, 7, 3.0)
    weights, errors = nodes.consistent()
    leaves = np.flatnonzero(~nodes.split)
    holds = np.zeros((len(nodes.levels), len(leaves)))
    for column, leaf in enumerate(leaves):
        node = leaf
        while node >= 0:
            holds[node, column] = 1
            node = nodes.parents[node]
    asked = np.isfinite(nodes.variances)
    scale = 1 / np.sqrt(nodes.variances[asked])
    best = np.linalg.lstsq(holds[asked] * scale[:, None], nodes.counts[asked] * scale, rcond=None)[0]
    covariance = np.linalg.inv((holds[asked] * scale[:, None]).T @ (holds[asked] * scale[:, None]))
    if (holds @ best > 0).all():
        assert np.allclose(weights[leaves], best)
    assert errors[0] ** 2 == pytest.approx(covariance.sum())
    below = nodes.parents >= 0
    sums = np.bincount(nodes.parents[below], weights[below], len(weights))
    assert np.allclose(sums[nodes.split], weights[nodes.split])
    assert (weights >= 0).all()


def test_at_least_one_case_above_has_no_clamped_weight() -> None:
    free = [Nodes.grown(Random(seed, 1e6), 0, 7, 3.0) for seed in range(5)]
    assert any((nodes.consistent()[0][~nodes.split] > 0).all() for nodes in free)


def test_a_negative_root_gives_weights_of_zero() -> None:
    nodes = Nodes.grown(Random(1, -100.0), 0, 5, 3.0)
    assert not nodes.consistent()[0].any()
    assert nodes.split.tolist() == [False]


def test_the_frontier_is_looked_at_once_per_level_and_no_further() -> None:
    looks = list[tuple[int, list[int]]]()

    class Told(Random):
        def at(self, ids: Ints, level: int = 0) -> Floats:
            looks.append((level, ids.tolist()))
            return np.where(ids == 0, 100.0, 0.0)

    nodes = Nodes.grown(Told(0, 1.0), 1, 4, 3.0)
    assert looks == [(0, [0, 1]), (1, [0, 1]), (2, [0, 1]), (3, [0, 1])]
    assert nodes.levels.tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert nodes.parents.tolist() == [-1, 0, 0, 1, 1, 3, 3, 5, 5]

"""Lemmas of Chang, Ghazi, Kumar, Manurangsi 2021 on what the net tree's counts say about the best clustering."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.types import Floats, Ints
from cloister.plugins.trees.net_tree import NetTree, proof_expand, threshold
from cloister.plugins.trees.nets import covering_radius, packing_radius
from tests.plugins.tables import Counted
from tests.plugins.trees.test_net_tree import KEY, ball, chain, cost, mixture, opened, transport


def optimum(x: Floats, k: int) -> float:
    """The smallest k-means cost (m,) of points on a line, by a dynamic program over their order."""
    x = np.sort(x)
    n = len(x)
    sums, squares = np.r_[0.0, np.cumsum(x)], np.r_[0.0, np.cumsum(x * x)]
    starts = np.arange(n)[:, None]
    ends = np.arange(1, n + 1)[None]
    sizes = np.maximum(ends - starts, 1)
    within = squares[ends] - squares[starts] - (sums[ends] - sums[starts]) ** 2 / sizes
    within = np.where(ends > starts, np.maximum(within, 0.0), np.inf)
    best = np.r_[0.0, within[0]]
    for _ in range(k - 1):
        best = np.r_[0.0, (best[:-1, None] + within).min(axis=0)]
    return float(best[-1])


def bottom(values: Floats, b: int) -> float:
    return float(np.sort(values)[: max(b, 0)].sum())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_lemma_17_sets_that_no_ball_meets_many_of_bound_the_best_cost_from_below(k: int, seed: int) -> None:
    """On a line, where the best cost is computed: sets are pieces of it with gaps, and a is counted, not derived."""
    g = np.random.default_rng([17, k, seed])
    pieces = 14
    left = np.arange(pieces) / pieces
    rows = np.concatenate([x + g.random(g.integers(1, 15)) * 0.6 / pieces for x in left])
    weights = np.histogram(rows, np.r_[left, 1.0])[0].astype(float)
    for r in (0.01, 0.05, 0.1):
        centers = np.linspace(-0.1, 1.1, 4001)
        met = (left <= centers[:, None] + r) & (centers[:, None] - r <= left + 0.6 / pieces)
        a = int(met.sum(axis=1).max())
        assert optimum(rows, k) >= r * r * bottom(weights, pieces - k * a)


@pytest.mark.parametrize("theta", [0.5, 4.0, 8 * math.sqrt(10)])
def test_corollary_18_the_counts_of_a_level_bound_the_best_cost_from_below(theta: float) -> None:
    """In one dimension, at every level that has more than k a nodes."""
    k, tree = 2, opened(1, 8)
    a = math.ceil(1 + (2 + theta) * covering_radius(1) / packing_radius(1))
    assert a == proof_expand(1) or theta < 8 * math.sqrt(10)
    rows = ball(1).snap(np.random.default_rng(18).uniform(-1, 1, (600, 1)))
    best, checked = optimum(ball(1).real(rows)[:, 0], k), 0
    for level, names in enumerate(chain(tree, tree.projection.of(rows)), start=1):
        counts = np.unique(names, axis=0, return_counts=True)[1].astype(float)
        r = theta * 2.0**-level
        if len(counts) > k * a:
            checked += 1
            assert best >= r * r * bottom(counts, len(counts) - k * a)
    assert checked


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 6), st.floats(0.1, 30.0), st.integers(0, 2**32))
def test_lemma_19_what_is_left_as_leaves_is_twice_what_bounds_the_cost_and_a_rest(
    m: int, batch: int, rounds: int, eta: float, seed: int
) -> None:
    """For counts that are off by eta at most, clamped at 0 and sorted."""
    g = np.random.default_rng(seed)
    counts = np.floor(np.exp(g.uniform(0, 9, m)))
    noisy = np.sort(np.maximum(counts + g.uniform(-eta, eta, m), 0.0))
    tau = threshold(noisy, batch, rounds)
    leaves, below = noisy[: m - tau].sum(), noisy[: max(0, m - tau - batch)].sum()
    assert leaves <= 2 * below + (counts.sum() + m * eta) / 2**rounds + 1e-6


@pytest.mark.parametrize(("d", "levels", "eta"), [(1, 10, 0.2), (1, 10, 2.0), (2, 5, 0.02), (3, 3, 0.01)])
def test_theorem_20_counts_that_are_off_cost_their_error_times_the_nodes(d: int, levels: int, eta: float) -> None:
    """With a frequency oracle that is eta-accurate and xi = 1/2. The constant of O(N_T) is the proof's: an error moves
    4 (noisy for exact at the leaves), 8 (Lemma 19's right side), 4 (its rest), and the leaves' own |f - f~|.

    From d = 3 on the proof's a is more than all nodes that fit in memory, so that every node is expanded and the cost
    is that of the last level: the test then says that nothing is lost on the way."""
    n, k, xi = 6000, 2, 0.5
    tree = opened(d, levels, expand=None, rounds=None, k=k)
    rows = ball(d).snap(mixture(d, n, 2, 0.05, 20 + d))
    oracle = Counted(tree.locate(rows))

    class Off:
        def at(self, ids: Ints, level: int = 0) -> Floats:
            signs = np.where(ids * 2654435761 % 1009 < 504, -1.0, 1.0)
            return oracle.at(ids, level) + eta * signs

        def standard_error(self, ids: Ints, level: int = 0) -> Floats:
            return np.zeros(len(ids))

    grown, x = tree.grow(Off()), ball(d).real(rows)
    nodes = sum(oracle.looked)
    places = {
        (int(lv), int(i)): w for lv, i, w in zip(grown.leaves.levels, grown.leaves.ids, grown.weights, strict=True)
    }
    assert len(places) == len(grown.weights)
    exact = np.concatenate([oracle.at(grown.leaves.ids[[j]], int(lv)) for j, lv in enumerate(grown.leaves.levels)])
    wrong = float(np.abs(grown.weights - exact).sum())
    assert wrong <= eta * len(exact) + 1e-6
    moved = transport(tree, grown, rows) + wrong
    best = min(cost(x, np.ones(n), c) for c in starts(x, k))
    rest = 4 * n * 4.0**-levels + 4 * levels
    assert moved <= rest + xi / (8 * (1 + 2 / xi)) * best + 17 * eta * nodes
    g = np.random.default_rng(9)
    for _ in range(20):
        centers = g.uniform(-0.7, 0.7, (k, d))
        true = cost(x, np.ones(n), centers)
        assert abs(cost(grown.points, grown.weights, centers) - true) <= xi * true + 4 * (1 + 2 / xi) * moved


def starts(x: Floats, k: int) -> list[Floats]:
    """Centres after Lloyd's rounds from five starts: their cost is at least the best one."""
    from sklearn.cluster import KMeans

    return [KMeans(k, n_init=1, random_state=i).fit(x).cluster_centers_ for i in range(5)]


def test_the_proofs_constants_are_far_beyond_any_number_of_nodes_from_three_dimensions_on() -> None:
    """Why theorem 20 is tested in up to three dimensions, and ``one-round-net-tree`` has other options."""
    assert [proof_expand(m) for m in (1, 2)] == [29, 1058]
    assert proof_expand(3) > 2**14
    assert proof_expand(4) > 10**6
    with pytest.raises(Exception, match="raise 'cap'"):
        NetTree(dimension=8, levels=1).open(Problem(2, ball(8), 10_000, Budget("pure", 1.0)), KEY)

"""The net tree: the paper's lemmas with an exact oracle, and what noise must not break."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from sklearn.cluster import KMeans

from cloister.core.budget import Budget
from cloister.core.clustering import Coreset, Problem
from cloister.core.domains import Ball, Domain
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats, Ints
from cloister.plugins.trees.net_tree import NetTree, NetTreeOpened
from cloister.plugins.trees.nets import RADIUS, energy
from tests.plugins.tables import Counted, Table

KEY = PublicRng.from_seed(3)


def ball(d: int) -> Ball:
    return Ball((0.0,) * d, 1.0)


@cache
def opened(d: int, levels: int, seed: int = 0, **options: int | float | None) -> NetTreeOpened:
    options = {"dimension": min(d, 8), "cap": 2**20, "significance": 0.0, **options}
    rows, k = int(options.pop("rows", 10_000) or 0), int(options.pop("k", 2) or 0)
    problem = Problem(k, ball(d), rows, Budget("pure", 1.0))
    return NetTree(levels=levels, **options).open(problem, KEY.child(seed))  # type: ignore[arg-type]


def rows_in(domain: Domain, n: int, seed: int) -> Ints:
    """Rows all over a domain, and as many at its border."""
    g = np.random.default_rng(seed)
    border = domain.snap(domain.middle + g.standard_normal((n // 2, domain.dimension)) * domain.diameter * 10)
    return np.concatenate([domain.snap(domain.sample(g, n - n // 2, 0.0)), border])


def chain(tree: NetTreeOpened, images: Ints) -> list[Ints]:
    """Names (n, m) of the nodes above images, coarse levels first."""
    names: list[Ints] = []
    for level in reversed(range(len(tree.nets))):
        names.insert(0, tree.parent(level, images))
        images = tree.nets[level].points(names[0])
    return names


def distance(one: Ints, other: Ints) -> Floats:
    """In radii of the ball."""
    return np.sqrt(energy(one - other) / one.shape[1]) / RADIUS


# --- the paper's lemmas


@pytest.mark.parametrize(("d", "levels"), [(1, 12), (3, 8), (8, 3)])
def test_lemma_14_a_node_is_within_twice_its_radius_of_its_rows(d: int, levels: int) -> None:
    tree = opened(d, levels)
    images = tree.projection.of(rows_in(ball(d), 4000, d))
    for level, names in enumerate(chain(tree, images), 1):
        far = distance(images, tree.nets[level - 1].points(names))
        assert far.max() <= 2.0 ** (1 - level) + 1e-6
    last = tree.nets[-1].points(chain(tree, images)[-1])
    assert distance(images, last).max() <= 2.0**-levels


@pytest.mark.parametrize(("d", "levels"), [(1, 8), (2, 6), (4, 3)])
def test_every_row_is_in_a_child_of_its_node_and_in_no_other_child(d: int, levels: int) -> None:
    tree = opened(d, levels)
    images = tree.projection.of(rows_in(ball(d), 400, d + 10))
    ids = tree.locate(rows_in(ball(d), 400, d + 10))
    above = before = np.zeros((1, d), np.int64)
    for level, names in enumerate(chain(tree, images)):
        nodes, whose = tree.children(level, above)
        place = {tuple(name): int(owner) for name, owner in zip(nodes.tolist(), whose, strict=True)}
        assert len(place) == len(nodes)  # no child of two
        mine = np.array([place[tuple(name)] for name in names.tolist()])
        if level > 0:
            assert np.array_equal(above[mine], before)
        assert np.array_equal(tree.ids(level, names), ids[:, level])
        above, before = np.unique(names, axis=0), names


# --- Theorem 20


def cost(points: Floats, weights: Floats, centers: Floats) -> float:
    squares = ((points[:, None, :] - centers) ** 2).sum(axis=2).min(axis=1)
    return float((weights * squares).sum())


def mixture(d: int, n: int, clusters: int, wide: float, seed: int) -> Floats:
    g = np.random.default_rng(seed)
    centers = g.uniform(-0.6, 0.6, (clusters, d))
    return centers[g.integers(0, clusters, n)] + wide * g.standard_normal((n, d)) / math.sqrt(d)


@pytest.mark.parametrize(("d", "levels", "clusters", "wide"), [(1, 10, 2, 0.1), (1, 10, 30, 0.02), (2, 5, 2, 0.001)])
def test_theorem_20_the_papers_tree_is_a_coreset(d: int, levels: int, clusters: int, wide: float) -> None:
    """With an exact oracle (eta = 0) and xi = 1/2. What the bound adds is n 2^(-2T) for the last level, 4 of it as a
    transport, and n / 2^Gamma for each level before. In one dimension the threshold stops branches before the last
    level; in two there are still fewer nodes than k a."""
    n, k, xi = 10_000, 2, 0.5
    tree = opened(d, levels, expand=None, rounds=None, rows=n, k=k)
    rows = ball(d).snap(mixture(d, n, clusters, wide, d))
    grown, x = tree.grow(Counted(tree.locate(rows))), ball(d).real(rows)
    assert grown.weights.sum() == n
    assert (grown.leaves.levels.min() < levels - 1) == (d == 1)
    moved, best = transport(tree, grown, rows), float(KMeans(k, n_init=10, random_state=0).fit(x).inertia_)
    assert moved <= 4 * n * 4.0**-levels + xi / (8 * (1 + 2 / xi)) * best + 4 * levels
    g = np.random.default_rng(7)
    for _ in range(40):
        centers = g.uniform(-0.7, 0.7, (k, d))
        true = cost(x, np.ones(n), centers)
        assert abs(cost(grown.points, grown.weights, centers) - true) <= xi * true + 4 * (1 + 2 / xi) * moved


def transport(tree: NetTreeOpened, grown: Coreset, rows: Ints) -> float:
    """mt of rows to the leaf that they are in: the sum of squared distances; every row is in one leaf."""
    ids, x = tree.locate(rows), ball(rows.shape[1]).real(rows)
    place = {
        (int(level), int(i)): j for j, (level, i) in enumerate(zip(grown.leaves.levels, grown.leaves.ids, strict=True))
    }
    leaf = np.full(len(rows), -1)
    for level in range(len(tree.nets)):
        mine = np.array([place.get((level, i), -1) for i in ids[:, level].tolist()])
        assert not ((mine >= 0) & (leaf >= 0)).any()
        leaf = np.maximum(leaf, mine)
    assert (leaf >= 0).all()
    return float(((x - grown.points[leaf]) ** 2).sum())


# --- growing from noise


class Hashed:
    """Counts that depend on the bucket alone, a few of them large, half of them negative."""

    def at(self, ids: Ints, level: int = 0) -> Floats:
        drawn: Floats = np.exp((ids * 2654435761 % 1009) / 100) - 150.0
        return drawn

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.zeros(len(ids))


@pytest.mark.parametrize(("d", "expand", "rounds"), [(1, 4, 9), (2, 1, 2), (3, 2, 2)])
def test_growing_is_algorithm_1_line_by_line(d: int, expand: int, rounds: int) -> None:
    k, tree = 2, opened(d, 4, expand=expand, rounds=rounds)
    front, leaves, total = tree.children(0, np.zeros((1, d), np.int64))[0], set[tuple[int, int]](), 0.0
    for level in range(4):
        ids = tree.ids(level, front).tolist()
        counts = dict(zip(ids, np.maximum(Hashed().at(np.array(ids)), 0.0).tolist(), strict=True))
        order = sorted(range(len(ids)), key=lambda i: -counts[ids[i]])
        tau = literal_threshold(sorted(counts.values()), k * expand, rounds) if level < 3 else 0
        leaves |= {(level, ids[i]) for i in order[tau:]}
        total += sum(sorted(counts.values())[: len(order) - tau])
        below = [tree.children(level + 1, front[i : i + 1])[0] for i in order[:tau]] if level < 3 else []
        front = np.concatenate([np.zeros((0, d), np.int64), *below])
    grown = tree.grow(Hashed())
    assert set(zip(grown.leaves.levels.tolist(), grown.leaves.ids.tolist(), strict=True)) == leaves
    assert grown.weights.sum() == pytest.approx(total)


def literal_threshold(counts: list[float], ka: int, rounds: int) -> int:
    """Algorithm 2 as printed, with noisy counts."""
    m = len(counts)
    for j in range(1, min(rounds, m // ka) + 1):
        if sum(counts[: m - (j - 1) * ka]) <= 2 * sum(counts[: m - j * ka]):
            return (j - 1) * ka
    return min(m, rounds * ka)


def test_with_the_proofs_options_the_cap_alone_stops_the_tree_and_every_row_keeps_one_leaf() -> None:
    tree = opened(4, 8, cap=2000, expand=None, rounds=None)
    rows = rows_in(ball(4), 3000, 2)
    oracle = Counted(tree.locate(rows))
    grown = tree.grow(oracle)
    assert 1900 < sum(oracle.looked) <= 2000
    assert grown.weights.sum() == len(rows)
    transport(tree, grown, rows)  # asserts one leaf per row


def test_leaves_below_the_significance_are_left_out_but_one() -> None:
    tree = opened(2, 1, significance=2.0)
    counts = np.full(tree.space.sizes[0], 19.0)
    counts[tree.ids(0, tree.children(0, np.zeros((1, 2), np.int64))[0])[:3]] = 21.0
    grown = tree.grow(Table(counts, 10.0))
    assert grown.weights.tolist() == [21.0] * 3
    assert grown.errors.weights.tolist() == [10.0] * 3
    assert tree.grow(Table(counts - 2, 10.0)).weights.tolist() == [19.0]


def test_many_empty_nodes_that_noise_fills_do_not_stop_the_branches_of_clusters() -> None:
    class Noisy(Counted):
        def at(self, ids: Ints, level: int = 0) -> Floats:
            return super().at(ids, level) + 100.0 * (ids % 2)

    tree = opened(3, 3, k=2, expand=2, rounds=2, significance=3.0)
    rows = ball(3).snap(np.repeat([[0.6, 0, 0], [-0.6, 0, 0.0]], 1000, axis=0))
    grown = tree.grow(Noisy(tree.locate(rows), 50.0))
    assert grown.leaves.levels.tolist() == [2, 2]
    assert np.abs(grown.weights - 1000).max() <= 100


def test_a_cap_below_the_first_level_is_refused_with_advice() -> None:
    with pytest.raises(InvalidInput, match="raise 'cap' or lower 'dimension'"):
        opened(4, 2, cap=20)


# --- ids and domains


@pytest.mark.parametrize(("d", "levels"), [(1, 12), (4, 8), (8, 8)])
def test_ids_are_injective_and_within_the_space(d: int, levels: int) -> None:
    """Packed ids are by proof, hashed ones (d = 8 from level 7) but for a chance of 10^-10."""
    tree = opened(d, levels, cap=2**20)
    names = chain(tree, tree.projection.of(rows_in(ball(d), 3000, d)))
    for level, mine in enumerate(names):
        different = np.unique(mine, axis=0)
        ids = tree.ids(level, different)
        assert len(np.unique(ids)) == len(different)
        assert ids.min() >= 0
        assert ids.max() < tree.space.sizes[level]
    assert (tree.space.sizes[-1] == 2**62) == (d == 8)

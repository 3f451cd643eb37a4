"""The net tree: the paper's lemmas with an exact oracle, and what noise must not break."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.cluster import KMeans

from cloister.core.budget import Budget
from cloister.core.clustering import Coreset, Problem
from cloister.core.domains import Ball, Domain
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats, Ints
from cloister.plugins.trees.net_tree import NetTree, NetTreeOpened
from cloister.plugins.trees.nets import Net, covering_radius, energy, packing_radius, short_vectors
from cloister.plugins.trees.projection import RADIUS, Projection
from tests.plugins.tables import Counted, Table

KEY = PublicRng.from_seed(3)


def ball(d: int) -> Ball:
    return Ball((0.0,) * d, 1.0)


@cache
def opened(d: int, levels: int, k: int = 2, **options: int | float | None) -> NetTreeOpened:
    given: Any = {"dimension": min(d, 8), "cap": 2**20, "significance": 0.0, **options}
    return NetTree(levels=levels, **given).open(Problem(k, ball(d), 10_000, Budget("pure", 1.0)), KEY.child(0))


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


@pytest.mark.parametrize(("d", "levels"), [(1, 12), (4, 8), (8, 8)])
def test_lemma_14_a_node_is_within_twice_its_radius_of_its_rows_and_has_an_id_of_its_own(d: int, levels: int) -> None:
    """Packed ids are injective by proof, hashed ones (d = 8 from level 7) but for a chance of 10^-10."""
    tree = opened(d, levels)
    images = tree.projection.of(rows_in(ball(d), 4000, d))
    names = chain(tree, images)
    for level, mine in enumerate(names):
        assert distance(images, tree.nets[level].points(mine)).max() <= 2.0**-level + 1e-6
        different = np.unique(mine, axis=0)
        assert len(np.unique(tree.ids(level, different))) == len(different)
    assert distance(images, tree.nets[-1].points(names[-1])).max() <= 2.0**-levels
    assert (tree.space.sizes[-1] == 2**62) == (d == 8)


@pytest.mark.parametrize(("d", "levels"), [(1, 8), (2, 6), (4, 3)])
def test_every_row_is_in_a_child_of_its_node_and_in_no_other_child(d: int, levels: int) -> None:
    tree = opened(d, levels)
    rows = rows_in(ball(d), 400, d + 10)
    images, ids = tree.projection.of(rows), tree.locate(rows)
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
    tree, leaves, total = opened(d, 4, expand=expand, rounds=rounds), set[tuple[int, int]](), 0.0
    front = tree.children(0, np.zeros((1, d), np.int64))[0]
    for level in range(4):
        ids = tree.ids(level, front)
        counts = np.maximum(Hashed().at(ids), 0.0)
        order = np.argsort(-counts, kind="stable")
        tau = literal_threshold(sorted(counts.tolist()), 2 * expand, rounds) if level < 3 else 0
        leaves |= {(level, int(i)) for i in ids[order[tau:]]}
        total += counts[order[tau:]].sum()
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
    apart = np.linalg.norm(grown.points[:, None] - [[0.6, 0, 0], [-0.6, 0, 0]], axis=2).min(axis=1)
    assert apart.max() <= 2 * 2.0**-3  # Lemma 14


def test_a_cap_below_the_first_level_is_refused_with_advice() -> None:
    with pytest.raises(InvalidInput, match="raise 'cap' or lower 'dimension'"):
        opened(4, 2, cap=20)


# --- the lattice A*_m and the projection


def net(m: int, step: int, seed: int = 0) -> Net:
    return Net(step, np.random.default_rng(seed).integers(0, step, m + 1))


def distances(one: Ints, other: Ints) -> Ints:
    """Squared distances (n,) in the hyperplane, times m + 1."""
    return energy(one - other)


@pytest.mark.parametrize(("m", "radius"), [(1, 3.0), (2, 2.0), (4, 1.5)])
def test_short_vectors_are_all_of_them_once_and_the_shortest_are_two_packing_radii_long(m: int, radius: float) -> None:
    unit = Net(1, np.zeros(m + 1, np.int64))
    box = np.array(list(itertools.product(range(-5, 6), repeat=m)))
    lengths = np.sqrt(energy(unit.points(box)) / (m + 1))
    found = short_vectors(m, radius).tolist()
    assert sorted(found) == sorted(box[lengths <= radius].tolist())
    assert lengths[lengths > 0].min() == pytest.approx(2 * packing_radius(m))
    assert covering_radius(m) == pytest.approx(packing_radius(m) * math.sqrt((m + 2) / 3))


@settings(max_examples=75, deadline=None, derandomize=True)
@given(st.integers(1, 5), st.integers(1, 60), st.integers(0, 2**32), st.integers(0, 3))
def test_the_nearest_point_is_that_of_brute_force_with_ties_and_without(
    m: int, step: int, seed: int, wide: int
) -> None:
    of = net(m, step, seed)
    points = np.random.default_rng(seed).integers(-(10 ** (wide + 1)), 10 ** (wide + 1), (20, m + 1))
    got = distances(points, of.points(of.nearest(points)))
    around = np.array(list(itertools.product((-1, 0, 1, 2), repeat=m + 1)))
    base = (points - of.shift) // step
    for point, low, best in zip(points, base, got, strict=True):
        assert best == distances(point[None, :], of.shift + step * (low + around)).min()


def test_coordinates_at_the_largest_scale_do_not_overflow() -> None:
    of = net(8, 2**25, 3)
    points = np.random.default_rng(4).integers(-(2**28), 2**28, (200, 9))
    nearest = of.points(of.nearest(points))
    apart = (points - nearest).astype(object)
    exact = 9 * (apart**2).sum(axis=1) - apart.sum(axis=1) ** 2
    assert exact.tolist() == distances(points, nearest).tolist()
    assert exact.max() <= 9 * (covering_radius(8) * 2**25) ** 2


@pytest.mark.parametrize("d", [1, 3, 5, 100])
def test_the_projection_is_a_scaled_orthogonal_projection_up_to_its_rounding(d: int) -> None:
    m = min(4, d)
    projection = Projection.random(ball(d), m, 1.0 if d == m else 2.0, KEY.child("p", d))
    rows = rows_in(ball(d), 500, d)
    images = projection.of(rows).astype(np.float64)
    frame = np.linalg.qr(projection.matrix.astype(np.float64))[0][:, :m]
    expected = np.linalg.norm(rows @ frame, axis=1) / ball(d).max_norm * projection.scale
    inside = expected < 0.9999
    assert np.allclose(np.linalg.norm(images[inside], axis=1) / RADIUS, expected[inside], atol=1e-6)
    assert not images[expected > 1.0001].any()  # Algorithm 3, lines 3-6
    kept = ball(d).real(rows)[inside] @ frame @ frame.T
    assert np.abs(projection.back(projection.of(rows))[inside] - kept).max() < 1e-5


def test_projections_stay_exact_integers_at_the_largest_scale() -> None:
    d = 1000
    projection = Projection.random(ball(d), 2, 4 * math.sqrt(d / 2), KEY.child("large"))
    rows = rows_in(ball(d), 50, 1)
    exact = (rows.astype(object) @ projection.matrix.astype(object)) >> projection.shift
    small = np.array([[abs(int(v)) <= RADIUS for v in row] for row in exact]).all(axis=1)
    images = projection.of(rows)
    held = images.any(axis=1)
    assert (small | ~held).all()
    assert np.array_equal(images[held], exact[held].astype(np.int64))
    assert held.any()


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
    tree = opened(d, levels, expand=None, rounds=None, k=k)
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


@pytest.mark.parametrize("m", [1, 2, 5, 8])
def test_every_point_has_a_net_point_within_the_covering_radius_and_the_deep_hole_has_none_nearer(m: int) -> None:
    step = 10**6
    of = net(m, step, m)
    points = np.random.default_rng(m).integers(-(2**26), 2**26, (20_000, m + 1))
    far = np.sqrt(distances(points, of.points(of.nearest(points))) / (m + 1))
    assert far.max() <= covering_radius(m) * step
    hole = of.shift + np.arange(m + 1)[None, ::-1] * step // (m + 1)
    found = math.sqrt(int(distances(hole, of.points(of.nearest(hole)))[0]) / (m + 1))
    assert found == pytest.approx(covering_radius(m) * step, rel=1e-5)

"""Solvers of released points.

* k-median++ against the best points as centres;
* reverse greedy against its definition, the cheapest loss first;
* the tree program against the sum over maximal cells without a centre of weight times parent's diameter^z;
* Ward against scipy's where there is no noise.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.clustering import Coreset, Released, TreeMetric
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.registry.making import make
from cloister.core.registry.registry import registry
from cloister.core.types import Floats
from cloister.plugins.solvers.plus_plus import KMedianPlusPlus
from cloister.plugins.solvers.reverse_greedy import ReverseGreedy
from cloister.plugins.solvers.tree_program import Program, TreeProgram, halved
from cloister.plugins.solvers.ward import Ward
from tests.plugins.tables import coreset

RNG = PublicRng.from_seed(3)
SOLVERS = [spec.name for spec in registry().specs("NonPrivateSolver")]


def solved(solver: Any, points: Floats, weights: Floats, k: int) -> Floats:
    return np.asarray(solver.solve(Released(Coreset(points, weights), ()), k, RNG))


def cost(points: Floats, weights: Floats, centers: Floats, power: int = 1) -> float:
    apart = np.linalg.norm(points[:, None] - centers, axis=2).min(axis=1)
    return float(np.maximum(weights, 0.0) @ apart**power)


@pytest.mark.parametrize("name", SOLVERS)
def test_no_point_at_all_is_refused_by_every_solver(name: str) -> None:
    with pytest.raises(InvalidInput, match="without a point"):
        solved(make("NonPrivateSolver", name), np.zeros((0, 2)), np.zeros(0), 2)


# k-median++


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 4))
def test_k_median_does_no_worse_than_the_best_points_as_centres(seed: int, k: int) -> None:
    """The best k of the points cost at most twice the optimum; rounds must not end above that. 1e-2: the smoothing."""
    g = np.random.default_rng(seed)
    points, weights = g.uniform(-1, 1, (10, 2)), g.normal(1, 1, 10)  # negative ones count nothing
    best = min(cost(points, weights, points[list(some)]) for some in combinations(range(10), k))
    assert cost(points, weights, solved(KMedianPlusPlus(starts=20), points, weights, k)) <= best * 1.15 + 1e-2


def test_points_far_from_the_origin_keep_their_digits() -> None:
    points = np.random.default_rng(3).uniform(-1, 1, (200, 2))
    near, far = (solved(KMedianPlusPlus(), points + shift, np.ones(200), 3) - shift for shift in (0.0, 1e6))
    assert np.abs(near - far).max() < 1e-6


# Reverse greedy


def by_trying(points: Floats, weights: Floats, k: int, power: int) -> list[int]:
    """Drop the centre without which the total cost is least, computed anew for each."""
    alive = list(range(len(points)))

    def without(c: int) -> tuple[float, int]:
        return round(cost(points, weights, points[[i for i in alive if i != c]], power), 12), c

    while len(alive) > k:
        alive.remove(min(alive, key=without))
    return alive


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_the_cheapest_loss_goes_first(power: int, seed: int) -> None:
    g = np.random.default_rng(seed)
    points, weights = g.uniform(-1, 1, (14, 2)), g.uniform(0, 5, 14)
    found = solved(ReverseGreedy(power=power), points, weights, 4)
    assert np.array_equal(found, points[by_trying(points, weights, 4, power)])


def test_only_the_heaviest_can_become_centres_but_all_points_pay_unless_their_weight_is_negative() -> None:
    points = np.array([[0.0], [0.1], [5.0], [9.0]])
    assert solved(ReverseGreedy(most=3), points, np.array([9.0, 8.0, 1.0, 7.0]), 2).ravel().tolist() == [0.0, 9.0]
    points = np.array([[0.0], [1.0], [100.0]])
    assert solved(ReverseGreedy(), points, np.array([5.0, 5.0, -1e9]), 2).ravel().tolist() == [0.0, 1.0]


# The tree program


def random_tree(g: np.random.Generator, leaves: int, ties: bool) -> TreeMetric:
    """Two or three nodes at a time are put under a new one, of at least their diameter; equal diameters and zero ones
    occur."""
    roots, parents = list(range(leaves)), [-1] * leaves
    diameters = [float(g.integers(0, 2)) if ties else float(g.random()) for _ in range(leaves)]
    while len(roots) > 1:
        chosen = [roots.pop(int(g.integers(len(roots)))) for _ in range(min(len(roots), int(g.integers(2, 4))))]
        grown = max(diameters[i] for i in chosen) + (float(g.integers(0, 3)) if ties else float(g.random()))
        for i in chosen:
            parents[i] = len(parents)
        roots.append(len(parents))
        parents.append(-1)
        diameters.append(grown)
    return TreeMetric(np.array(parents), np.array(diameters))


def above(tree: TreeMetric, leaf: int) -> list[int]:
    """A leaf and the cells that hold it, the smallest first."""
    found, node = list[int](), leaf
    while node >= 0:
        found.append(node)
        node = int(tree.parents[node])
    return found


def cost_of(tree: TreeMetric, weights: Floats, power: int, centers: set[int]) -> float:
    """Brute force, from the definition: each point pays the diameter^z of its smallest cell that holds a centre."""
    with_center = {node for i in centers for node in above(tree, i)}
    total = 0.0
    for i, weight in enumerate(weights):
        if i not in centers:
            smallest = next(node for node in above(tree, i) if node in with_center)
            total += max(weight, 0.0) * tree.diameters[smallest] ** power
    return total


@pytest.mark.parametrize("leaves", [1, 2, 3, 5, 8, 10])
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("ties", [True, False])
def test_every_number_of_centres_costs_what_brute_force_finds(leaves: int, power: int, ties: bool) -> None:
    g = np.random.default_rng((leaves, power, ties))
    for _ in range(10 if leaves < 8 else 2):
        tree = random_tree(g, leaves, ties)
        weights = g.integers(-1, 5, leaves).astype(float) if ties else g.normal(1, 1, leaves)
        program = Program.of(tree, weights, power)
        costs = program.costs(leaves)
        for k in range(1, leaves + 1):
            best = min(cost_of(tree, weights, power, set(some)) for some in combinations(range(leaves), k))
            assert costs[k - 1] == pytest.approx(best, abs=1e-9)
            chosen = program.centers(k).tolist()
            assert len(set(chosen)) == k
            assert cost_of(tree, weights, power, set(chosen)) == pytest.approx(best, abs=1e-9)


def test_more_centres_than_leaves_cost_nothing_and_the_heaviest_path_stands_again() -> None:
    points = np.array([[0.0], [1.0], [5.0]])
    tree = TreeMetric(np.array([3, 3, 4, 4, -1]), np.array([0.0, 0.0, 0.0, 1.0, 5.0]))
    coreset = Released(Coreset(points, np.array([1.0, 2.0, 9.0]), tree), ())
    assert TreeProgram().solve(coreset, 5, RNG).ravel().tolist() == [5.0, 1.0, 0.0, 5.0, 5.0]
    assert TreeProgram().costs(coreset, 5).tolist() == [15.0, 1.0, 0.0, 0.0, 0.0]


def test_points_without_a_tree_get_one_over_which_distances_are_at_most_what_it_says() -> None:
    points = np.random.default_rng(5).uniform(-1, 1, (60, 2))
    tree = halved(points)
    for i, j in combinations(range(60), 2):
        both = set(above(tree, i))
        smallest = next(node for node in above(tree, j) if node in both)
        assert np.linalg.norm(points[i] - points[j]) <= tree.diameters[smallest] + 1e-12
    found = solved(TreeProgram(), points, np.ones(60), 7)
    assert len(np.unique(found, axis=0)) == 7


# Ward, corrected for noise: what noise adds is taken off, and nothing else is


def merged(
    points: Floats, weights: Any, k: int, sums: float | None = None, counts: float = 0.0, **options: Any
) -> Floats:
    cells = Coreset(points, weights) if sums is None else coreset(points, weights, counts, sums)
    return Ward(**options).solve(Released(cells, ()), k, RNG)


D = 100


def unit_vectors(k: int, g: np.random.Generator) -> Floats:
    found = g.standard_normal((k, D))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def noisy_cells(centers: Floats, per_cell: Floats, owner: list[int], error: float, g: np.random.Generator) -> Floats:
    """Points of cells of the given owners (-1: empty) with noise on their sums."""
    true = np.where(np.array(owner)[:, None] >= 0, centers[owner], 0.0)
    return true + error * g.standard_normal(true.shape) / per_cell[:, None]


def farthest(found: Floats, wanted: Floats) -> float:
    """From any of the wanted centres to the nearest one that was found."""
    return float(np.linalg.norm(found[:, None] - wanted, axis=2).min(axis=0).max())


def test_without_noise_ward_merges_as_scipy_does() -> None:
    """On equal weights step 1 alone is the classical method: scipy's is an independent implementation of it."""
    from scipy.cluster.hierarchy import fcluster, linkage

    for seed in range(5):
        points = np.random.default_rng(seed).standard_normal((40, 3))
        labels = fcluster(linkage(points, "ward"), 5, "maxclust")
        wanted = np.array([points[labels == label].mean(axis=0) for label in range(1, 6)])
        assert farthest(merged(points, np.ones(40), 5, sweeps=0), wanted) < 1e-9


def test_many_weak_cells_of_a_cluster_are_not_taken_for_clusters() -> None:
    """Noise puts weak cells of one cluster farther from each other than two true clusters are: uncorrected, they would
    win."""
    g, weights = np.random.default_rng(3), np.array([9e4, 9e4, 3e4, 3e4, 3e4, 3e4, 3e4, 3e4])
    centers = 0.5 * unit_vectors(2, g)
    points = noisy_cells(centers, weights, [0, 1, 0, 0, 1, 1, 0, 1], 1000.0, g)
    assert farthest(merged(points, weights, 2, sums=1000.0, counts=4000.0), centers) < 0.15


def test_a_cell_that_two_clusters_share_is_left_to_the_other_partition() -> None:
    g, size = np.random.default_rng(5), np.array([6e4, 6e4, 6e4, 12e4, 6e4])
    centers = unit_vectors(3, g)
    shared = (centers[0] + centers[1]) / 2
    points = noisy_cells(np.vstack([centers, shared]), size, [0, 1, 2, 3, 2], 1800.0, g)
    found = merged(points, size, 3, sums=1800.0, counts=5000.0)
    assert farthest(found, centers) < 1.3 * 1800 * 10 / 6e4  # sqrt(D) * error / rows of one cell


def test_shrinking_lessens_the_error_of_noisy_centers() -> None:
    """James and Stein: at v = |noise|^2 / |c|^2 near one the expected error falls from v to v / (1 + v)."""
    g, center, lost = np.random.default_rng(6), np.eye(1, D), list[float]()
    for _ in range(200):
        points = noisy_cells(center, np.array([1e5]), [0], 1e4, g)
        lost.append(((merged(points, np.array([1e5]), 1, sums=1e4) - center) ** 2).sum())
    assert 0.40 < np.mean(lost) < 0.62  # v = 1: 0.5, and a little for estimating |c|; standard error 0.005


def test_a_scattered_group_is_averaged_by_its_counts_and_a_tight_one_by_its_precision() -> None:
    g = np.random.default_rng(7)
    far = np.array([[-1.0, 0.0], [1.0, 0.0]])
    found = merged(far, np.array([3e5, 1e5]), 1, sums=1.0)
    assert np.allclose(found, [[-0.5, 0.0]], atol=1e-3)
    tight = np.tile([[0.6, 0.3]], (2, 1)) + np.array([[1.0], [4.0]]) * 0.01 * g.standard_normal((2, 2))
    found = merged(tight, np.array([4e4, 1e4]), 1, sums=400.0)
    precise = (16 * tight[0] + tight[1]) / 17
    assert np.linalg.norm(found[0] - precise) < 0.01


def test_more_points_than_are_merged_join_later() -> None:
    g, centers = np.random.default_rng(8), np.array([[0.0, 0.0], [9.0, 0.0]])
    points = np.repeat(centers, 50, axis=0) + 0.01 * g.standard_normal((100, 2))
    assert farthest(merged(points, np.ones(100), 2, most=6), centers) < 0.5


def test_empty_cells_are_left_out() -> None:
    """Cells without rows whose count is noise: each centre is as good as without them, to a tenth of its error."""
    g, weights = np.random.default_rng(4), np.array([1e5] * 3 + [15e3] * 8)
    points = noisy_cells(unit_vectors(3, g), weights, [0, 1, 2] + [-1] * 8, 2600.0, g)
    alone = merged(points[:3], weights[:3], 3, sums=2600.0, counts=7000.0)
    assert farthest(merged(points, weights, 3, sums=2600.0, counts=7000.0), alone) < 0.03

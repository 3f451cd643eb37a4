"""The tree program against brute force (the sum over maximal cells without a centre of weight times parent's
diameter^z)."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from cloister.core.clustering import Coreset, Released, TreeMetric
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats
from cloister.plugins.solvers.tree_program import Program, TreeProgram, halved

RNG = PublicRng.from_seed(3)


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


def cost_of(tree: TreeMetric, weights: Floats, power: int, centers: set[int]) -> float:
    """Brute force, from the definition: each point pays the diameter^z of its smallest cell that holds a centre."""
    above = [list[int]() for _ in weights]
    for i in range(len(weights)):
        node = i
        while node >= 0:
            above[i].append(node)
            node = int(tree.parents[node])
    with_center = {node for i in centers for node in above[i]}
    cost = 0.0
    for i, weight in enumerate(weights):
        if i not in centers:
            cost += max(weight, 0.0) * tree.diameters[next(node for node in above[i] if node in with_center)] ** power
    return cost


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
        above = list[int]()
        node = i
        while node >= 0:
            above.append(node)
            node = int(tree.parents[node])
        node = j
        while node not in above:
            node = int(tree.parents[node])
        assert np.linalg.norm(points[i] - points[j]) <= tree.diameters[node] + 1e-12
    found = TreeProgram().solve(Released(Coreset(points, np.ones(60)), ()), 7, RNG)
    assert len(np.unique(found, axis=0)) == 7

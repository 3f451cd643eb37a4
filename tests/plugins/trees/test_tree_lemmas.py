"""The lemmas of Cohen-Addad et al. 2022 on the shifted quadtree, with the constants that cuts in a middle third give.

An interval of side l is cut at a uniform place of its middle third, so that a ball of radius r around a point in it is
cut with chance 2 r / (l / 3) = 6 r / l at most.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Coreset, Problem
from cloister.core.domains import Box
from cloister.core.nearest import NearestCenter
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Session
from cloister.core.types import Floats, Ints
from cloister.plugin import count
from cloister.plugins.methods.hst import Spared
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.solvers.tree_program import TreeProgram
from cloister.plugins.trees.quadtree import Quadtree
from tests.alarms import Alarm
from tests.plugins.methods.runs import SEED, cube, groups, made

D, ROUNDS = 2, 6
DEPTH = D * ROUNDS


def tree_of(seed: int, domain: Box, depth: int = DEPTH) -> Quadtree:
    problem = Problem(3, domain, 1000, Budget("pure", 1.0))
    builder = made("tree-alone-median", {}, **{"tree.depth": depth}).tree
    return builder.open(problem, PublicRng.from_seed(seed))


def sides_and_cuts(tree: Quadtree, point: Ints) -> tuple[Floats, Ints]:
    """The intervals' sides (d, rounds) that hold a point, and where they are cut, in lattice steps."""
    sides, cuts = np.empty((D, ROUNDS)), np.empty((D, ROUNDS), np.int64)
    for j in range(D):
        for i in range(ROUNDS):
            borders, finer = tree.borders[j][i], tree.borders[j][i + 1]
            at = int(np.searchsorted(borders[1:-1], point[j], side="right"))
            sides[j, i], cuts[j, i] = borders[at + 1] - borders[at], finer[2 * at + 1]
    return sides, cuts


@pytest.mark.alarm(1e-8)
def test_lemma_1_a_ball_is_cut_on_a_level_with_a_chance_in_proportion_to_its_radius(alarm: Alarm) -> None:
    """At most the sum over columns of 6 r / l; and just that in the first round, where the whole ball is in the middle
    thirds, so that cuts of another law would be seen."""
    domain, trees, radius = cube(D), 500, 0.03
    point = domain.snap(np.array([[0.137, -0.291]]))[0]
    reach = radius / domain.unit
    cut, chance = np.zeros(ROUNDS), np.zeros(ROUNDS)
    for seed in range(trees):
        sides, cuts = sides_and_cuts(tree_of(seed, domain), point)
        cut += (np.abs(cuts - point[:, None]) <= reach).any(axis=0)
        chance += np.minimum(1.0, 6 * reach / sides).sum(axis=0)
    excess = (cut - chance) / np.sqrt(chance)
    assert (excess < alarm.errors(2 * ROUNDS)).all()
    first = 1 - (1 - 6 * radius / 2) ** D
    alarm.near(cut[0], trees * first, math.sqrt(trees * first * (1 - first)), of=2)
    assert (np.diff(chance) > 0).all()  # 2^-i: finer levels cut more


@pytest.mark.alarm(1e-8)
@pytest.mark.parametrize("apart", [0.3, 0.02])
def test_the_expected_distance_in_the_tree_is_within_d_to_the_three_halves_times_the_levels(
    apart: float, alarm: Alarm
) -> None:
    """Section 2: E[dist_T(p, q)] <= O(d^(3/2) alpha) dist(p, q), here with constant 2, besides the smallest cells."""
    domain, trees = cube(D), 400
    points = domain.snap(np.array([[0.1, 0.2], [0.1 + apart * 0.6, 0.2 + apart * 0.8]]))
    found = np.empty(trees)
    for seed in range(trees):
        tree = tree_of(seed, domain)
        ids = tree.locate(points)
        level = int((ids[0] == ids[1]).sum()) - 1
        box = tree.boxes(np.array([level]), ids[0, level : level + 1])[0]
        found[seed] = np.linalg.norm(box[1] - box[0]) * domain.unit
    smallest = domain.diameter * (2 / 3) ** ROUNDS
    bound = 2 * D**1.5 * ROUNDS * apart + smallest
    assert found.mean() + alarm.errors() * found.std() / math.sqrt(trees) <= bound
    assert found.min() >= apart * 0.99  # a tree's distance is never below the true one


def tree_cost(tree: Quadtree, rows: Ints, centers: Ints) -> float:
    """Sum of the diameters of the smallest cells that hold a row and a centre, in lattice steps."""
    of_rows, of_centers = tree.locate(rows), tree.locate(centers)
    shared = (of_rows[:, None] == of_centers).sum(axis=2).max(axis=1) - 1
    ids = of_rows[np.arange(len(rows)), shared]
    boxes = tree.boxes(shared, ids)
    return float(np.linalg.norm(boxes[:, 1] - boxes[:, 0], axis=1).sum())


def solved(tree: Quadtree, oracle: str, budget: Budget, rows: Floats, k: int, seed: int) -> tuple[Coreset, Ints]:
    """What Algorithm 2 grows, and the best k leaves of it on the lattice."""
    domain = tree.reduced.domain
    problem = Problem(k, domain, len(rows), budget)
    session = Session(problem, SEED.child(seed), Arrays(rows), noise=NoiseRng.for_tests(seed))
    question = count(tree, oracle=made("tree-alone-median", {"tree_counts": oracle}).tree_counts, budget=budget)
    (counts,) = session.ask(question)
    grown = tree.grow(counts)
    return grown, domain.snap(TreeProgram().solve(session.release(grown), k, SEED))


def test_lemma_2_noise_adds_k_times_the_squared_levels_over_epsilon_times_the_width_to_the_trees_optimum() -> None:
    """OPT_T from exact counts; the noisy solution's cost on the tree, on exact rows. The bound is the lemma's with
    constant 1, where levels stand for d log n: all are paid for."""
    rows, _ = groups(20_000, 3, D, 0.02)
    domain, epsilon, k = cube(D), 1.0, 3
    more = []
    for seed in range(8):
        tree = tree_of(seed, domain)
        lattice = domain.snap(rows)
        _, best = solved(tree, "exact", Budget("exact", 1.0), rows, k, seed)
        _, noisy = solved(tree, "discrete-laplace", Budget("pure", epsilon), rows, k, seed)
        optimum = tree_cost(tree, lattice, best)
        more.append((tree_cost(tree, lattice, noisy) - optimum) * domain.unit)
        assert optimum * domain.unit < len(rows) * domain.diameter / 4
    levels = DEPTH + 1
    bound = k * levels**2 / epsilon * domain.diameter
    assert bound < len(rows) * domain.diameter / 4  # so that the lemma says something
    assert np.mean(more) <= bound


def test_a_first_solution_of_the_origin_alone_would_leave_the_first_tree_without_rows() -> None:
    """Algorithm 6 starts from L = {0}: if the origin is cut badly, every row is nearest to it. Here it starts empty."""
    domain = cube(D)
    tree = tree_of(0, domain)
    rows = domain.snap(groups(500, 3, D)[0])
    origin = NearestCenter(domain.snap(np.zeros((1, D))), domain.max_norm)
    assert (Spared(tree, origin, np.array([True])).locate(rows) == -1).all()
    assert (Spared(tree, origin, np.array([False])).locate(rows) >= 0).all()


def test_algorithm_5_a_sample_never_has_less_noise_than_all_rows() -> None:
    """Of m rows, a sample of each with chance q can spend ln(1 + (e^eps - 1) / q) at the same epsilon. Noise on what
    the sample adds up to, scaled to all rows, is 1 / (q eps_q) then, and q eps_q grows with q up to eps at q = 1."""
    q = np.linspace(1e-6, 1.0, 2000)
    for epsilon in (0.01, 0.1, 1.0, 4.0, 20.0):
        spent = q * np.log1p(math.expm1(epsilon) / q)
        assert (np.diff(spent) > 0).all()
        assert spent[-1] == pytest.approx(epsilon)

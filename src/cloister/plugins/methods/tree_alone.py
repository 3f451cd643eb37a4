"""k-median by a tree's noisy counts and nothing else: Algorithm 1 of the tree paper.

1. Draw a public shifted quadtree over all columns.
2. Ask how many rows fall in its cells, with Laplace noise of scale levels / epsilon, and grow it: a cell whose noisy
   count exceeds twice that scale is split.
3. Solve the grown tree exactly for k centres. They are the middles of cells.

Guarantee: that of the oracle in the slot ``tree_counts``: by default epsilon-DP for adding or removing a row.

Corrections to the paper: the number of levels is fixed, public and paid for, the root included, instead of a stop by
diameter that reaches more levels than the noise pays for; the number of rows is the public one; the program charges a
cell without a centre its parent's diameter. Counts are made consistent before they are solved, which is
post-processing. ``hst-median`` is the algorithm that the paper ran, with rounds after the tree.

Source: Cohen-Addad, Epasto, Lattanzi, Mirrokni, Munoz, Saulpic, Schwiegelshohn, Vassilvitskii 2022, Algorithm 1 and
Theorem 1.
"""

from __future__ import annotations

from typing import Generic

import attrs

from cloister.plugin import (
    Clustering,
    FrequencyOracle,
    NonPrivateSolver,
    Problem,
    PublicRng,
    Session,
    T,
    TreeBuilder,
    component,
    count,
    slot,
)
from cloister.plugins.methods.errors import cluster_errors
from cloister.plugins.methods.post_processing import group_sizes, nearest


@component
class TreeAlone(Generic[T]):
    """k-median on a random tree's noisy counts: centres are middles of its cells."""

    tree: TreeBuilder = slot("whole-quadtree", help="public partition of the domain, with a tree metric")
    tree_counts: FrequencyOracle[T] = slot("discrete-laplace", help="how many rows fall in each cell of the tree")
    solver: NonPrivateSolver = slot("tree-program", help="chooses centres among the tree's leaves")

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        domain, tree = problem.domain, self.tree.open(problem, rng.child("tree"))  # line 1
        (counts,) = session.ask(count(tree, oracle=self.tree_counts, budget=problem.budget))  # line 2
        grown = tree.grow(counts)
        centers = self.solver.solve(session.release(grown), problem.k, rng.child("solve"))  # lines 3 and 4
        weights = group_sizes(nearest(grown.points, centers), grown.weights, problem.k)
        leaves = attrs.evolve(grown, points=grown.points - domain.middle)
        errors = cluster_errors(leaves, centers - domain.middle, centers, domain)
        return Clustering(centers, weights, {"leaves": len(grown.points), **errors})

"""k-means in two rounds: counts of a public partition's cells give rough centres, noisy means of their rows better
ones.

Guarantee: the trust model, neighbouring relation and measure of the oracles in the slots. The two rounds share the
budget; the second sees the rows only through what the first released.
"""

from __future__ import annotations

from typing import Generic

import numpy as np

from cloister.plugin import (
    Clustering,
    FrequencyOracle,
    NearestCenter,
    NonPrivateSolver,
    Problem,
    PublicRng,
    Session,
    T,
    TreeBuilder,
    VectorSumOracle,
    component,
    count,
    option,
    slot,
    vector_sum,
)


@component
class CoarseToFine(Generic[T]):
    """k-means by noisy counts of cells, then one step of each centre to the noisy mean of its rows."""

    tree: TreeBuilder = slot("spread-cells", help="public partition of the domain")
    solver: NonPrivateSolver = slot("kmeans++", help="clusters the middles of the cells")
    counts: FrequencyOracle[T] = slot("discrete-gaussian", help="how many rows are in a cell, or nearest to a centre")
    sums: VectorSumOracle[T] = slot("discrete-gaussian", help="what the rows nearest to a centre add up to")
    coarse_share: float = option(default=0.3, low=0.01, high=0.99, help="the first round's share of the budget")

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        coarse, fine = problem.budget.split(self.coarse_share, 1 - self.coarse_share)
        # round 1: one question, how many rows are in each cell
        tree = self.tree.open(problem, rng.child("tree"))
        (cells,) = session.ask(count(tree, oracle=self.counts, budget=coarse))
        rough = self.solver.solve(session.release(tree.grow(cells)), problem.k, rng.child("solve"))
        # round 2: two questions about the rows nearest to each centre, which share what is left of the budget
        near = NearestCenter(problem.domain.snap(rough), problem.domain.max_norm)
        per_count, per_sum = fine.split(1, 2)
        counts, sums = session.ask(
            count(near, oracle=self.counts, budget=per_count),
            vector_sum(near.offsets(), oracle=self.sums, budget=per_sum),
        )
        every = np.arange(problem.k)
        weights = np.maximum(counts.at(every), counts.standard_error(every))  # noise may make a count negative
        steps = sums.at(every) / np.maximum(weights, 1.0)[:, None]
        return Clustering(problem.domain.truncate(problem.domain.real(near.centers) + steps), weights)

"""One-round k-means in up to three columns: counts on a grid are all that is asked.

A cell's middle says where its rows are, so that nobody is asked for vectors and the counts have all of the budget.
``one-round`` does this up to ``grid_up_to`` columns.

Guarantee: that of the oracle, for one question in one round; all else is post-processing of released counts.
"""

from __future__ import annotations

from typing import Generic

import attrs

from cloister.core.clustering import Clustering, Problem
from cloister.core.questions import count
from cloister.core.randomness import ANY_KEY, PublicRng
from cloister.core.roles import FrequencyOracle, NonPrivateSolver, TreeBuilder
from cloister.core.session import Session
from cloister.core.trust import T
from cloister.plugins.methods.errors import hidden, of_points
from cloister.plugins.methods.post_processing import held, nearest


@attrs.frozen
class GridCounts(Generic[T]):
    """A method. Args: grid, the partition; counts, how many rows fall in each cell; solver, clusters the cells."""

    grid: TreeBuilder
    counts: FrequencyOracle[T]
    solver: NonPrivateSolver

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        grid = self.grid.open(problem, rng.child("tree"))
        (counts,) = session.ask(count(grid, oracle=self.counts, budget=problem.budget))
        cells = grid.grow(counts)
        centers = self.solver.solve(session.release(cells), problem.k, rng.child("solve"))
        weights, domain = held(nearest(cells.points, centers), cells.weights, problem.k), problem.domain
        details = {"leaves": len(cells.weights)}
        if cells.errors is not None:
            inner = attrs.evolve(cells, points=cells.points - domain.middle)
            missing = hidden(weights, problem.rows)
            details |= of_points(inner, centers - domain.middle, domain.truncate(centers), domain, missing)
            del details["centers_error"]  # nothing says how rows lie in a cell
        return Clustering(domain.truncate(centers), weights, details)

    def expected_error(self, problem: Problem) -> float:
        """That of the noise of all cells, each within the domain's radius of its centre."""
        space, budget = self.grid.open(problem, ANY_KEY).space, problem.budget
        return space.sizes[0] * self.counts.variance(space, budget, problem.context(budget)) / problem.rows**2

"""k-means in one round: every person is asked once, before anything is known; the rest is post-processing.

Ask how many rows fall in each bucket of a public tree and what they add up to; grow the tree from the counts; cluster
its leaves. With the paper's blocks this is Chang, Ghazi, Kumar, Manurangsi 2021; with better ones it is the new design.
Trust, measure and noise are those of the oracles in the slots.

Guarantee: one round of two questions. ``share = users``: a keyed hash of the user's number says which of the two she
answers, with her whole epsilon; so her one report is epsilon-DP. ``share = budget``: she answers both, and epsilon is
divided. Whatever follows is post-processing of released counts and sums and of public standard errors.

Expected error (k tight clusters of one size, each in one cell, in units of the domain's squared radius R^2): noise
moves the centre of n / k rows by d s^2 / (n / k)^2, with s^2 the variance of a sum's coordinate; counts add about two
coordinates more:

    v = k^2 (d + 2) s^2 / (n R)^2,      cost / n = OPT + v / (1 + v) after shrinking.

Which blocks, when. Up to three columns: as it is, counts on a grid are all that is asked. More columns: as it is, one
byte per person. Groups much wider than a tenth of the radius: ``tree.cells=64``. More than 65,536 buckets:
``counts=hadamard-response``, or ``explicit-histogram`` where ids cannot be listed. Reports may be large:
``vectors.randomiser=privunit``, 1% less noise.

People needed to come within twice the non-private cost (k = 8; 15 in two columns; simulated, good to a factor of two):

    columns, groups             eps = 1     2        4
    2, like the set s1          1e5         3e4      2e3
    10, a quarter as wide       6e5         2e5      3e4
    100, a quarter as wide      3e6         1e6      2e5
    100, a hundredth as wide    6e8         2e8      6e7     (found long before: the best cost is 0.0001 there)

Corrections to the paper: vectors are clipped before they are encoded, since |x| <= 1 is the premise of the proof; noisy
counts are clamped; n is the declared public number of users; users are divided over levels as in appendix D (``share``
of the oracles has the other way, Lemma 25).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeAlias, final

import attrs
import numpy as np

from cloister.plugin import (
    ANY_KEY,
    Budget,
    Clustering,
    Coreset,
    Domain,
    Errors,
    Floats,
    FrequencyOracle,
    Ints,
    Local,
    NonPrivateSolver,
    Problem,
    PublicRng,
    Question,
    Rows,
    Session,
    Shuffled,
    Space,
    Sums,
    T,
    TreeBuilder,
    VectorSumOracle,
    component,
    count,
    option,
    slot,
    vector_sum,
)
from cloister.plugins.methods.errors import cluster_errors, missing_rows, own_row_errors
from cloister.plugins.methods.post_processing import group_sizes, nearest, place_clusters


@attrs.frozen
class GridCounts(Generic[T]):
    """k-means in up to three columns (``grid_up_to``) from counts on a grid alone.

    A cell's middle says where its rows are, so that nobody is asked for vectors and the counts have all of the budget.

    Guarantee: that of the oracle, for one question in one round; all else is post-processing of released counts.

    Args:
        grid: the partition.
        counts: how many rows fall in each cell.
        solver: clusters the cells.
    """

    grid: TreeBuilder
    counts: FrequencyOracle[T]
    solver: NonPrivateSolver

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        grid = self.grid.open(problem, rng.child("tree"))
        (counts,) = session.ask(count(grid, oracle=self.counts, budget=problem.budget))
        cells = grid.grow(counts)
        centers = self.solver.solve(session.release(cells), problem.k, rng.child("solve"))
        weights, domain = group_sizes(nearest(cells.points, centers), cells.weights, problem.k), problem.domain
        details = {"leaves": len(cells.weights)}
        if cells.errors is not None:
            inner = attrs.evolve(cells, points=cells.points - domain.middle)
            own_noise = own_row_errors(weights, self.counts, problem.budget)
            missing = np.hypot(missing_rows(weights, problem.rows), own_noise)
            details |= cluster_errors(inner, centers - domain.middle, domain.truncate(centers), domain, missing)
            del details["centers_error"]  # nothing says how rows lie in a cell
        return Clustering(domain.truncate(centers), weights, details)

    def expected_error(self, problem: Problem) -> float:
        """Return the error from the noise of all cells, each within the domain's radius of its centre."""
        space, budget = self.grid.open(problem, ANY_KEY).space, problem.budget
        return space.sizes[0] * self.counts.variance(space, budget, problem.context(budget)) / problem.rows**2


FEW_ERRORS = 0.1
"""Expected error below which two partitions are better than one (k = 8, d = 10 and 100, wide and tight clusters)."""

Centers: TypeAlias = Literal["means", "groups"]


@component
class OneRoundMeans(Generic[T]):
    """k-means in one round, from counts and vector sums of a public tree's buckets."""

    tree: TreeBuilder = slot("spread-cells", help="public partition of the domain")
    counts: FrequencyOracle[T] = slot("optimised-local-hashing", help="how many rows fall in each bucket")
    sums: VectorSumOracle[T] = slot("hadamard-vector", help="what those rows add up to")
    solver: NonPrivateSolver = slot("ward", help="clusters the leaves of the tree")
    grid: TreeBuilder = slot("grid", help="partition of a domain of few dimensions")
    grid_solver: NonPrivateSolver = slot("kmeans++", help="clusters the cells of the grid")
    grid_up_to: int = option(
        default=3,
        low=0,
        high=3,
        unit="dimensions",
        help="largest dimension that is clustered from counts on a grid, without vectors",
    )
    share: Literal["users", "budget", "auto"] = option(
        default="auto",
        choices=("users", "budget", "auto"),
        help="what counts and vectors divide: the users (each answers one, with all of epsilon), everyone's epsilon, "
        "or as the trust model and the oracles have it (users under Local; the budget where everybody draws noise)",
    )
    count_share: float | None = option(
        default=None, low=0.0, high=0.99, above=True, help="share of the counts; none: the one with the least error"
    )
    least_count_share: float = option(default=0.02, low=0.0, high=0.5, help="least share of the counts")
    partitions: int | None = option(
        default=None,
        low=1,
        high=16,
        help="independent trees that users are divided over, so that no single tree's borders decide; none: two if "
        "little noise is expected, else one",
    )
    centers: Centers = option(
        default="means",
        choices=("means", "groups"),
        help="means: cluster the leaves' noisy means (section 5); groups: cluster the leaves' places in the tree, then "
        "divide each group's sum by its count (Algorithm 4)",
    )
    clip: bool = option(default=False, help="move the leaves' means into the domain before they are clustered")

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        if problem.domain.dimension <= self.grid_up_to:
            return self.on_grid.cluster(problem, session, rng)
        domain, k = problem.domain, problem.k
        trees = [self.tree.open(problem, rng.child("tree", i)) for i in range(self._partitions(problem))]
        per_count, per_sum = self.shares(problem, trees[0].space, len(trees), rng.child("share"))
        questions: list[Question[T, Any]] = [
            count(tree, oracle=self.counts, budget=spend) for tree, spend in zip(trees, per_count, strict=True)
        ]
        for tree, spend in zip(trees, per_sum, strict=True):
            questions.append(vector_sum(Rows.of(tree, domain), oracle=self.sums, budget=spend))
        answers = session.ask(*questions)
        counts, sums = answers[: len(trees)], answers[len(trees) :]
        cells = Cells.of([tree.grow(table) for tree, table in zip(trees, counts, strict=True)], sums)
        leaves = cells.means(domain if self.clip else None) if self.centers == "means" else cells.places
        centers = self.solver.solve(session.release(leaves), k, rng.child("solve"))
        groups = nearest(leaves.points, centers)
        if self.centers == "groups":
            centers = cells.of_groups(groups, k)
        placed_centers, weights = place_clusters(centers, leaves, domain)
        own_noise = own_row_errors(weights, self.counts, per_count[0])
        missing = np.hypot(missing_rows(weights, len(trees) * problem.rows), own_noise)
        stated = cluster_errors(leaves, centers, placed_centers, domain, missing)
        stated["weights_error"] = stated["weights_error"] / len(trees)
        return Clustering(
            placed_centers, weights / len(trees), {"leaves": len(groups), "partitions": len(trees), **stated}
        )

    @property
    def on_grid(self) -> GridCounts[T]:
        """The method for few dimensions."""
        return GridCounts(self.grid, self.counts, self.grid_solver)

    def _partitions(self, problem: Problem) -> int:
        """As many as are asked for; by default two if little noise is expected: each has its share of the users."""
        if self.partitions is not None or not self._by_users:
            return self.partitions or 1
        return 2 if self.expected_error(problem) < FEW_ERRORS else 1

    @property
    def _by_users(self) -> bool:
        """Under Shuffled trust not where an oracle asks everybody for a share of its noise (``asks_all_users``)."""
        if self.share != "auto":
            return self.share == "users"
        needed = any(oracle.asks_all_users for oracle in (self.counts, self.sums))
        return self.counts.trust in (Local, Shuffled) and not needed

    def shares(
        self, problem: Problem, space: Space, partitions: int, rng: PublicRng
    ) -> tuple[tuple[Budget, ...], tuple[Budget, ...]]:
        """Return the budgets of the counts and of the vectors of each partition.

        By users q : 1 - q, q = sqrt(a) / (sqrt(a) + sqrt(b)), with a the variance of a count and b that of d + 2
        coordinates of a sum, over R^2; by budget as the noise law has it. Where a share q of the users is counted, the
        n / k rows of a cluster have a binomial spread of n / (k q) besides: most of a when shuffled, and left out under
        Local trust, where noise is above n at an epsilon of 1 (the study's rule).
        """
        budget = problem.budget
        of_count, of_sum = self.variances(problem, space, budget, budget)
        errors = of_count, (problem.domain.dimension + 2) * of_sum
        if self._by_users:
            spread = problem.rows / problem.k if self.counts.trust is Shuffled else 0.0
            roots = math.sqrt(of_count + spread), math.sqrt(errors[1])
            best = max(self.least_count_share, roots[0] / sum(roots))
            q = best if self.count_share is None else self.count_share
            parts = budget.split_users(rng, *(q,) * partitions, *(1 - q,) * partitions)
            return parts[:partitions], parts[partitions:]
        per_partition = budget.over(partitions)
        count_share = self.count_share
        per_count, per_sum = (
            per_partition.split_for(*errors)
            if count_share is None
            else per_partition.split(count_share, 1 - count_share)
        )
        return (per_count,) * partitions, (per_sum,) * partitions

    def variances(self, problem: Problem, space: Space, per_count: Budget, per_sum: Budget) -> tuple[float, float]:
        """Variances of a count (rows^2) and a sum's coordinate (rows^2 R^2): of all rows, if users are divided too."""
        bound, radius = Rows.bound_in(problem.domain), problem.domain.diameter / 2
        of_count = self.counts.variance(space, per_count, problem.context(per_count))
        of_sum = self.sums.variance(space, per_sum, problem.context(per_sum), bound)
        return of_count * (1 / per_count.fraction) ** 2, of_sum * (1 / per_sum.fraction / radius) ** 2

    def expected_error(self, problem: Problem) -> float:
        """Return v of the module's docstring."""
        if problem.domain.dimension <= self.grid_up_to:
            return self.on_grid.expected_error(problem)
        space = self.tree.open(problem, ANY_KEY).space
        (per_count,), (per_sum,) = self.shares(problem, space, 1, ANY_KEY)
        _, of_sum = self.variances(problem, space, per_count, per_sum)
        return problem.k**2 * (problem.domain.dimension + 2) * of_sum / problem.rows**2


@final
@attrs.frozen(eq=False)
class Cells:
    """Released leaves of all partitions. Args: places (as they grew), sums (m, d) from the domain's middle, errors."""

    places: Coreset
    sums: Floats
    errors: Errors

    @classmethod
    def of(cls, grown: Sequence[Coreset], sums: Sequence[Sums]) -> Cells:
        """Look at the sums of the leaves, tree by tree and level by level."""
        lookups = [_looked(leaves, table) for leaves, table in zip(grown, sums, strict=True)]
        of_counts = [np.zeros(len(g.weights)) if g.errors is None else g.errors.weights for g in grown]
        places = Coreset(np.concatenate([g.points for g in grown]), np.concatenate([g.weights for g in grown]))
        totals, noise = (np.concatenate(parts) for parts in zip(*lookups, strict=True))
        return cls(places, totals, Errors(np.concatenate(of_counts), noise))

    def means(self, domain: Domain | None) -> Coreset:
        """Sum over count, of leaves with at least one row (others stay where one row would be); moved into a domain."""
        points = self.sums / np.maximum(self.places.weights, 1.0)[:, None]
        if domain is not None:
            points = domain.truncate(points + domain.middle) - domain.middle
        return Coreset(points, self.places.weights, errors=self.errors)

    def of_groups(self, groups: Ints, k: int) -> Floats:
        """Algorithm 4, lines 7-13: the sum over a group's leaves divided by their count, at least 1."""
        total, size = np.zeros((k, self.sums.shape[1])), np.zeros(k)
        np.add.at(total, groups, self.sums)
        np.add.at(size, groups, self.places.weights)
        return total / np.maximum(size, 1.0)[:, None]


def _looked(grown: Coreset, sums: Sums) -> tuple[Floats, Floats]:
    """Look up the sums (m, d) of a tree's leaves and their standard errors (m,)."""
    assert grown.leaves is not None  # a law of trees
    levels, ids = grown.leaves.levels, grown.leaves.ids
    totals, noise = np.empty(grown.points.shape), np.empty(len(ids))
    for level in np.unique(levels).tolist():
        on_level = levels == level
        totals[on_level], noise[on_level] = sums.at(ids[on_level], level), sums.standard_error(ids[on_level], level)
    return totals, noise

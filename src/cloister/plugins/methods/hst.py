"""Clustering by a hierarchically separated tree: count its cells, solve it for centres, lift them, merge them.

1. Ask how many rows fall in the cells of a random tree, grow it, and solve it for ``extra`` * k centres: exactly, on
   the tree's own metric (Algorithms 1 to 3). A tree of few dimensions sees a public random projection.
2. Lift: ask how many rows are nearest to each of those and where they are, in all dimensions. A centre's projection
   lies in the public subspace, so that it is nearest to the same rows in either.
3. Merge the extra * k noisy means, of known standard errors, into k centres. For points that noise moved Ward's method
   does better than the paper's reverse greedy, which is there as a solver: ``merge=reverse-greedy``.

k-means: Algorithms 6 and 7 repeat step 1 ``passes`` times. Centres that a cut of the next tree comes too near to
(``badly_cut``) are kept, and the rows nearest to them fall in no cell of that tree. One pass starts from no centres:
nothing is cut badly.

Guarantee: the trust model and measure of the oracles in the slots. ``passes`` rounds of counts, with ``tree_share`` of
the budget, then one round of counts and sums; earlier answers and public coins decide which rows fall in no cell.

Corrections to the paper, besides those of the tree and of its program: one pass per round is paid for, instead of the
best of several; centres are lifted by noisy means of all rows of their cells, and not from a sample.

Source: Cohen-Addad, Epasto, Lattanzi, Mirrokni, Munoz, Saulpic, Schwiegelshohn, Vassilvitskii 2022, Algorithms 1-3, 6
and 7. Lifting more centres than k is cloister's own: merging cannot separate what a projection puts together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Generic, final

import attrs
import numpy as np

from cloister.plugin import (
    Bools,
    Budget,
    BundleArrays,
    Clustering,
    Coreset,
    Errors,
    Floats,
    FrequencyOracle,
    HasCostCurve,
    HasCutBoundaries,
    Ints,
    NearestCenter,
    NonPrivateSolver,
    Problem,
    PublicRng,
    Released,
    Session,
    Space,
    T,
    Tree,
    TreeBuilder,
    VectorSumOracle,
    component,
    count,
    describe_part,
    json_integers,
    option,
    slot,
    vector_sum,
)
from cloister.plugins.methods.errors import cluster_errors, missing_rows
from cloister.plugins.methods.post_processing import group_sizes, nearest, pad_centers, place_clusters
from cloister.plugins.methods.rounds import equal_cells, nearest_within, offsets_from
from cloister.plugins.methods.suggesting import suggested

DRAWN = 4096
"""Cells that a result keeps for pictures, the heaviest."""


@component
class HST(Generic[T]):
    """k-median or k-means by a random tree: centres of cells, lifted and merged."""

    tree: TreeBuilder = slot("shifted-quadtree", help="public partition of the domain, with a tree metric")
    tree_counts: FrequencyOracle[T] = slot("discrete-gaussian", help="how many rows fall in each cell of the tree")
    solver: NonPrivateSolver = slot("tree-program", help="chooses centres among the tree's leaves")
    counts: FrequencyOracle[T] = slot("discrete-gaussian", help="how many rows are nearest to each centre")
    sums: VectorSumOracle[T] = slot("discrete-gaussian", help="what those rows add up to")
    merge: NonPrivateSolver = slot("ward", help="merges the lifted centres into k")
    extra: int = option(default=6, low=1, high=64, unit="k", help="this many times k centres are lifted and merged")
    tree_share: float = option(default=0.55, low=0.01, high=0.99, help="the tree's share of the budget")
    passes: int = option(
        default=1,
        low=1,
        high=16,
        help="trees, one after the other: of the next, rows near badly cut centres fall in no cell",
    )
    margin: float = option(
        default=0.02, low=0.0, high=1.0 / 3.0, unit="side of a cell", help="a centre this near to a cut is badly cut"
    )
    radius_scale: float = option(
        default=0.8, low=0.0, above=True, help="rows farther than this many radii of k equal cells are not lifted"
    )

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        for_tree, for_lift = problem.budget.split(self.tree_share, 1 - self.tree_share)
        per_pass, none = for_tree.over(self.passes), np.empty((0, problem.domain.dimension))
        centers, grown = self._on_tree(problem, session, per_pass, rng.child(0), none)
        for number in range(1, self.passes):
            centers, grown = self._on_tree(problem, session, per_pass, rng.child(number), centers)
        details = self._details(session.release(grown), self.extra * problem.k)
        centers = pad_centers(centers, self.passes * self.extra * problem.k)  # fewer were found if few were cut badly
        # rows may be as far as anywhere from a centre that is known in a subspace only
        radius = math.inf if grown.frame is not None else equal_cells(problem, self.radius_scale)
        lifted = self._lifted(problem, session, for_lift, centers, radius)
        k = problem.k
        if problem.fewest is not None:
            extents = spread(grown, centers, problem.domain.dimension)
            chosen = suggested(session.release(lifted), extents, problem, self.merge, rng.child("suggest"))
            k, details = chosen.k, details | chosen.details
        merged = self.merge.solve(session.release(lifted), k, rng.child("merge"))
        placed_at, weights = place_clusters(merged, lifted, problem.domain)
        stated = cluster_errors(lifted, merged, placed_at, problem.domain, missing_rows(weights, problem.rows))
        return Clustering(placed_at, weights, details | stated)

    @property
    def chooses_k(self) -> bool:
        return True

    def _on_tree(
        self, problem: Problem, session: Session[T], spend: Budget, rng: PublicRng, previous: Floats
    ) -> tuple[Floats, Coreset]:
        """Algorithm 7 on one tree: its best centres, and those before (m, d) that it cuts badly."""
        domain, tree = problem.domain, self.tree.open(problem, rng.child("tree"))
        bad = (
            tree.badly_cut(previous, self.margin)
            if isinstance(tree, HasCutBoundaries)
            else np.zeros(len(previous), bool)
        )
        cells = (
            Spared(tree, NearestCenter(session.agreed(domain.snap(previous)), domain.max_norm), bad)
            if bad.any()
            else tree
        )
        (counts,) = session.ask(count(cells, oracle=self.tree_counts, budget=spend))
        grown = tree.grow(counts)
        solved = self.solver.solve(session.release(grown), self.extra * problem.k, rng.child("solve"))
        return np.concatenate([solved, previous[bad]]), grown

    def _details(self, grown: Released[Coreset], max_k: int) -> dict[str, Any]:
        """Details that pictures draw: the heaviest cells, and the cost of 1 .. ``max_k`` centres on the tree."""
        coreset = grown.value
        details: dict[str, Any] = {"leaves": len(coreset.points)}
        if coreset.cells is not None:
            drawn = np.sort(np.argsort(-coreset.weights, kind="stable")[:DRAWN])
            details |= {"cells": coreset.cells[drawn], "cell_weights": coreset.weights[drawn]}
            if coreset.errors is not None:
                details["cell_errors"] = coreset.errors.weights[drawn]
        if coreset.frame is not None:
            details["projection"] = coreset.frame
        if isinstance(self.solver, HasCostCurve):
            details |= {"costs": self.solver.costs(grown, max_k), "power": self.solver.power}
        return details

    def _lifted(self, problem: Problem, session: Session[T], spend: Budget, centers: Floats, radius: float) -> Coreset:
        """Noisy means (m, d), relative to the domain's middle, of the rows nearest to each centre, within a radius."""
        domain, ids = problem.domain, np.arange(len(centers))
        assignment = nearest_within(radius, centers, domain, session)
        vectors, origin = offsets_from(assignment, domain, relative=math.isfinite(radius))
        per_count, per_sum = spend.split_for(1.0, 4.0 * domain.dimension)
        counts, sums = session.ask(
            count(assignment, oracle=self.counts, budget=per_count),
            vector_sum(vectors, oracle=self.sums, budget=per_sum),
        )
        weights, errors = counts.at(ids), counts.standard_error(ids)
        sizes = np.maximum(weights, np.maximum(errors, 1.0))
        means = origin[ids] + sums.at(ids) / sizes[:, None]
        # means that are moved into the domain are wrong by no more than half of it
        wrong = np.minimum(sums.standard_error(ids) / sizes, domain.diameter / 2 / math.sqrt(domain.dimension))
        noise = Errors(errors, wrong * np.maximum(weights, 0.0))
        return Coreset(domain.truncate(means) - domain.middle, weights, errors=noise)


def spread(grown: Coreset, centers: Floats, dimension: int) -> Floats:
    """Return the mean squared distance (m,) of the rows of each centre's leaves from it, as far as cells tell.

    A random projection shows its share of the dimensions of a squared distance.
    """
    groups = nearest(grown.points, centers)
    squares = ((grown.points - centers[groups]) ** 2).sum(axis=1)
    if grown.cells is not None:
        squares += ((grown.cells[:, 1] - grown.cells[:, 0]) ** 2).sum(axis=1) / 12
    seen_dimension = dimension if grown.frame is None else grown.frame.shape[1]
    sizes = np.maximum(group_sizes(groups, grown.weights, len(centers)), 1.0)
    means: Floats = group_sizes(groups, np.maximum(grown.weights, 0.0) * squares, len(centers)) / sizes
    return means * (dimension / seen_dimension)


@final
@attrs.frozen(eq=False)
class Spared:
    """Tree whose cells hold no row that is nearest to a badly cut centre.

    Args:
        tree: the partition.
        near: rows by their nearest centre.
        bad: (m,) which centres are badly cut.
    """

    tree: Tree
    near: NearestCenter
    bad: Bools

    @property
    def space(self) -> Space:
        return self.tree.space

    def locate(self, rows: Ints) -> Ints:
        ids = self.tree.locate(rows)
        ids[self.bad[self.near.locate(rows)[:, 0]]] = -1
        return ids

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {
            "kind": "spared",
            "sizes": json_integers(self.space.sizes),
            "of": describe_part(self.tree, arrays),
            "near": self.near.bundled(arrays),
            "bad": np.flatnonzero(self.bad).tolist(),
        }

"""The best k centres on a tree metric, exactly: a dynamic program, solved by its marginal gains.

On a hierarchically separated tree a point whose smallest cell with a centre in it is c pays diam(c)^z. So centres cost

    sum, over maximal cells u without a centre, of w(u) diam(parent of u)^z,

with w(u) the rows in u. This corrects Algorithm 3: as printed, its lines 5 and 9 include k' = 0, so that every value is
0, and a cell without a centre is charged its own diameter, though its points travel at least out of it. With v_c(j) the
smallest cost inside c with j >= 1 centres in it, and v_u(0) = w(u) diam(c)^z for a child u of c, v_c is the min-plus
convolution of its children's.

Every v is convex from 0 on, if weights are non-negative and add up from child to parent and diameters fall along a
path. (A leaf's is. Min-plus keeps convexity; remains v_u(0) - v_u(1) >= v_u(1) - v_u(2). The best second centre of u
saves w(s) diam(a)^z - v_s(1), s a cell without a centre under a node a of the first one's path. The one best centre of
u costs no more than the one that leaves the path at a for s: v_u(1) <= sum over siblings t above of w(t) diam(.)^z +
(the rest of a) diam(a)^z + v_s(1); so v_u(0) - v_u(1) >= (w(s) + ...) diam(c)^z - ... - v_s(1) >= w(s) diam(a)^z -
v_s(1).) Convex sequences are convolved by merging their steps in order. So:

    g(u) = w(u) diam(c)^z - v_u(1)                            the gain of the first centre in u
    v_c(1) = sum over children of w diam(c)^z - max g:        one child goes on the path of c, others' gains are offers,

and the best k centres are the root's path and the k - 1 best offers: O(p log p) for p nodes, for all k at once.

Ties go to the lowest node. Tested against brute force. Source: Cohen-Addad et al. 2022, Algorithms 1 and 3.
"""

from __future__ import annotations

from typing import final

import attrs
import numpy as np

from cloister.plugin import Coreset, Floats, Ints, PublicRng, Released, TreeMetric, component, option
from cloister.plugins.solvers.points import centers_at, not_empty

FINEST = 20
"""Halvings of the box around points that have no tree."""


@component
class TreeProgram:
    """Optimal k-median (power 1) or k-means (power 2) on the coreset's own tree metric.

    Points without a tree get one: the box around them all, halved repeatedly along every column. Centres are leaves of
    the tree; if there are fewer than k, the first one is repeated.
    """

    power: int = option(default=1, low=1, high=2, help="z: distances count to this power")

    def solve(self, coreset: Released[Coreset], k: int, rng: PublicRng) -> Floats:
        chosen = self._program(coreset).centers(k)
        return centers_at(coreset.value.points, chosen, k, int(chosen[0]))

    def costs(self, coreset: Released[Coreset], k: int) -> Floats:
        """Return the tree metric's cost (k,) of the best 1 .. k centres.

        Raises:
            InvalidInput: the coreset has no point.
        """
        return self._program(coreset).costs(k)

    def _program(self, coreset: Released[Coreset]) -> Program:
        points, tree = not_empty(coreset.value).points, coreset.value.tree
        return Program.of(halved(points) if tree is None else tree, coreset.value.weights, self.power)


@final
@attrs.frozen(eq=False)
class Program:
    """Solved program: offers in the order in which more centres take them.

    Args:
        leaves: point at the end of each offer's path (m,); the root's path first.
        gains: saving of each offer (m,), the first one against no centre at all.
        total: cost without a centre: all rows times the root's diameter^z.
    """

    leaves: Ints
    gains: Floats
    total: float

    @classmethod
    def of(cls, tree: TreeMetric, weights: Floats, power: int) -> Program:
        """Solve bottom up, all nodes of a level at once. Negative weights (m,) count as 0."""
        parents, span = tree.parents, tree.diameters.astype(np.float64) ** power
        p, m = len(parents), len(weights)
        rows, ends, cost = np.zeros(p), np.arange(p), np.zeros(p)  # w(u), the leaf that u's path ends in, v_u(1)
        rows[:m] = np.maximum(weights, 0.0)
        gain = np.full(p, -np.inf)
        for nodes in _levels(parents)[:0:-1]:
            above = parents[nodes]
            charged = rows[nodes] * span[above]
            gain[nodes] = charged - cost[nodes]
            order = np.lexsort((nodes, -gain[nodes], above))
            first = order[np.r_[True, np.diff(above[order]) > 0]]
            np.add.at(rows, above, rows[nodes])
            np.add.at(cost, above, charged)
            cost[above[first]] -= gain[nodes[first]]
            ends[above[first]] = ends[nodes[first]]
            gain[nodes[first]] = -np.inf  # on the path of the node above: no offer of its own
        root = int(np.flatnonzero(parents < 0)[0])
        offers = np.flatnonzero(gain > -np.inf)
        offers = offers[np.lexsort((offers, -gain[offers]))]
        total = float(rows[root] * span[root])
        return cls(np.r_[ends[root], ends[offers]], np.r_[total - cost[root], gain[offers]], total)

    def centers(self, k: int) -> Ints:
        """Return the points (at most k,) that are centres of the best solution."""
        return self.leaves[:k]

    def costs(self, k: int) -> Floats:
        """Return the smallest cost (k,) with 1 .. k centres."""
        gains = np.zeros(k)
        gains[: len(self.gains)] = self.gains[:k]
        return np.maximum(self.total - np.cumsum(gains), 0.0)


def halved(points: Floats) -> TreeMetric:
    """Return nested boxes over points (m, d): one around all, halved along all columns ``FINEST`` times."""
    low, sides = points.min(axis=0), np.maximum(np.ptp(points, axis=0), 1e-300)
    steps = np.minimum((points - low) / sides * 2**FINEST, 2**FINEST - 1).astype(np.int64)
    parents, diameters, above, number = [np.full(len(points), -1)], [np.zeros(len(points))], None, len(points)
    for level in range(FINEST + 1):
        cells, inside = np.unique(steps >> (FINEST - level), axis=0, return_inverse=True)
        first = np.unique(inside, return_index=True)[1]
        parents.append(np.full(len(cells), -1) if above is None else above[first])
        diameters.append(np.full(len(cells), float(np.linalg.norm(sides)) / 2**level))
        above, number = number + inside.ravel(), number + len(cells)
        if len(cells) == len(points):
            break
    parents[0] = np.asarray(above)
    return TreeMetric(np.concatenate(parents), np.concatenate(diameters))


def _levels(parents: Ints) -> list[Ints]:
    """Return the nodes by their distance from the root."""
    depth, above = np.zeros(len(parents), np.int64), parents
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parents[above], -1)
    order = np.argsort(depth, kind="stable")
    return np.split(order, np.cumsum(np.bincount(depth))[:-1])

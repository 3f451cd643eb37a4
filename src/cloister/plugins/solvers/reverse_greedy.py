"""Reverse greedy: start with all points as centres, and drop the one whose loss costs least until k are left.

Without centre c, the points nearest to it pay their distance to the next nearest centre: loss(c) = sum of w (d_2^z -
d_1^z) over them. It needs distances among released points only: post-processing.

On m = O(k) points the result costs at most O(log k) times the best k of them (Chrobak, Kenyon, Young 2006, Theorem
2.2). Cohen-Addad et al. 2022, appendix A, reduce their (1 + alpha) k centres by it, weighted by noisy counts.
"""

from __future__ import annotations

import numpy as np

from cloister.plugin import Coreset, Floats, Ints, PublicRng, Released, component, option
from cloister.plugins.solvers.points import centers_at, not_empty


@component
class ReverseGreedy:
    """Solver that drops released points one by one until k are left. Points of weight at most 0 pay nothing."""

    power: int = option(default=2, low=1, high=2, help="z: distances count to this power")
    most: int = option(default=1024, low=2, help="points that can become centres: the heaviest")

    def solve(self, coreset: Released[Coreset], k: int, rng: PublicRng) -> Floats:
        points, weights = not_empty(coreset.value).points, np.maximum(coreset.value.weights, 0.0)
        able = np.sort(np.argsort(-weights, kind="stable")[: max(k, self.most)])
        centers = able[survivors(_distances(points, points[able]) ** self.power, weights, k)]
        return centers_at(points, centers, k, int(able[np.argmax(weights[able])]))


def survivors(costs: Floats, weights: Floats, k: int) -> Ints:
    """Return the (at most k) of m centres that are left, for costs (p, m) of serving points of weights (p,).

    Ties go to the lowest index. Each point remembers its two nearest centres and searches again only if one of them was
    dropped: O(p m) in all, on average.
    """
    open_costs, rows = costs.copy(), np.arange(len(costs))
    alive = np.ones(costs.shape[1], bool)
    first, second = np.zeros(len(costs), np.int64), np.zeros(len(costs), np.int64)
    again = rows
    while int(alive.sum()) > max(k, 1):
        costs_again = open_costs[again]
        first[again] = costs_again.argmin(axis=1)
        costs_again[np.arange(len(again)), first[again]] = np.inf
        second[again] = costs_again.argmin(axis=1)
        extra = weights * (open_costs[rows, second] - open_costs[rows, first])
        loss = np.where(alive, np.bincount(first, extra, minlength=len(alive)), np.inf)
        gone = int(loss.argmin())
        alive[gone], open_costs[:, gone] = False, np.inf
        again = np.flatnonzero((first == gone) | (second == gone))
    return np.flatnonzero(alive)


def _distances(points: Floats, centers: Floats) -> Floats:
    """Return distances (p, m), by differences: small ones do not suffer from cancellation."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(points, centers), np.float64)

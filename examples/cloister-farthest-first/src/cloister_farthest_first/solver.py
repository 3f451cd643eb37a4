"""k-means of released points: starts from heavy points that are far apart, then runs weighted Lloyd rounds.

Post-processing: everything it is given is released, so that it costs no privacy. It never fails, whatever noise made of
weights.
"""

import numpy as np

from cloister.plugin import Coreset, Floats, PublicRng, Released, component, option


@component
class FarthestFirst:
    """Lloyd's algorithm from k points, each the one of largest weight times squared distance to those before."""

    rounds: int = option(default=20, low=0, help="Lloyd rounds after the start")

    def solve(self, coreset: Released[Coreset], k: int, rng: PublicRng) -> Floats:
        points, weights = coreset.value.points, np.maximum(coreset.value.weights, 0)
        if not weights.any():  # noise, or a forecast, left nothing above zero
            weights = np.ones(len(points))
        centers = points[[np.argmax(weights)]]
        while len(centers) < k:
            farthest = np.argmax(weights * _squares(points, centers).min(axis=1))
            centers = np.concatenate([centers, points[[farthest]]])
        for _ in range(self.rounds):
            nearest = _squares(points, centers).argmin(axis=1)
            total = np.bincount(nearest, weights, k)[:, None]
            sums = np.stack([np.bincount(nearest, weights * column, k) for column in points.T], axis=1)
            centers = np.where(total > 0, sums / np.where(total > 0, total, 1), centers)
        return centers


def _squares(points: Floats, centers: Floats) -> Floats:
    """Squared distances (m, k) of points (m, d) to centres (k, d)."""
    return np.stack([((points - center) ** 2).sum(axis=1) for center in centers], axis=1)

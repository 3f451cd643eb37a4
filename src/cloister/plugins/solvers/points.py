"""What solvers make of released points before they cluster them: noise may have left a point with no weight, or none with any."""

from __future__ import annotations

import numpy as np

from cloister.core.clustering import Coreset
from cloister.core.errors import InvalidInput
from cloister.core.types import Floats, Ints


def heavy_or_all(coreset: Coreset) -> tuple[Ints, Floats]:
    """Which points have weight above 0, and their weights (m,); all of them with weight 1, if none has.

    Raises:
        InvalidInput: there is no point at all.
    """
    if not len(coreset.points):
        raise InvalidInput("a coreset without a point cannot be clustered: trees return at least one")
    heavy = np.flatnonzero(coreset.weights > 0)
    if not len(heavy):
        return np.arange(len(coreset.points)), np.ones(len(coreset.points))
    return heavy, coreset.weights[heavy]


def each_a_center(points: Floats, weights: Floats, k: int) -> Floats:
    """Centres (k, d) for at most k points (m, d) of weights (m,): every point is one, and the rest stand on the heaviest."""
    return points[np.r_[np.arange(len(points)), np.full(k - len(points), np.argmax(weights))]]

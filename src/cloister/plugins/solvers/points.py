"""Input of solvers: which released points they cluster, and centres where there are fewer points than centres.

Noise may have left a point with no weight, or none with any.
"""

from __future__ import annotations

import numpy as np

from cloister.core.clustering import Coreset, Errors
from cloister.core.errors import InvalidInput
from cloister.core.types import Floats, Ints


def not_empty(coreset: Coreset) -> Coreset:
    """The same coreset. Raises: InvalidInput if it has no point."""
    if not len(coreset.points):
        raise InvalidInput("a coreset without a point cannot be clustered: trees return at least one")
    return coreset


def heavy_or_all(coreset: Coreset) -> Coreset:
    """The points of weight above 0; if there is none, all with weight 1 and no errors. Raises: as ``not_empty``."""
    points = not_empty(coreset).points
    heavy, noise = coreset.weights > 0, coreset.errors
    if not heavy.any():
        return Coreset(points, np.ones(len(points)))
    errors = None if noise is None else Errors(noise.weights[heavy], noise.sums[heavy])
    return Coreset(points[heavy], coreset.weights[heavy], errors=errors)


def each_a_center(coreset: Coreset, k: int) -> Floats:
    """Centres (k, d) for at most k points: every point is one, and the others stand on the heaviest."""
    return centers_at(coreset.points, np.arange(len(coreset.points)), k, int(np.argmax(coreset.weights)))


def centers_at(points: Floats, chosen: Ints, k: int, again: int) -> Floats:
    """Centres (k, d) on the chosen points (at most k,); the others stand on the point ``again``."""
    return points[np.r_[chosen, np.full(k - len(chosen), again)]]

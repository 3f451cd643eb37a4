"""Input of solvers: points with positive noisy weights, and centres if there are fewer points than centres."""

from __future__ import annotations

import numpy as np

from cloister.plugin import Coreset, Errors, Floats, Ints, InvalidInput


def not_empty(coreset: Coreset) -> Coreset:
    """Return the coreset.

    Raises:
        InvalidInput: it has no point.
    """
    if not len(coreset.points):
        raise InvalidInput("a coreset without a point cannot be clustered: trees return at least one")
    return coreset


def heavy_or_all(coreset: Coreset) -> Coreset:
    """Return the points of weight above 0; if there is none, all with weight 1 and no errors.

    Raises:
        InvalidInput: the coreset has no point.
    """
    points = not_empty(coreset).points
    heavy, noise = coreset.weights > 0, coreset.errors
    if not heavy.any():
        return Coreset(points, np.ones(len(points)))
    errors = None if noise is None else Errors(noise.weights[heavy], noise.sums[heavy])
    return Coreset(points[heavy], coreset.weights[heavy], errors=errors)


def each_a_center(coreset: Coreset, k: int) -> Floats:
    """Return centres (k, d) on all of at most k points, and further ones on the heaviest point."""
    return centers_at(coreset.points, np.arange(len(coreset.points)), k, int(np.argmax(coreset.weights)))


def centers_at(points: Floats, chosen: Ints, k: int, again: int) -> Floats:
    """Return centres (k, d) on the chosen points (at most k,), and further ones on the point ``again``."""
    return points[np.r_[chosen, np.full(k - len(chosen), again)]]

"""Small sums over released points: which centre is nearest, and what it holds."""

from __future__ import annotations

import numpy as np

from cloister.core.types import Floats, Ints


def nearest(points: Floats, centers: Floats) -> Ints:
    """The nearest centre (m,) of released points, ties to the lowest index."""
    squares = (centers**2).sum(axis=1) - 2 * points @ centers.T
    return np.asarray(squares.argmin(axis=1), np.int64)


def held(groups: Ints, counts: Floats, k: int) -> Floats:
    """Noisy rows (k,) of each group, negative counts left out."""
    return np.asarray(np.bincount(groups, np.maximum(counts, 0.0), minlength=k), np.float64)


def james_stein(squares: Floats, noise: Floats) -> Floats:
    """Positive-part James-Stein factor of steps of these squared lengths: 1 - noise / square, at least 0."""
    return np.asarray(1.0 - noise / np.maximum(squares, np.maximum(noise, 1e-300)), np.float64)

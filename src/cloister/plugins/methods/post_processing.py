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


def pooled_james_stein(steps: Floats, errors: Floats, weights: Floats | None = None) -> float:
    """One factor for all steps (k, d) whose coordinates have these standard errors (k,): 1 - the energy of the noise
    over that of the steps, at least 0. Far better known than a factor for each. Args: weights (k,) of the steps."""
    w = np.ones(len(steps)) if weights is None else weights
    noise = np.asarray([(w * errors**2).sum() * steps.shape[1]])
    return float(james_stein(np.asarray([(w * (steps**2).sum(axis=1)).sum()]), noise)[0])


def projected(counts: Floats, total: float) -> Floats:
    """The nearest counts (m,) that are not negative and add up to ``total``: those less one number, or 0.

    Source: Held, Wolfe, Crowder 1974 (the projection on a simplex).
    """
    falling = np.sort(counts)[::-1]
    excess = (falling.cumsum() - total) / np.arange(1, len(counts) + 1)
    return np.asarray(np.maximum(counts - excess[np.flatnonzero(falling >= excess)[-1]], 0.0), np.float64)


def empirical_bayes(squares: Floats, noise: Floats) -> Floats:
    """Factors (m,) of steps of these squared lengths and noise energies: t / (t + noise), with t the energy of true
    steps, pooled over all of them, the better known ones first.

    Source: Efron and Morris 1973; Morris 1983 (the moment equation for t, in five steps).
    """
    true, power = 0.0, 1
    for _ in range(5):
        total = np.maximum(true + noise, 1e-300)
        weights = (total.min() / total) ** power
        true, power = max(0.0, float((weights * (squares - noise)).sum() / weights.sum())), 2
    return np.asarray(true / np.maximum(true + noise, 1e-300), np.float64)

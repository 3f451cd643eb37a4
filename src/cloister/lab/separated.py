"""Gaussian clusters at a given separation from one another.

Source: Qiu and Joe, Generation of random clusters with specified degree of separation, Journal of Classification 23
(2006), and Separation index and partial membership for clustering, CSDA 50 (2006).
"""

from __future__ import annotations

import math
from typing import Final, final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.types import Floats, Ints

_TAIL: Final = 1.959963984540054
"""The normal quantile 1 - alpha / 2 of the separation index, for its usual alpha = 0.05."""


def in_proportion(n: int, k: int) -> Ints:
    """Split n as 1 : 2 : ... : k, rounded so that the sum is n. Raises: InvalidInput: a part would be empty."""
    parts = np.arange(k + 1) * np.arange(1, k + 2) / (k * (k + 1))
    ends = np.rint(n * parts).astype(np.int64)
    sizes: Ints = ends[1:] - ends[:-1]
    if sizes.min() < 1:
        raise InvalidInput(f"{n} rows are too few for {k} clusters of sizes 1 : 2 : ... : {k}")
    return sizes


@final
@attrs.frozen(eq=False)
class Mixture:
    """Gaussian clusters.

    Args:
        centers: (k, d).
        covariances: (k, d, d).
    """

    centers: Floats
    covariances: Floats

    def sample(self, sizes: Ints, rng: np.random.Generator) -> Floats:
        """Draw ``sizes[i]`` rows of each cluster i, cluster after cluster: (sum of sizes, d)."""
        d = self.centers.shape[1]
        return np.concatenate(
            [
                center + rng.standard_normal((int(size), d)) @ np.linalg.cholesky(covariance).T
                for center, covariance, size in zip(self.centers, self.covariances, sizes, strict=True)
            ]
        )


def separated(k: int, d: int, separation: float, rng: np.random.Generator) -> Mixture:
    """Draw random Gaussian clusters, each at a given separation index from its nearest neighbour.

    1. Covariances: random orthogonal axes, variances uniform in [1, 10].
    2. Centres: vertices of a regular simplex, continued by shifted copies when k > d + 1, then rotated at random.
    3. The centres are scaled until the smallest index of all pairs is the given one.
    4. A cluster further than that from all others gets a larger covariance, until one of them is at the given index:
       the most isolated cluster first. No pair falls below it.

    Args:
        k: number of clusters, at least 2.
        d: number of columns, at least 2.
        separation: J = (L2 - U1) / (U2 - L1) in (-1, 1), where [L, U] holds the middle 95% of a cluster's projection on
            the line that makes J largest. 0.01 is close, 0.21 separated, 0.34 well separated.
        rng: source of randomness.

    Raises: InvalidInput: an argument is out of range.

    Source: Qiu and Joe, Generation of random clusters with specified degree of separation, Journal of Classification
    23 (2006), as in the R package clusterGeneration, method "eigen"; none of its code is used.
    """
    if k < 2 or d < 2 or not -1 < separation < 1:
        raise InvalidInput(f"clusters need k >= 2, d >= 2 and a separation in (-1, 1), not {k}, {d}, {separation}")
    target = _TAIL * (1 + separation) / (1 - separation)
    axes = _orthogonal(k, d, rng)
    covariances = (axes * rng.uniform(1, 10, (k, 1, d))) @ axes.swapaxes(1, 2)
    centers = _shifted_simplex(k, d) @ _orthogonal(1, d, rng)[0]
    reach, width, lines = _sharpest(centers, covariances)
    centers *= target / _apart(reach, width).min()
    for _ in range(50):
        reach, width, lines = _sharpest(centers, covariances, lines)
        growth = _fill(reach / target, width)
        covariances *= (growth**2)[:, None, None]
        if growth.max() < 1 + 1e-7:
            break
    return Mixture(centers, covariances)


def _orthogonal(count: int, d: int, rng: np.random.Generator) -> Floats:
    """Draw uniform orthogonal matrices (count, d, d): the signs make the QR factor unique (Mezzadri 2007)."""
    q, r = np.linalg.qr(rng.standard_normal((count, d, d)))
    signed: Floats = q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]
    return signed


def _shifted_simplex(k: int, d: int) -> Floats:
    """Return a regular simplex of edge 2 with its first edge on the first axis, then copies along it: (k, d)."""
    base = np.zeros((min(k, d + 1), d))
    base[0, 0], base[1, 0] = -1.0, 1.0
    for m in range(2, len(base)):
        base[m] = base[:m].mean(axis=0)
        base[m, m - 1] = math.sqrt(2 * (m + 1) / m)
    extra = np.arange(k - len(base))
    copies = base[1 + extra % d]
    copies[:, 0] += 2 * (1 + extra // d)
    return np.concatenate([base, copies])


def _apart(reach: Floats, width: Floats) -> Floats:
    """Return m / (s1 + s2) of every pair (k, k), infinite on the diagonal."""
    apart: Floats = np.full_like(reach, np.inf)
    off_diagonal = ~np.eye(len(reach), dtype=np.bool_)
    apart[off_diagonal] = reach[off_diagonal] / (width + width.T)[off_diagonal]
    return apart


def _sharpest(centers: Floats, covariances: Floats, lines: Floats | None = None) -> tuple[Floats, Floats, Floats]:
    """Find the line w on which m / (s1 + s2) is largest, for every pair.

    (s1 + s2)^2 is the minimum over t in (0, 1) of s1^2 / t + s2^2 / (1 - t), at t = s1 / (s1 + s2). So the best w for a
    fixed t solves (S1 / t + S2 / (1 - t)) w = c2 - c1, and the value is concave in t (a parallel sum of matrices):
    best t, best w, in turns, climb to the maximum.

    Args:
        centers: (k, d).
        covariances: (k, d, d).
        lines: initial lines (k, k, d), or None.

    Returns:
        m[i, j] = w'(c_j - c_i); s[i, j], the standard deviation of cluster i on the line of i and j; and the lines
        (k, k, d), lines[j, i] = -lines[i, j].
    """
    steps = centers[None, :, :] - centers[:, None, :]
    w = steps if lines is None else lines
    width, reach = _width(w, covariances), np.zeros_like(steps[..., 0])
    for _ in range(60):
        w = _solve(covariances, width / np.maximum(width + width.T, 1e-300), steps, w)
        width, previous = _width(w, covariances), reach
        reach = (w * steps).sum(axis=-1)
        if np.allclose(reach, previous, rtol=1e-8, atol=0.0):
            break
    return reach, width, w


def _width(w: Floats, covariances: Floats) -> Floats:
    squared: Floats = (w * (w @ covariances)).sum(axis=-1)
    return np.sqrt(squared)


def _solve(covariances: Floats, t: Floats, steps: Floats, start: Floats) -> Floats:
    """Solve (S_i / t[i, j] + S_j / t[j, i]) w[i, j] = steps[i, j] by conjugate gradients on all pairs at once.

    Eigenvalues of one covariance are within a factor of ten, so that few steps do, and each is one matrix product per
    cluster: factoring all pairs would take minutes at d = 512.
    """
    share = np.where(t > 0, t, 1.0)[..., None]

    def times(w: Floats) -> Floats:
        v = w @ covariances / share
        return v - v.swapaxes(0, 1)

    w = start
    residual = steps - times(w)
    direction, squared_norm = residual, (residual * residual).sum(axis=-1)
    tolerance = 1e-10 * (steps * steps).sum(axis=-1)
    for _ in range(200):
        if np.all(squared_norm <= tolerance):
            break
        image = times(direction)
        length = squared_norm / np.maximum((direction * image).sum(axis=-1), 1e-300)
        w = w + length[..., None] * direction
        residual = residual - length[..., None] * image
        squared_norm, previous = (residual * residual).sum(axis=-1), squared_norm
        direction = residual + (squared_norm / np.maximum(previous, 1e-300))[..., None] * direction
    return w


def _fill(room: Floats, width: Floats) -> Floats:
    """Return growths g (k,) of at least 1 with g_i width[i, j] + g_j width[j, i] <= room[i, j] for all pairs.

    The cluster with most room to its nearest neighbour grows first; in the end every cluster attains equality with one.
    """
    growth = np.ones(len(room))
    off_diagonal = ~np.eye(len(room), dtype=np.bool_)
    for _ in range(len(room)):
        used = growth[:, None] * width
        slack = np.where(off_diagonal, room / np.where(off_diagonal, used + used.T, 1.0), np.inf).min(axis=1)
        i = int(np.argmax(slack))
        if slack[i] <= 1:
            break
        j = off_diagonal[i]
        growth[i] = max(growth[i], float(((room[i, j] - used.T[i, j]) / width[i, j]).min()))
    return growth

"""Rows that benchmarks share: the Gaussian mixtures of the one-round paper's section 5, and those like s1."""

from __future__ import annotations

import math

import numpy as np

from cloister.core.types import AnyArray, Floats


def mixture(n: int, k: int, d: int, r: float, seed: int) -> tuple[AnyArray, Floats]:
    """Rows (n, d) float32 in random order, and their centres (k, d)."""
    g = np.random.default_rng([seed, 1])
    if r == 0:
        return s1_like(n, k, g)
    centers = g.standard_normal((k, d))
    centers *= (1 - 1 / r) / np.linalg.norm(centers, axis=1, keepdims=True)
    rows = g.standard_normal((n, d), np.float32)
    rows *= np.float32(1 / (r * math.sqrt(d)))
    rows += centers.astype(np.float32)[g.permutation(np.arange(n) % k)]
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)
    return rows, centers


def s1_like(n: int, k: int, g: np.random.Generator) -> tuple[AnyArray, Floats]:
    """15 Gaussians of deviation 0.05, centres in [-0.65, 0.65]^2 at least 0.22 apart."""
    centers: list[Floats] = []
    while len(centers) < k:
        c = g.uniform(-0.65, 0.65, 2)
        if all(np.linalg.norm(c - other) >= 0.22 for other in centers):
            centers.append(c)
    at = np.array(centers)
    rows = at[g.permutation(np.arange(n) % k)] + 0.05 * g.standard_normal((n, 2))
    return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)).astype(np.float32), at

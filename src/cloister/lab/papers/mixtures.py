"""Gaussian mixtures of the one-round paper's section 5 (whose radius 1 - Theta(r) is 1 - 1/r), and mixtures like s1."""

from __future__ import annotations

import math

import numpy as np

from cloister.core.types import AnyArray, Floats


def mixture(n: int, k: int, d: int, r: float, seed: int) -> tuple[AnyArray, Floats]:
    """Draw rows (n, d) float32 in random order, and their centres (k, d).

    Args:
        n: number of rows.
        k: number of groups, of one size.
        d: number of columns.
        r: centres have the norm 1 - 1 / r, and rows a distance of about 1 / r from them; 0: ``s1_like``.
        seed: of everything.
    """
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
    """Draw k Gaussians of deviation 0.05, centres in [-0.65, 0.65]^2 at least 0.22 apart."""
    centers: list[Floats] = []
    while len(centers) < k:
        c = g.uniform(-0.65, 0.65, 2)
        if all(np.linalg.norm(c - other) >= 0.22 for other in centers):
            centers.append(c)
    at = np.array(centers)
    rows = at[g.permutation(np.arange(n) % k)] + 0.05 * g.standard_normal((n, 2))
    return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)).astype(np.float32), at


def at_places(n: int, k: int, d: int, seed: int, smallest: float = 0.0) -> AnyArray:
    """Draw rows (n, d) float32 at exactly k places far apart, so that the best cost is 0.

    Args:
        n: number of rows.
        k: number of places.
        d: number of columns.
        seed: of everything.
        smallest: the last place holds this times sqrt(n) rows; 0: all places hold as many.
    """
    g = np.random.default_rng([seed, 7])
    tries = g.standard_normal((200, d))
    tries *= 0.8 / np.linalg.norm(tries, axis=1, keepdims=True)
    places = tries[:1]
    while len(places) < k:
        away = np.linalg.norm(tries[:, None] - places, axis=2).min(axis=1)
        places = np.vstack([places, tries[away.argmax()]])
    last = round(math.sqrt(n) * smallest) if smallest else n // k
    ids = np.where(np.arange(n) < last, k - 1, np.arange(n) % (k - 1))
    rows: AnyArray = places[g.permutation(ids)].astype(np.float32)
    return rows

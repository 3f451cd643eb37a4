"""Sphere packing: k starting centres that no row has a say in (Su et al. 2016; FastLloyd, section 5.3.1)."""

from __future__ import annotations

from typing import Generic

import numpy as np

from cloister.core.reproducible_math import row_sums
from cloister.plugin import Clustering, Domain, Floats, Problem, PublicRng, Session, T, component

TRIES = 100


@component
class SpherePacking(Generic[T]):
    """Centres that no row has a say in: a start that asks nothing and costs nothing, and the row of a table to beat."""

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        return Clustering(sphere_packing(problem.k, problem.domain, rng))


def sphere_packing(k: int, domain: Domain, rng: PublicRng, steps: int = 20) -> Floats:
    """Pack k points (k, d) at least 2a apart and a from the border, with a from a binary search.

    Where a column is narrower than 2a its candidates stand in the middle, so that the wide columns set the pace. The
    margin matters: without it starts crowd into the corners of a high-dimensional box.

    Args:
        k: number of points.
        domain: of the rows.
        rng: public randomness.
        steps: halvings of the search interval.
    """
    low, high = 0.0, domain.diameter / 2
    best = _packed(k, domain, rng.child("none"), 0.0)
    for step in range(steps):
        radius = (low + high) / 2
        points = _packed(k, domain, rng.child("step", step), radius)
        if points is None:
            high = radius
        else:
            low, best = radius, points
    assert best is not None  # with radius 0 the first candidate always fits
    return best


def _packed(k: int, domain: Domain, rng: PublicRng, radius: float) -> Floats | None:
    """Choose k points one after the other; return None if one finds no room in ``TRIES`` tries."""
    g = rng.generator()
    chosen = domain.sample(g, 1, radius)
    for _ in range(k - 1):
        tries = domain.sample(g, TRIES, radius)
        fits = next((t for t in tries if (row_sums((chosen - t) * (chosen - t)) >= 4 * radius * radius).all()), None)
        if fits is None:
            return None
        chosen = np.vstack([chosen, fits])
    return chosen

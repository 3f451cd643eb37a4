"""Weighted k-means and k-median on released points: random seeds, then Lloyd rounds."""

from __future__ import annotations

import warnings
from typing import Any, final

import attrs
import numpy as np

from cloister.plugin import Coreset, Floats, Ints, PublicRng, Released, component, option
from cloister.plugins.solvers.points import each_a_center, heavy_or_all


@component
class KMeansPlusPlus:
    """scikit-learn's k-means with k-means++ starts on released points: post-processing.

    Points of weight at most 0 are left out, unless all are.

    Source: Arthur and Vassilvitskii 2007; scikit-learn.
    """

    starts: int = option(default=10, low=1, help="independent starts; the best on the released points is kept")
    rounds: int = option(default=300, low=1, help="largest number of Lloyd rounds per start")

    def solve(self, coreset: Released[Coreset], k: int, rng: PublicRng) -> Floats:
        from sklearn.cluster import KMeans

        heavy = heavy_or_all(coreset.value)
        if len(heavy.points) <= k:
            return each_a_center(heavy, k)
        seed = int(rng.child("k-means++").generator().integers(2**31))
        starts: Any = self.starts  # scikit-learn has no annotations, and its default of n_init is text
        solver = KMeans(k, n_init=starts, max_iter=self.rounds, random_state=seed)
        with warnings.catch_warnings():  # fewer than k distinct points are no failure
            warnings.simplefilter("ignore")
            fitted = solver.fit(heavy.points, sample_weight=heavy.weights)
        return np.asarray(fitted.cluster_centers_, np.float64)


BLOCK = 2**13
"""Points per batch of distances to all centres."""

CLOSE = 1e-3
"""Smallest distance used, as a share of the mean distance, so that no step divides by 0."""


@component
class KMedianPlusPlus:
    """Weighted k-median on released points, D^1 seeding, then Lloyd rounds with Weiszfeld's 1-medians: post-processing.

    Candidates for the next seed are drawn with probability proportional to weight times distance to the nearest seed;
    of ``candidates`` of them the one that lowers the cost most is taken. Each start runs two Lloyd rounds, and the best
    one the remaining rounds. A Lloyd round moves each centre by ``steps`` Weiszfeld steps, which never raise the
    (smoothed) cost of its points. Points of weight at most 0 are left out, unless all are.

    Source: Arthur and Vassilvitskii 2007, section 5 (seeding for other powers); Weiszfeld 1937; 'kmed++' of Cohen-Addad
    et al. 2022, section 6, is ``starts=1, candidates=1, rounds=10``.
    """

    starts: int = option(default=5, low=1, help="independent starts, of which the best is continued")
    candidates: int = option(default=3, low=1, help="points that are tried for each seed")
    rounds: int = option(default=20, low=1, help="Lloyd rounds")
    steps: int = option(default=5, low=1, help="Weiszfeld steps per Lloyd round")

    def solve(self, coreset: Released[Coreset], k: int, rng: PublicRng) -> Floats:
        heavy = heavy_or_all(coreset.value)
        if len(heavy.points) <= k:
            return each_a_center(heavy, k)
        rows = Weighted.of(heavy.points, heavy.weights)
        started = [self._started(rows, k, rng.child("kmedian++", i)) for i in range(self.starts)]
        centers, _ = min(started, key=lambda pair: pair[1])
        for _ in range(self.rounds - min(2, self.rounds)):
            centers, moved = rows.improved(centers, self.steps)
            if not moved > 1e-6 * rows.size:
                break
        return centers + rows.middle

    def _started(self, rows: Weighted, k: int, rng: PublicRng) -> tuple[Floats, float]:
        """Return the centres of a start after two rounds, and their cost."""
        centers = rows.seeded(k, self.candidates, rng.generator())
        for _ in range(min(2, self.rounds)):
            centers, _ = rows.improved(centers, self.steps)
        return centers, rows.cost(centers)


@final
@attrs.frozen(eq=False)
class Weighted:
    """Weighted points around their middle.

    Args:
        points: (m, d), relative to ``middle``, so that squares of differences keep their digits.
        weights: (m,) above 0, the largest 1.
        middle: (d,).
        size: largest distance from the middle along one column.
        squares: squared distances from the middle (m,).
    """

    points: Floats
    weights: Floats
    middle: Floats
    size: float
    squares: Floats

    @classmethod
    def of(cls, points: Floats, weights: Floats) -> Weighted:
        middle = (points.min(axis=0) + points.max(axis=0)) / 2
        moved = points - middle
        scaled = np.maximum(weights / weights.max(), 1e-300)
        return cls(moved, scaled, middle, float(np.abs(moved).max()), np.einsum("ij,ij->i", moved, moved))

    def seeded(self, k: int, candidates: int, g: np.random.Generator) -> Floats:
        """Return k of the points (k, d) by D^1 seeding."""
        chosen = self._drawn(self.weights, 1, g)
        nearest = self._distances(chosen)[:, 0]
        for _ in range(k - 1):
            tries = self._drawn(self.weights * nearest, candidates, g)
            lower = np.minimum(self._distances(tries), nearest[:, None])
            best = int(np.argmin(self.weights @ lower))
            chosen = np.append(chosen, tries[best])
            nearest = lower[:, best]
        return self.points[chosen]

    def _drawn(self, masses: Floats, size: int, g: np.random.Generator) -> Ints:
        """Draw indices (size,) in proportion to masses; uniformly if all are 0 (every point is a seed)."""
        ends = np.cumsum(masses)
        if not ends[-1] > 0:
            return g.integers(len(masses), size=size)
        places: Ints = np.searchsorted(ends, g.random(size) * ends[-1], side="right")
        return np.asarray(np.minimum(places, len(masses) - 1), np.int64)

    def _distances(self, which: Ints) -> Floats:
        """Return the distances (m, c) to the points with these indices (c,)."""
        chosen = self.points[which]
        squares = self.points @ (-2 * chosen.T)
        squares += self.squares[:, None]
        squares += self.squares[which]
        return np.sqrt(np.maximum(squares, 0.0, out=squares), out=squares)

    def assigned(self, centers: Floats) -> Ints:
        """Return the nearest centre (m,) of each point, ties to the lowest index."""
        groups = np.empty(len(self.points), np.int64)
        squares = (centers**2).sum(axis=1)
        for start in range(0, len(groups), BLOCK):
            block = self.points[start : start + BLOCK] @ (-2 * centers.T)
            groups[start : start + BLOCK] = np.add(block, squares, out=block).argmin(axis=1)
        return groups

    def cost(self, centers: Floats) -> float:
        """Return the sum of weight times distance to the nearest centre."""
        offsets = self.points - centers[self.assigned(centers)]
        return float(self.weights @ np.sqrt(np.einsum("ij,ij->i", offsets, offsets)))

    def improved(self, centers: Floats, steps: int) -> tuple[Floats, float]:
        """Return the centres after one Lloyd round, and the largest change of a coordinate."""
        groups, k, now = self.assigned(centers), len(centers), centers
        for _ in range(steps):
            offsets = self.points - now[groups]
            distances = np.sqrt(np.einsum("ij,ij->i", offsets, offsets))
            floor = CLOSE * float(self.weights @ distances) / float(self.weights.sum())
            pulls = self.weights / np.maximum(distances, max(floor, 1e-300 + 1e-12 * self.size))
            total = np.bincount(groups, pulls, minlength=k)
            step = np.column_stack([np.bincount(groups, pulls * column, minlength=k) for column in offsets.T])
            now = now + np.divide(step, total[:, None], out=np.zeros_like(step), where=total[:, None] > 0)
        return now, float(np.abs(now - centers).max())

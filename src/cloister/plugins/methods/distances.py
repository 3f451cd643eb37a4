"""Histograms of distances from the centres, of all rows and of each group: radii, and what they cut off."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import pairwise
from typing import Any, final

import attrs
import numpy as np

from cloister.plugin import Budget, Domain, Floats, FrequencyOracle, Problem
from cloister.plugins.methods.clipping import DistanceBins
from cloister.plugins.methods.errors import count_error, hidden_by_noise
from cloister.plugins.methods.post_processing import project_to_simplex

SEEN = 2.0
"""Standard errors of a count of distances below which rows are not seen."""

CLEARLY = 3.0
"""Standard errors by which a total shows that the public number of rows is wrong."""

UNSEEN = 0.1
"""A bin's standard error, of the rows, beyond which no distances are measured."""

UNRESOLVED = 2.0
"""Groups of k in which all that clipping cuts off is taken to lie, where noise hides the distances of single groups."""

GROUP_BINS = 24
"""Bins of distances of one group."""


@final
@attrs.frozen(eq=False)
class Distances:
    """Noisy rows (m,) of the bins of distances from the nearest centre, and their standard errors (m,)."""

    bins: DistanceBins
    counts: Floats
    errors: Floats

    def within(self, share: float, rows: float, domain: Domain) -> float:
        """Return the distance, in the caller's units, within which this share of the rows has a centre."""
        return self.bins.quantile(self.counts, share, rows, domain)

    def excess(self, radii: Floats, rows: float, domain: Domain) -> Floats:
        """Return how much clipping to radii (k,) takes off the length of a row of any group on average."""
        shares = project_to_simplex(self.counts, rows) / rows
        return np.asarray(np.maximum(typical(self.bins, domain) - radii[:, None], 0.0) @ shares, np.float64)

    def details(self, domain: Domain) -> dict[str, Any]:
        """Return the outer edges of the bins, in units of the run's frame, with counts and errors."""
        edges = np.sqrt(self.bins.edges) * domain.unit
        return {"distances": {"edges": edges.tolist(), "counts": self.counts.tolist(), "errors": self.errors.tolist()}}


@final
@attrs.frozen(eq=False)
class GroupDistances:
    """Noisy rows of each group by their distance from its centre, from which radii and what they cut off are read.

    Args:
        bins: m bins of each group.
        counts: (k, m) noisy rows. error: standard error of each.
        rows: the public number of rows, unless the counts say clearly that it is another (``plausible_rows``).
    """

    bins: DistanceBins
    counts: Floats
    error: float
    rows: float

    @property
    def together(self) -> Distances:
        """The same of all groups."""
        k, m = self.counts.shape
        return Distances(self.bins, self.counts.sum(axis=0), np.full(m, self.error * math.sqrt(k)))

    def excess(self, radii: Floats, domain: Domain) -> Floats:
        """Return how much clipping to radii (k,) or (k, r) takes off the length of a row on average.

        Counts of less than ``SEEN`` errors are what their ``tail`` says. As many rows may be hidden as ``SEEN`` errors
        of one count: they are spread as the rows of all groups are.
        """
        visible = self.seen
        overall = project_to_simplex(self.counts.sum(axis=0), self.rows)
        rows = visible + SEEN * self.error * overall / max(float(overall.sum()), 1e-300)
        shares = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-300)
        beyond = np.maximum(typical(self.bins, domain) - np.reshape(radii, (len(shares), -1, 1)), 0.0)
        return np.reshape(np.einsum("jm,jrm->jr", shares, beyond), np.shape(radii))

    @cached_property
    def seen(self) -> Floats:
        """Rows (k, m) that show above the noise."""
        tails = np.array([tail(counts, self.error) for counts in self.counts])
        overall = project_to_simplex(self.counts.sum(axis=0), self.rows)
        sizes = np.maximum(self.counts, 0.0).sum(axis=1, keepdims=True)
        hidden = np.minimum(sizes * overall / max(float(overall.sum()), 1e-300), SEEN * self.error)
        return np.where(self.counts >= SEEN * self.error, self.counts, np.maximum(tails, hidden))

    def radii(self, noise: Floats, min_radius: float, domain: Domain) -> Floats:
        """Radii (k,) by which what clipping cuts off and the noise, both squared, add up to least, in caller's units.

        Args: noise: (k,) expected length of the noise in a mean, over the radius. least: radius of no less.
        """
        edges = np.sqrt(self.bins.edges) * domain.unit
        tried = np.broadcast_to(np.maximum(edges, min_radius), (len(noise), len(edges)))
        losses = self.excess(tried, domain) ** 2 + (noise[:, None] * tried) ** 2
        return np.asarray(tried[np.arange(len(noise)), losses.argmin(axis=1)], np.float64)


@final
@attrs.frozen(eq=False)
class Reach:
    """Distances of the rows from their centres.

    Args:
        radius: distance that ``WITHIN`` of all rows are within, in the caller's units.
        distances: of all groups together; None: nobody asked.
        groups: of each group; None: noise hides them.
    """

    radius: float
    distances: Distances | None = None
    groups: GroupDistances | None = None

    def excess(self, radii: Floats, sizes: Floats, errors: Floats, rows: float, domain: Domain) -> Floats | None:
        """Return the mean length (k,) that clipping cuts off a row of each group, or None if nobody asked.

        Where noise hides the distances of single groups, all that is cut off may lie in one of them: in a group that
        noise may hide, or else in any of k, with a chance of ``UNRESOLVED`` / k. Stated is the root mean square.

        Args:
            radii: (k,) of the groups, in the caller's units.
            sizes: (k,) rows of the groups.
            errors: (k,) standard errors of the sizes.
            rows: number of all rows.
            domain: of the rows.
        """
        if self.groups is not None:
            return self.groups.excess(radii, domain)[: len(sizes)]
        if self.distances is None:
            return None
        overall = self.distances.excess(radii[: len(sizes)], rows, domain)
        alone = np.minimum(overall * rows / np.maximum(sizes, errors), domain.diameter / 2)
        clear = min(1.0, UNRESOLVED / len(sizes))
        chance = clear + (1 - clear) * hidden_by_noise(sizes, errors)
        return np.asarray(np.sqrt(chance) * alone, np.float64)

    def spread(self, rows: float, domain: Domain) -> float:
        """Return the root mean square distance of all rows from their centre, or the radius if nobody asked."""
        if self.distances is None:
            return self.radius
        shares = project_to_simplex(self.distances.counts, rows) / rows
        return math.sqrt(float(shares @ typical(self.distances.bins, domain) ** 2))

    def details(self, domain: Domain) -> dict[str, Any]:
        """Distances as a result holds them."""
        return {} if self.distances is None else self.distances.details(domain)


def typical(bins: DistanceBins, domain: Domain) -> Floats:
    """Return the RMS distance (m,) of rows that are spread evenly over a bin's squared distances."""
    edges = np.append(0.0, np.sqrt(bins.edges)) * domain.unit
    return np.asarray(np.sqrt((edges[:-1] ** 2 + edges[1:] ** 2) / 2), np.float64)


def tail(counts: Floats, error: float) -> Floats:
    """Fit a law that does not rise to counts (m,) from their largest one on, so that a thin tail shows.

    Bins are wider the farther they are, so that rows of a tail fall from bin to bin, power laws' too. Neighbours that
    would rise are pooled, and what is less than one standard error of its pool is left out.
    """
    from scipy.optimize import isotonic_regression  # slow to import

    pooled, first = np.zeros(len(counts)), int(counts.argmax())
    falling = isotonic_regression(counts[first:], increasing=False)
    for start, end in pairwise(falling.blocks):
        value = float(falling.x[start])
        pooled[first + start : first + end] = value if value * math.sqrt(end - start) >= error else 0.0
    return pooled


def resolves_groups(problem: Problem, counts: FrequencyOracle[Any], budget: Budget) -> bool:
    """Return True if distances per group, counted with this budget, say where most rows are."""
    error = count_error(counts, problem.k * GROUP_BINS, budget, problem)
    return error * math.sqrt(problem.k) <= UNSEEN * problem.rows


def plausible_rows(total: float, error: float, rows: int) -> float:
    """Return the public number of rows, or a noisy total that is ``CLEARLY`` standard errors away from it."""
    return max(total, 1.0) if abs(total - rows) > CLEARLY * error else float(rows)

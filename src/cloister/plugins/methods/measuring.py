"""Questions of a method that measures a middle and radii first, and estimates from their noisy answers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Generic, Self, final

import attrs
import numpy as np

from cloister.plugin import (
    Bound,
    Budget,
    BundleArrays,
    Coreset,
    Errors,
    Floats,
    FrequencyOracle,
    Ints,
    NearestCenter,
    Problem,
    PublicRng,
    Rows,
    Session,
    Space,
    T,
    VectorSumOracle,
    count,
    json_integers,
    squared_lengths,
    vector_sum,
)
from cloister.plugins.methods.clipping import SCALE, ClippedOffsets, DistanceBins
from cloister.plugins.methods.distances import (
    GROUP_BINS,
    UNSEEN,
    Distances,
    GroupDistances,
    Reach,
    plausible_rows,
    resolves_groups,
)
from cloister.plugins.methods.errors import count_error, own_row_errors, step_errors
from cloister.plugins.methods.post_processing import (
    denoised,
    empirical_bayes,
    james_stein,
    linear_shrinkage,
    project_to_simplex,
)
from cloister.plugins.methods.rounds import nearest_within, shorten
from cloister.plugins.trees.directions import directions
from cloister.plugins.trees.nearest_direction import NearestDirection

WITHIN, GROWTH = 0.5, 1.2
"""Share of all rows within the least radius that a group may have, and growth of the budget from round to round."""

WELL_KNOWN = 40.0
"""q from which smaller groups than the average one are believed."""

CLIP, STRETCH = 0.6, 1.3
"""Clipping radius over the distance that ``WITHIN`` of the rows are within, and the stretch of steps that makes up for
it, in rounds with one radius for all groups."""

OUTER = (0.5, 1.0, 2.0, 4.0)
"""Squared outer radii of the shells, over the squared radius. The last one holds all rows beyond the third."""


@final
@attrs.frozen(eq=False)
class Shells:
    """Bucketing around a released point, by the cell of a row's direction and the shell of its distance.

    Shells tell apart what lies one behind the other. Distances are integers, and directions are compared exactly
    (``NearestDirection``: differences of lattice points have norms of at most 2^21). So a row's bucket is a
    function of that row alone.

    Args:
        cells: directions.
        middle: lattice point (1, d), released.
        radius: lattice steps, released.
    """

    cells: NearestDirection
    middle: Ints
    radius: int

    @classmethod
    def around(cls, middle: Ints, radius: int, number: int, seed: PublicRng) -> Self:
        """With at least this number of well-spread cells; in one column there are two."""
        d = middle.shape[1]
        return cls(NearestDirection(directions(seed, (number + 1) // 2 if d > 1 else 1, d)), middle, radius)

    @property
    def outer(self) -> Ints:
        """Squared outer radii (4,), in lattice steps."""
        return np.array([max(1, int(share * self.radius**2)) for share in OUTER], np.int64)

    @property
    def space(self) -> Space:
        return Space((self.cells.space.sizes[0] * len(OUTER),))

    def locate(self, rows: Ints) -> Ints:
        away = rows - self.middle
        lengths = squared_lengths(away)
        shells = np.searchsorted(self.outer[:-1], lengths.astype(np.int64))
        ids: Ints = self.cells.located(away, lengths) * len(OUTER) + shells[:, None]
        return ids

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {
            "kind": "shells",
            "sizes": json_integers(self.space.sizes),
            "around": arrays.add(self.cells.around),
            "middle": self.middle[0].tolist(),
            "edges": self.outer[:-1].tolist(),
        }

    def offsets(self) -> ClippedOffsets:
        """Return rows relative to the middle, clipped to the outer radius of their shell.

        Clipping has an effect in the last shell only, and sums of inner shells have less noise.
        """
        radii = np.ceil(np.sqrt(self.outer)).astype(np.int64)
        return ClippedOffsets(self, self.middle, np.tile(radii, self.cells.space.sizes[0]))


@final
@attrs.frozen(eq=False)
class Moved:
    """Noisy sizes and mean offsets of groups of rows.

    Args:
        sizes: noisy rows of each group (m,). size_errors: their standard errors (m,).
        means: of the rows' clipped offsets (m, d), in the caller's units.
        noise: expected squared length of the noise in each mean (m,).
        radii: that offsets were clipped to (m,).
        usual: expected rows of a group.
    """

    sizes: Floats
    size_errors: Floats
    means: Floats
    noise: Floats
    radii: Floats
    usual: float

    @property
    def steps(self) -> Floats:
        """Means (m, d) less what noise adds to their lengths, each by itself (James and Stein), within the radii."""
        return self._within(np.arange(len(self.sizes)), james_stein(_squares(self.means), self.noise))

    def heaviest(self, ids: Ints) -> Floats:
        """Means of these groups (m, d), shrunk as much as all of them together say (empirical Bayes)."""
        return self._within(ids, empirical_bayes(_squares(self.means[ids]), self.noise[ids]))

    def _within(self, ids: Ints, factors: Floats) -> Floats:
        """Return means times their factors, no longer than their radii.

        Of a mean no longer than s at most s^2 / (s^2 + noise) can be known, with s the radius times the share of a
        usual size that the noise of sizes leaves.
        """
        radii = self.radii[ids]
        max_energy = (radii * self.usual**2 / (self.usual**2 + self.size_errors[ids] ** 2)) ** 2
        factors = factors * max_energy / (max_energy + self.noise[ids])
        return shorten(self.means[ids] * factors[:, None], radii[:, None])

    def first(self, n: int) -> Moved:
        """Return the first n groups."""
        return Moved(self.sizes[:n], self.size_errors[:n], self.means[:n], self.noise[:n], self.radii[:n], self.usual)

    def above(self, errors: float, minimum: int) -> Ints:
        """Return the groups above this many standard errors, the heaviest first and at least ``minimum``."""
        order = np.argsort(-self.sizes, kind="stable")
        return order[: max(minimum, int((self.sizes > errors * self.size_errors).sum()))]

    def counted(self, ids: Ints, points: Floats) -> Coreset:
        """Points (m, d) of these groups with their rows as they were counted, and standard errors of both."""
        sizes, d = np.maximum(self.sizes[ids], 0.0), points.shape[1]
        return Coreset(points, sizes, errors=Errors(self.size_errors[ids], np.sqrt(self.noise[ids] / d) * sizes))

    def coreset(self, ids: Ints, points: Floats) -> Coreset:
        """Points (m, d) of these groups, relative to the middle, weighted by as much of their rows as noise leaves."""
        sizes, noise = np.maximum(self.sizes[ids], 1e-9), self.noise[ids]
        scale = max(float((sizes * (_squares(points) - noise)).sum() / sizes.sum()), 1e-6 * float(noise.min()), 1e-300)
        return Coreset(points, sizes * (scale / (scale + noise)))


def _squares(vectors: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", vectors, vectors), np.float64)


@final
@attrs.frozen(eq=False)
class Stepped:
    """Centres (k, d) after a round, rows of each (k,), and what a result states of their errors."""

    centers: Floats
    sizes: Floats
    stated: dict[str, Any]


@final
@attrs.frozen(eq=False)
class Measuring(Generic[T]):
    """Questions that are asked one round at a time, each with the next budget of ``spend``."""

    problem: Problem
    session: Session[T]
    counts: FrequencyOracle[T]
    sums: VectorSumOracle[T]
    spend: Iterator[Budget]

    def mean(self) -> Floats:
        """Return the mean of all rows (d,), shrunk towards the domain's middle."""
        domain, rows = self.problem.domain, self.problem.rows
        everyone = self.near(domain.middle[None])
        (sums,) = self.session.ask(vector_sum(Rows.of(everyone, domain), oracle=self.sums, budget=next(self.spend)))
        mean_offset, ones = sums.at(np.arange(1)) / rows, np.ones(1)
        noise = domain.dimension * (sums.standard_error(np.arange(1)) / rows) ** 2
        step = Moved(rows * ones, 0 * ones, mean_offset, noise, ones * domain.diameter / 4, rows).steps[0]
        return np.asarray(domain.truncate((domain.middle + step)[None])[0])

    def near(self, centers: Floats) -> NearestCenter:
        return nearest_within(math.inf, centers, self.problem.domain, self.session)

    def radius(self, assignment: NearestCenter, share: float) -> float:
        """Ask for the distance, in the caller's units, within which this share of the rows has a centre."""
        distances = self._together(assignment, next(self.spend))
        return distances.within(share, self.problem.rows, self.problem.domain)

    def overall(self, assignment: NearestCenter, budget: Budget | None = None) -> Reach:
        """Count all rows by their distance from their centre, with this budget or the next one."""
        domain, rows = self.problem.domain, self.problem.rows
        together = self._together(assignment, budget or next(self.spend))
        if together.errors[0] > UNSEEN * rows:
            return Reach(domain.diameter / 4, together)
        return Reach(together.within(WITHIN, rows, domain), together)

    def reach(self, assignment: NearestCenter) -> Reach:
        """Count rows by their distance from their centre: of each group, or of all if noise hides the groups'."""
        problem, budget = self.problem, next(self.spend)
        if not resolves_groups(problem, self.counts, budget):
            return self.overall(assignment, budget)
        bins = DistanceBins(assignment, 2 * problem.domain.max_norm, GROUP_BINS, grouped=True)
        counts, error = self._binned(bins, budget)
        rows = plausible_rows(float(counts.sum()), error * math.sqrt(len(counts)), problem.rows)
        groups = GroupDistances(bins, counts.reshape(-1, GROUP_BINS), error, rows)
        return Reach(groups.together.within(WITHIN, rows, problem.domain), groups.together, groups)

    def _together(self, assignment: NearestCenter, budget: Budget) -> Distances:
        bins = DistanceBins(assignment, 2 * self.problem.domain.max_norm)
        counts, error = self._binned(bins, budget)
        return Distances(bins, counts, np.full(bins.number, error))

    def _binned(self, bins: DistanceBins, budget: Budget) -> tuple[Floats, float]:
        """Return noisy counts of all bins, and their standard error."""
        (counts,) = self.session.ask(count(bins, oracle=self.counts, budget=budget))
        buckets = bins.space.sizes[0]
        return counts.at(np.arange(buckets)), count_error(self.counts, buckets, budget, self.problem)

    def stepped(
        self,
        assignment: NearestCenter,
        reach: Reach,
        k: int,
        *,
        clip: float = CLIP,
        stretch: float = STRETCH,
        known_sizes: tuple[Floats, Floats] | None = None,
    ) -> Stepped:
        """Move the first k centres by the sums of clipped offsets.

        Where noise hides distances of groups all have one radius, and steps are stretched. Counts are moved to the
        nearest ones that add up to the number of rows; a step divides by no fewer than ``least_rows``. The matrix of
        sums is denoised as a whole (``denoised``), and no step is believed farther than its noise lets
        (``linear_shrinkage``).

        Args:
            assignment: rows by their nearest centre.
            reach: distances of the rows from the centres.
            k: number of centres.
            clip: part of ``reach.radius`` that offsets are clipped to, if all have one radius.
            stretch: of steps, if all have one radius, for what clipping takes off them.
            known_sizes: rows (k,) of the groups and their standard errors (k,); None: they are counted.
        """
        domain = self.problem.domain
        per_count = None if known_sizes else next(self.spend)
        per_sum = next(self.spend)
        rows, stretch = (float(self.problem.rows), stretch) if reach.groups is None else (reach.groups.rows, 1.0)
        radii = self._radii(reach, len(assignment.centers), per_sum, clip)
        offsets = ClippedOffsets.around(assignment, radii, domain, self.session)
        how_many = () if per_count is None else (count(assignment, oracle=self.counts, budget=per_count),)
        *counts, sums = self.session.ask(*how_many, vector_sum(offsets, oracle=self.sums, budget=per_sum))
        totals, errors = (figures[:k] for figures in offsets.read(sums))
        if known_sizes is None:
            assert per_count is not None
            known_sizes = self._with_errors(counts[0].at(np.arange(k)), per_count)
        counted, count_errors = known_sizes
        divisors = np.maximum(project_to_simplex(counted, rows), self.least_rows())
        steps = stretch * linear_shrinkage(errors / divisors, domain) * denoised(totals, errors) / divisors[:, None]
        centers = domain.truncate(domain.real(assignment.centers[:k]) + steps)
        sizes = np.maximum(counted, 0.0)
        believed_sizes = np.maximum(sizes, np.maximum(count_errors, 1.0))
        cut = reach.excess(radii, sizes, np.maximum(count_errors, 1.0), rows, domain)
        stated = step_errors(
            sizes,
            counted,
            count_errors,
            centers,
            steps,
            stretch * errors / believed_sizes,
            radii[:k] if cut is None else 0.0,
            cut=0.0 if cut is None else cut,
            shortened=stretch * totals / believed_sizes[:, None] - steps,
            spread=reach.spread(rows, domain),
        )
        return Stepped(centers, sizes, stated)

    def _radii(self, reach: Reach, groups: int, per_sum: Budget, clip: float) -> Floats:
        """Return the radius (groups,) that each group's offsets are clipped to.

        It makes noise and what clipping cuts off least together (``GroupDistances.radii``). Where noise hides distances
        of groups, it is the part ``clip`` of the one radius.
        """
        if reach.groups is None:
            return np.full(groups, clip * reach.radius)
        sizes = np.maximum(reach.groups.counts.sum(axis=1), self.least_rows())
        return reach.groups.radii(self._noise(per_sum) / sizes, reach.radius, self.problem.domain)

    def _with_errors(self, counted: Floats, per_count: Budget) -> tuple[Floats, Floats]:
        """Return noisy sizes of groups, and their standard errors: of the noise, and of the rows' own reports."""
        error = count_error(self.counts, self.problem.k, per_count, self.problem)
        return counted, np.hypot(error, own_row_errors(np.maximum(counted, error), self.counts, per_count))

    def _noise(self, per_sum: Budget) -> float:
        """Return the expected length of the noise in a sum of offsets, over the radius they are clipped to."""
        domain = self.problem.domain
        context = attrs.evolve(self.problem.context(per_sum), unit=1 / SCALE)
        variance = self.sums.variance(Space((self.problem.k,)), per_sum, context, Bound(SCALE, domain.dimension))
        return math.sqrt(domain.dimension * variance) / per_sum.fraction

    def least_rows(self) -> float:
        """Return the least count that a step divides by: n / k, less where counts are well known, at least 1."""
        average, budget = self.problem.rows / self.problem.k, self.problem.budget
        error = math.sqrt(self.counts.variance(Space((self.problem.k,)), budget, self.problem.context(budget)))
        return max(1.0, min(average, WELL_KNOWN * error))

    def moved(self, vectors: ClippedOffsets) -> Moved:
        """Ask for rows per bucket, and for the means of their clipped offsets."""
        counts, sums = self.session.ask(
            count(vectors.cells, oracle=self.counts, budget=next(self.spend)),
            vector_sum(vectors, oracle=self.sums, budget=next(self.spend)),
        )
        ids = np.arange(vectors.cells.space.sizes[0])
        sizes, errors = counts.at(ids), counts.standard_error(ids)
        divisors = np.maximum(np.maximum(sizes, errors), 1e-9)
        totals, noise = vectors.read(sums)
        energy = totals.shape[1] * (noise / divisors) ** 2
        radii = np.asarray(np.broadcast_to(vectors.radii * self.problem.domain.unit, sizes.shape), np.float64)
        return Moved(sizes, errors, totals / divisors[:, None], energy, radii, self.problem.rows / self.problem.k)

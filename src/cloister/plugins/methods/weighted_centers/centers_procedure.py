"""CentersProcedure: candidate centres for clusters of one radius, from hash values that many rows share."""

from __future__ import annotations

from typing import Any, Generic, final

import attrs
import numpy as np

from cloister.core.budget import Budget
from cloister.core.domains import Domain
from cloister.core.errors import InvalidInput
from cloister.core.lattice import Bound
from cloister.core.questions import Question, add_up, count
from cloister.core.randomness import PublicRng
from cloister.core.roles import Counts, FrequencyOracle, Sums, VectorSumOracle
from cloister.core.trust import T
from cloister.core.types import Floats, Ints
from cloister.plugins.methods.weighted_centers.boxes import Intervals
from cloister.plugins.methods.weighted_centers.buckets import AxisIntervals, Centred, Created, HashValues, Regions
from cloister.plugins.methods.weighted_centers.heavy_hitters import Prefixes
from cloister.plugins.methods.weighted_centers.lsh import PStable, PStableHash

MOST_INTERVALS = 2**14
"""On an axis: step 5 looks at all of them for every heavy value. With the defaults this is a dozen radii."""

MOST_PAIRS = 2**62
"""Of a hash value and an interval: buckets have numbers of 63 bits."""


@final
@attrs.frozen
class Constants:
    """What the paper hides in O() and Omega(). Thresholds are in standard errors of the count that they judge.

    Args:
        near, far, projections: p, q and m of the hash family.
        prefixes: of a hash value; one level: all values are looked at.
        longest: of a list L.
        heavy: of step 2.
        interval: p sqrt(d) / r of step 3.
        norm: what vectors relative to a box's middle are clipped to, over r.
        close: 5 c of step 8: how far from its centre a row may be that created it, over r.
        sure: of steps 7 and 8.
    """

    near: float
    far: float
    projections: int
    prefixes: Prefixes
    longest: int
    heavy: float
    interval: float
    norm: float
    close: float
    sure: float


@final
@attrs.frozen(eq=False)
class Candidates:
    """Released centres of one procedure. Args: values (m,) hash values; points (m, d) relative to the domain's middle, and
    errors (m,), standard errors of a coordinate, in the caller's units; centers (m, d) the same on the lattice."""

    values: Ints
    points: Floats
    errors: Floats
    centers: Ints

    def __len__(self) -> int:
        return len(self.values)

    def at(self, which: Ints) -> Candidates:
        return Candidates(self.values[which], self.points[which], self.errors[which], self.centers[which])


@final
@attrs.frozen(eq=False)
class CentersProcedure(Generic[T]):
    """Steps 1 to 9, three rounds: steps 2 and 4, which need no answer, share the first.

    Guarantee: that of the oracles; five questions (hash values, intervals, sizes, sums, check), each with its budget.

    Corrections: the list L is *found*, by a search over prefixes or by looking at all values of a short hash; step 7 is
    (epsilon, delta) where Gaussian noise is used, and has its own share; vectors are relative to their box's public middle, and clipped.

    Args:
        domain: of the rows.
        radius: r, in lattice steps.
        constants: see there.
        counts, sums: oracles.
        hash, intervals: steps 1 and 3.

    Source: Stemmer 2021, appendix A.2.
    """

    domain: Domain
    radius: float
    constants: Constants
    counts: FrequencyOracle[T]
    sums: VectorSumOracle[T]
    hash: PStableHash
    intervals: Intervals

    @classmethod
    def sample(
        cls, domain: Domain, radius: float, constants: Constants, counts: FrequencyOracle[T], sums: VectorSumOracle[T],
        seed: PublicRng,
    ) -> CentersProcedure[T]:  # fmt: skip
        """Public choices: steps 1 and 3.

        Raises:
            InvalidInput: what is looked at in step 5 would not fit in memory, or in the numbers of buckets.
        """
        d, bits = domain.dimension, constants.prefixes.bits[-1]
        family = PStable(radius, constants.near, constants.far, constants.projections)
        intervals = Intervals.of(domain, constants.interval * radius / d**0.5, seed.child("intervals"))
        if intervals.number > MOST_INTERVALS or intervals.number << bits > MOST_PAIRS:
            raise InvalidInput(
                f"with {intervals.number} intervals on an axis and hash values of {bits} bits there are too many of both to be asked for: "
                "take fewer radii, a larger widest or interval, or fewer bits"
            )
        return cls(domain, radius, constants, counts, sums, family.sample(d, bits, seed.child("hash")), intervals)

    def search(self, per_hash: Budget, per_axis: Budget) -> tuple[Question[T, Any], Question[T, Any]]:
        """The questions of steps 2 and 4."""
        return (
            count(HashValues(self.hash, self.constants.prefixes), via=self.counts, spend=per_hash),
            count(AxisIntervals(self.hash, self.intervals), via=self.counts, spend=per_axis),
        )

    def enclosed(self, hashes: Counts, axes: Counts) -> Regions:
        """Steps 2, 5 and 6: heavy values, the fullest interval of each on every axis, their boxes."""
        given = self.constants
        values, _ = given.prefixes.heavy(hashes, given.longest, given.heavy)
        ids = AxisIntervals(self.hash, self.intervals).ids(values)
        full = [axes.at(ids.ravel(), axis).reshape(ids.shape).argmax(axis=1) for axis in range(self.domain.dimension)]
        chosen = np.stack(full, axis=1).astype(np.int64).reshape(len(values), self.domain.dimension)
        return Regions(self.hash, self.intervals, values, chosen, given.longest)

    def averaging(
        self, regions: Regions, per_size: Budget, per_sum: Budget
    ) -> tuple[Question[T, Any], Question[T, Any]]:
        """The questions of step 7 (LDP-AVG): how many rows are in each region, and what they add up to."""
        return (
            count(regions, via=self.counts, spend=per_size),
            add_up(Centred(regions, self._middles(regions), self.bound), via=self.sums, spend=per_sum),
        )

    @property
    def bound(self) -> Bound:
        """Of a row relative to its region's middle: public, the same for all regions."""
        most = min(self.constants.norm * self.radius, self.intervals.half_diagonal, 2.0 * self.domain.reach)
        return Bound(max(1, int(most)), self.domain.dimension)

    def _middles(self, regions: Regions) -> Ints:
        return self.intervals.middles(regions.chosen)

    def averages(self, regions: Regions, sizes: Counts, sums: Sums) -> Candidates:
        """Step 7: y_u, of the regions that are certainly not empty (claim A.2)."""
        ids = np.arange(len(regions.values))
        held = sizes.at(ids)
        ids = ids[held > self.constants.sure * sizes.standard_error(ids)]
        held = np.maximum(held[ids], 1.0)
        moved = sums.at(ids) / held[:, None]
        domain = self.domain
        found = domain.truncate(self._middles(regions)[ids] * domain.unit + moved + domain.middle)
        errors = sums.standard_error(ids) / held
        return Candidates(regions.values[ids], found - domain.middle, errors, domain.snap(found))

    def checking(self, candidates: Candidates, spend: Budget) -> Question[T, Any]:
        """The question of step 8."""
        return count(self.created(candidates), via=self.counts, spend=spend)

    def created(self, candidates: Candidates) -> Created:
        """Which centre a row creates (notation 4.1)."""
        within = min(int(self.constants.close * self.radius), 2 * self.domain.reach)
        return Created(self.hash, candidates.values, candidates.centers, within, self.constants.longest)

    def kept(self, candidates: Candidates, counts: Counts) -> Candidates:
        """Steps 8 and 9: centres that certainly some rows created."""
        ids = np.arange(len(candidates))
        return candidates.at(ids[counts.at(ids) > self.constants.sure * counts.standard_error(ids)])

"""LDP-AVG: every person sends a Gaussian vector for every region, and adds her own to that of the region she is in.

Guarantee (Local; replace one row, or have none): a person's report is (eps, delta)-DP at the budget's eps and delta.
She sends noise in the block of every region, plus her vector v, |v| <= l2, in that of her own. If her row is replaced,
her report's mean moves by |v - v'| <= 2 l2 within one region, by sqrt(|v|^2 + |v'|^2) <= sqrt(2) l2 between two, by l2
if one of the rows is in none: jointly over all blocks by at most 2 l2. So noise of sigma = 2 l2 / mu is mu-GDP, and
(eps, delta)-DP with the largest mu of the exact relation (Balle and Wang 2018), less the cost of discreteness
(``accounting.composition``). Vectors are integers, scaled so that sigma is 2^22 to 2^23, noise is discrete Gaussian,
and her two rows differ in at most 2 d integers per level. If L levels share her budget, these are 2 sqrt(L) l2 and
2 d L; if they share the users she answers one level.

The bound is on what is *sent*: ask about rows relative to a public point of each region
(``methods.weighted_centers.buckets.Centred``), clipped to it, and add the point back. For a bound that differs by
region, the asker scales the vectors.

Composition: the release counts as pure with a delta that may fail, not as Gaussian. A person answers one question, or
few, and most are pure randomised response with all of her epsilon. mu^2 and epsilon compose by zCDP only, under which a
pure eps = 4 becomes eps = 0.7 at delta = 1e-6. Basic composition adds epsilons and deltas, without loss for a person
who answers one question.

Corrections to the paper: (1) Sigma is calibrated to the change of what is sent. The paper takes diam(R_t) but adds x
itself: uncentred, a norm of a hundred diameters turns eps = 0.5 into 8.9. (2) The joint bound is 2 l2, not sqrt(2) l2,
with which eps = 0.5, 1, 2 would be 0.73, 1.46, 2.93. (3) Calibration is analytic: the classical one is proved for
eps <= 1.

Range: a number is clipped at 8 sigma beyond the bound, then the N numbers of a level are shrunk to a length of
sigma sqrt(N + 2 sqrt(32 N) + 64) beyond it. That is post-processing on the person's device. The decoder refuses what is
farther out, so that a malicious user moves all sums of a level by one or two sigma each (and the bound), or one sum by
8. Noise is sub-Gaussian: clipping happens with probability 2 e^-32 per number, shrinking with e^-32 per report (Hsu,
Kakade, Zhang 2012), and both together move the mean of a report by less than 1e-14 sigma per number.

Cost: T d numbers of 4 bytes per person for T regions, and at (1, 1e-6) eleven times the variance of
``hadamard-vector``, which sends one byte.

Source: Stemmer 2021, appendix A.1 (LDP-AVG); Balle, Wang 2018.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, final

import attrs
import numpy as np

from cloister.accounting import eta, mu_of
from cloister.accounting.discrete import BEYOND
from cloister.core.reproducible_math import ceil_log2, exp, fewer_bits
from cloister.plugin import (
    AnyArray,
    Bound,
    BucketedVectors,
    Budget,
    BundleArrays,
    Event,
    Floats,
    Gain,
    Ids,
    Ints,
    InvalidInput,
    Local,
    LookupTable,
    Measure,
    NoiseRng,
    QuestionContext,
    ReportFacts,
    Space,
    component,
    shrink,
)
from cloister.plugins.oracles.local.question import LocalQuestion, WithoutReportLaws
from cloister.plugins.oracles.local.reports import Reports, Share, Sharing, Tallies, share_option

NAME = "ldp-average"
MIN_SIGMA = 2**22
"""Smallest sigma, in sent integers; it is below twice that, so that 2^31 is more than 250 sigma away."""

LARGE = 40.0
"""Largest epsilon used."""

MAX_NUMBERS = 2**20
"""Limit of numbers in one report."""

OUT = 8
"""Standard deviations beyond which noise is clipped."""

SELDOM = OUT**2 / 2
"""Minus the logarithm of a bound on the probability that noise is shrunk: 32."""

BLOCK = 2**20
"""Numbers that are drawn at once."""


@component
class LdpAverage:
    """Vector sums from a Gaussian vector for every bucket, as in the paper: for few buckets."""

    share: Share = share_option()

    trust = Local
    measure: ClassVar[Measure] = "pure"
    uses_delta = True

    def open(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> LdpAverageChannel:
        if not budget.delta > 0:
            raise InvalidInput(
                f"'{NAME}' spends delta, and its budget has none: pass delta (less than one over the number of rows), "
                f"or use 'hadamard-vector', which is pure"
            )
        if sum(space.sizes) * bound.dimension > MAX_NUMBERS:
            raise InvalidInput(
                f"'{NAME}' sends at most {MAX_NUMBERS} numbers, not {bound.dimension} for each of {sum(space.sizes)} "
                f"buckets: use 'hadamard-vector'"
            )
        sharing = Sharing(self.share, space.levels, context.seed.child("sharing"))
        mu = mu_within(min(budget.epsilon, LARGE), budget.delta, 2 * bound.dimension * sharing.parts)
        change = 2 * math.sqrt(sharing.parts) * bound.l2
        shift = ceil_log2(MIN_SIGMA * mu / change)
        return LdpAverageChannel(
            budget, context.rows, space.sizes, bound, context.unit, sharing, shift, change * 2.0**shift / mu
        )

    def variance(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> float:
        return self.open(space, budget, context, bound).error(0) ** 2


@lru_cache(64)
def mu_within(epsilon: float, delta: float, touched: int) -> float:
    """Return a mu at which discrete noise of sigma >= ``MIN_SIGMA`` on ``touched`` integers is (epsilon, delta)-DP.

    Discreteness costs 2 drift of epsilon, and a factor e^drift and (1 + e^epsilon) tail of delta
    (``accounting.composition``): about 1e-10.

    Raises:
        InvalidInput: that is more than epsilon or delta.
    """
    drift, tail = touched * eta(MIN_SIGMA), touched * BEYOND
    usable = epsilon - 2 * drift, (delta - (1 + exp(epsilon)) * tail) * exp(-drift)
    if not (usable[0] > 0 and usable[1] > 0):
        raise InvalidInput(
            f"epsilon {epsilon:g} with delta {delta:g} is out of range for '{NAME}': its noise needs a larger epsilon "
            f"or delta"
        )
    return fewer_bits(mu_of(*usable) * (1 - 2.0**-40))


@final
@attrs.frozen
class SentNumbers(WithoutReportLaws):
    """Range of the numbers that one person sends for a level.

    Args:
        width: N.
        farthest: limit of a number's absolute value.
        longest: limit of their norm.
    """

    width: int
    farthest: int
    longest: float

    dtype = "u4"

    def within(self, sums: Ints) -> Ints:
        """Return each person's numbers (n, N), clipped and shrunk into the range."""
        clipped, longest = np.clip(sums, -self.farthest, self.farthest), self.longest
        # where floats may be wrong about which are too long, integers decide: the same in any language
        for i in np.flatnonzero(_norms(clipped) > longest * (1 - 2.0**-20)).tolist():
            squares = sum(x * x for x in clipped[i].tolist())
            if squares > Fraction(longest) ** 2:
                scale = longest * (1 - 2.0**-40) / math.sqrt(squares)
                clipped[i] = np.trunc(clipped[i] * scale).astype(np.int64)
        return clipped

    def possible(self, answers: AnyArray) -> bool:
        sums = _signed(answers)
        in_range = (np.abs(sums) <= self.farthest).all()
        return bool(in_range and (_norms(sums) <= self.longest * (1 + 2.0**-40)).all())


@final
@attrs.frozen
class LdpAverageChannel(LocalQuestion[BucketedVectors], ReportFacts):
    """Opened question, both halves.

    Args:
        budget, rows, sharing: see ``LocalQuestion``.
        sizes: buckets per level.
        bound: of a vector, in lattice steps.
        unit: of the lattice.
        shift: vectors are multiplied by 2^shift (and truncated towards zero, if that is negative).
        sigma: of the noise, in sent integers.
    """

    budget: Budget
    rows: int
    sizes: tuple[int, ...]
    bound: Bound
    unit: float
    sharing: Sharing
    shift: int
    sigma: float

    mechanism = NAME

    @property
    def events(self) -> tuple[Event, ...]:
        """One event: a user's report, (eps, delta)-DP as a whole."""
        return (Event(NAME, self.budget, delta=self.budget.delta),)

    @property
    def randomisers(self) -> tuple[SentNumbers, ...]:
        return tuple(self.sent(size * self.bound.dimension) for size in self.sizes)

    def batch_size(self, level: int) -> int:
        return max(1, BLOCK // self.width)

    def error(self, level: int) -> float:
        """Return the standard deviation of a coordinate of a sum, in the caller's units."""
        return math.sqrt(self.rows * self.sharing.factor) * self.sigma * self.value

    @property
    def value(self) -> float:
        """Value of one sent integer, in the caller's units."""
        return self.unit * 2.0**-self.shift

    @property
    def reach(self) -> float:
        """L2 bound in sent integers."""
        return self.bound.l2 * 2.0**self.shift

    def sent(self, numbers: int) -> SentNumbers:
        """Return the range of a level with so many numbers."""
        longest = self.sigma * math.sqrt(numbers + 2 * math.sqrt(SELDOM * numbers) + 2 * SELDOM) + self.reach
        return SentNumbers(numbers, math.ceil(OUT * self.sigma + self.reach), longest)

    def bundled_level(self, level: int, arrays: BundleArrays) -> dict[str, Any]:
        longest = self.randomisers[level].longest
        return {"size": self.sizes[level], "longest": longest, "most": str(math.floor(Fraction(longest) ** 2))}

    def bundled(self, arrays: BundleArrays) -> dict[str, Any]:
        noise = {"shift": self.shift, "sigma": self.sigma, "farthest": self.randomisers[0].farthest}
        return {"kind": "gaussian-vectors", **self.bound.bundled, **noise, **self.bundled_form(arrays)}

    @property
    def gains(self) -> tuple[Gain, ...]:
        """Gain of each level: a bucket's d numbers are at most as long as a level's, and as sqrt(d) of the farthest."""
        d = self.bound.dimension
        lengths = [min(at.longest * (1 + 2.0**-40), math.sqrt(d) * at.farthest) / self.reach for at in self.randomisers]
        return tuple(
            Gain(length, length, length, 1, self.bound.l2 * self.unit, self.sharing.factor) for length in lengths
        )

    def answer(self, items: BucketedVectors, positions: Ints, users: Ids, level: int, secret: NoiseRng) -> AnyArray:
        noise = secret.discrete_gaussian_per_user(users, self.sigma, self.widths[level])
        vectors = shrink(items.values[positions], self.bound) * 2.0**self.shift
        _place(noise, items.buckets[positions, level], np.trunc(vectors).astype(np.int64))
        return self.randomisers[level].within(noise).astype(np.uint32)

    def tally(self, users: Ids, answers: AnyArray, level: int) -> Ints:
        return np.asarray(_signed(answers).sum(axis=0, dtype=np.int64))

    def absorb(self, report: Reports) -> Tallies:
        return self.tallied(report, self.tally)

    def reported(self, summary: Tallies) -> tuple[int, ...]:
        return summary.reports

    def answered(self, summary: Tallies) -> tuple[int, ...]:
        return self.sharing.answered(summary.reports)

    def decode(self, summary: Tallies, rng: NoiseRng) -> LookupTable:
        worth = self.value * self.sharing.factor
        sums = [total.reshape(-1, self.bound.dimension) * worth for total in summary.totals]
        return self.table(summary.reports, lambda ids, level: sums[level][ids])


def _place(noise: Ints, ids: Ints, vectors: Ints) -> None:
    """Add each person's vector (n, d) to her bucket's block of her noise (n, T d)."""
    inside = np.flatnonzero(ids >= 0)
    d = vectors.shape[1]
    noise.reshape(len(noise), -1, d)[inside, ids[inside]] += vectors[inside]


def _norms(sums: Ints) -> Floats:
    """Return the lengths of rows (n, N), to 2^-42."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", sums.astype(np.float64), sums.astype(np.float64))))


def _signed(answers: AnyArray) -> Ints:
    """Return the integers of smallest absolute value that equal these modulo 2^32."""
    return np.ascontiguousarray(answers).view(np.int32).astype(np.int64)

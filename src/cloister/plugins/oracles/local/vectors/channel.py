"""Vector sums under local trust, by any randomiser of one vector: the users' half of a question, and the server's.

The server decodes all buckets at once by one transform, or looks them up one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal, TypeAlias, final

import attrs
import numpy as np

from cloister.plugin import (
    AnyArray,
    Bound,
    BucketedVectors,
    Budget,
    BundleArrays,
    Floats,
    Gain,
    Ids,
    Ints,
    LookupTable,
    NoiseRng,
    PublicRng,
    QuestionContext,
    Space,
    hex_key,
    option,
)
from cloister.plugins.oracles.local.coins import odds
from cloister.plugins.oracles.local.fast import run_kernel
from cloister.plugins.oracles.local.hadamard_transform import parity, transform
from cloister.plugins.oracles.local.question import Keeping, LocalQuestion, Tallying
from cloister.plugins.oracles.local.reports import Kept, Share, Sharing, Tallies
from cloister.plugins.oracles.local.vectors.codebook import Codebook
from cloister.plugins.oracles.local.vectors.duchi import Duchi
from cloister.plugins.oracles.local.vectors.privunit import PrivUnit
from cloister.plugins.oracles.local.vectors.unit_randomiser import DrawWords, Unit, lifted


def word_source(secret: NoiseRng, size: int) -> DrawWords:
    """Return a source of ``size`` fresh secret words per user and attempt."""
    return lambda users, attempt: (secret.child("go", attempt) if attempt else secret).words(users, size)


def fixed_words(drawn: Ids) -> DrawWords:
    """Return a source of words (n, size) that are drawn already, for a randomiser with one attempt."""
    return lambda users, attempt: drawn


@final
@attrs.frozen
class VectorAnswers(LocalQuestion[BucketedVectors]):
    """Users' half of a vector-sum question: one randomised unit vector per user and level that she answers.

    The sign of bucket v for a user is s(v) = (-1)^|J & v| with her public 64-bit word J. Over J, s(v) s(b) has mean
    [v = b], so that the mean of sum_i s_i(v) z_i is the sum of v's rows. Public coins and the bucket fix the sign: it
    costs no privacy.

    Args:
        mechanism, budget, rows, sharing: see ``LocalQuestion``.
        sizes: buckets per level.
        dimension: d.
        l2: norm bound of a vector, in lattice steps.
        unit: of the lattice.
        randomiser: of one unit vector.
        seeds: public, one per level.
    """

    mechanism: str
    budget: Budget
    rows: int
    sizes: tuple[int, ...]
    dimension: int
    l2: int
    unit: float
    sharing: Sharing
    randomiser: Unit
    seeds: tuple[PublicRng, ...]

    @property
    def value(self) -> float:
        """Value of one unit of the randomiser's estimates in a sum, in the caller's units."""
        return self.randomiser.scale * self.sharing.factor * self.l2 * self.unit

    @property
    def gains(self) -> tuple[Gain, ...]:
        """Gain of each level: a report adds s(v) z to every bucket v, with a sign of the sender's choice for one."""
        most, usual = self.randomiser.longest, self.randomiser.usual
        return (Gain(most, most, usual, 1, self.l2 * self.unit, self.sharing.factor),) * len(self.sizes)

    @property
    def variance(self) -> float:
        """Variance of a sum's coordinate, in squared units, from the rows of other buckets, at n users.

        A user who answers adds the mean square ``moment`` (over coordinates) to every bucket but her own, where it is
        less by the square of her vector's coordinate. If T levels share the users, n / T answer each and count T-fold;
        that adds (T - 1) sum x^2 over the bucket's own rows, which this figure leaves out.
        """
        return self.rows * self.sharing.factor * self.randomiser.moment * (self.l2 * self.unit) ** 2

    @property
    def randomisers(self) -> tuple[Unit, ...]:
        return (self.randomiser,) * len(self.sizes)

    def bundled_level(self, level: int, arrays: BundleArrays) -> dict[str, Any]:
        seed = self.seeds[level]
        keys = {"bucket": hex_key(seed.child("bucket")), "nobody": hex_key(seed.child("nobody"))}
        return {**keys, **self.randomiser.bundled(seed, arrays)}

    def bundled(self, arrays: BundleArrays) -> dict[str, Any]:
        return {"kind": "vectors", "l2": self.l2, "dimension": self.dimension, **self.bundled_form(arrays)}

    def batch_size(self, level: int) -> int:
        # not a power of two: columns a power of two apart compete for the same cache lines
        return max(256, 2**18 // self.dimension) - 16

    def error(self, level: int) -> float:
        return math.sqrt(self.variance)

    def answer(self, items: BucketedVectors, positions: Ints, users: Ids, level: int, secret: NoiseRng) -> AnyArray:
        ids, seed = items.buckets[positions, level], self.seeds[level]
        words = word_source(secret, self.randomiser.secret_words)
        nowhere, signs = ids < 0, self.signs(ids, users, level)
        if isinstance(self.randomiser, Codebook):
            rows = np.where(nowhere, -1, positions)
            drawn = words(users, 0)
            made = self.randomiser.randomise_by_kernel(items.values, rows, signs, self.l2, users, drawn, seed)
            if made is not None:
                return made
            words = fixed_words(drawn)
        return self.randomiser.randomise(lifted(items.values[positions], signs, self.l2, nowhere), users, words, seed)

    def words(self, users: Ids, level: int) -> Ids:
        """Return each user's public word J (n,)."""
        return self.seeds[level].child("bucket").of_users(users)

    def signs(self, ids: Ints, users: Ids, level: int) -> Floats:
        """Return the sign (n,) of each user's bucket (n,), or, for -1, of a public coin that belongs to no bucket."""
        nobody = self.seeds[level].child("nobody").of_users(users) >> np.uint64(63)
        minus = np.where(ids < 0, nobody, parity(self.words(users, level) & ids.astype(np.uint64)))
        return 1.0 - 2.0 * minus

    def estimates(self, users: Ids, answers: AnyArray, level: int) -> Ints:
        """Return the estimates, integers (n, d), of answers (n, width), without the sign of a bucket."""
        return self.randomiser.estimates(answers, users, self.seeds[level])


LOOKED = 2**8
"""Buckets per pass over kept reports."""


@final
@attrs.frozen
class HadamardVectorChannel(Tallying[VectorAnswers]):
    """Channel that adds up estimates per row of a Hadamard matrix, then transforms: cost n d + K log K d for K buckets.

    K is the number of buckets rounded up to a power of two. Only the lowest log2 K bits of a user's word J matter. So
    W_J = sum of z_i over the users with that J in these bits, and S_v = sum_J (-1)^|J & v| W_J: exact integers, (K, d)
    a level whatever n is. At most 2^31 users times D^2 <= 2^24 per number stay below 2^63.
    """

    def tally(self, users: Ids, answers: AnyArray, level: int) -> Ints:
        """Return W (K, d), flat."""
        rows = next_power_of_two(self.asked.sizes[level])
        cells = self.asked.words(users, level) & np.uint64(rows - 1)
        # by J, so that a block of users adds to few rows; sorting is linear if 16 bits are enough
        order = np.argsort(cells.astype(np.min_scalar_type(rows - 1)), kind="stable")
        totals = np.zeros((rows, self.asked.dimension), np.int64)
        for block in self.asked.blocks(order, level):
            estimates, of_some = (
                self.asked.estimates(users[block], answers[block], level),
                cells[block].astype(np.int64),
            )
            if not run_kernel("add", len(block), estimates, of_some, totals):
                first = np.flatnonzero(np.diff(of_some, prepend=-1))
                totals[of_some[first]] += np.add.reduceat(estimates, first, axis=0)
        return totals.ravel()

    def decode(self, summary: Tallies, rng: NoiseRng) -> LookupTable:
        sums = [transform(total.reshape(-1, self.asked.dimension)) for total in summary.totals]
        return self.asked.table(summary.reports, lambda ids, level: sums[level][ids] * self.asked.value)


@final
@attrs.frozen
class ExplicitVectorChannel(Keeping[VectorAnswers]):
    """Channel that keeps reports and scans them for each bucket looked up: cost n d per bucket, ids of any size.

    Chang et al. 2021, Algorithms 7 and 8: Z_(v, i) is s_i(v) with all 64 bits of the word J. For ids below 2^63 the
    signs of one user are pairwise independent over buckets, those of two users independent: all that Lemma 28 needs.
    """

    def decode(self, summary: Kept, rng: NoiseRng) -> LookupTable:
        parts = self.parts(summary)
        reports = [len(users) for users, _ in parts]
        return self.asked.table(reports, lambda ids, level: self._total(ids, *parts[level], level) * self.asked.value)

    def _total(self, ids: Ints, users: Ids, answers: AnyArray, level: int) -> Ints:
        """Return the sums (m, d) of buckets (m,). Products of a block are below 2^53: exact in any order."""
        out = np.zeros((len(ids), self.asked.dimension), np.int64)
        for block in self.asked.blocks(np.arange(len(users) if len(ids) else 0), level):
            estimates = self.asked.estimates(users[block], answers[block], level).astype(np.float64)
            words = self.asked.words(users[block], level)
            for start in range(0, len(ids), LOOKED):
                looked_at = ids[start : start + LOOKED].astype(np.uint64)
                signs = 1.0 - 2.0 * parity(looked_at[:, None] & words)
                out[start : start + LOOKED] += (signs @ estimates).astype(np.int64)
        return out


def next_power_of_two(size: int) -> int:
    """Round up to a power of two."""
    return 1 << (size - 1).bit_length()


Randomised: TypeAlias = Literal["one-byte", "privunit", "duchi"]


RANDOMISERS: dict[Randomised, Callable[[Fraction, int], Unit]] = {
    "one-byte": Codebook.within,
    "privunit": PrivUnit.within,
    "duchi": Duchi.within,
}


def randomiser_option(default: Randomised) -> Any:
    """Return the option ``randomiser`` of a local vector-sum oracle."""
    return option(
        default=default,
        help="of one vector: one-byte (a codeword), privunit (least variance, slow above epsilon 4) or duchi (the "
        "paper's); the last two send 2 bytes per coordinate",
        choices=tuple(RANDOMISERS),
    )


def answers(
    mechanism: str,
    randomiser: Randomised,
    share: Share,
    space: Space,
    budget: Budget,
    context: QuestionContext,
    bound: Bound,
) -> VectorAnswers:
    """Return the users' half of a question."""
    sharing = Sharing(share, space.levels, context.seed.child("sharing"))
    unit = RANDOMISERS[randomiser](odds(budget, sharing.parts), bound.dimension)
    seeds = tuple(context.seed.child("level", number) for number in range(space.levels))
    return VectorAnswers(
        mechanism, budget, context.rows, space.sizes, bound.dimension, bound.l2, context.unit, sharing, unit, seeds
    )

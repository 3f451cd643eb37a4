"""Oracles that lose rows, merge wrongly, absorb anything or give tables away; and Local ones that give rows away.

All of them claim the guarantee of the honest ones (Central; add-or-remove one row, or Local; replace one row).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import attrs
import numpy as np

from cloister.core.buckets import BucketedVectors, QuestionContext, Space
from cloister.core.budget import Budget
from cloister.core.lattice import Bound
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.types import Floats, Ids, Ints
from cloister.plugins.oracles.local.counts.local_hashing import ExplicitHistogram
from cloister.plugins.oracles.local.counts.subset_selection import Subset, SubsetSelection
from cloister.plugins.oracles.local.hashing import Hashed
from cloister.plugins.oracles.local.vectors.channel import ExplicitVectorChannel
from cloister.plugins.oracles.local.vectors.ldp_average import LdpAverage, LdpAverageChannel
from cloister.plugins.oracles.local.vectors.vector_sums import ExplicitHistogramVector
from tests.testing.honest import (
    Bits,
    Channel,
    HonestCounts,
    HonestSums,
    Noised,
    Totals,
    UnaryChannel,
    UnaryCounts,
)


class _Centred(Channel):
    """Sums relative to the batch's own mean, which is added back."""

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Totals:
        middle = items.values.mean(axis=0).astype(np.int64) if len(items.values) else np.zeros(self.width, np.int64)
        return super().encode(BucketedVectors(items.buckets, items.values - middle), users, rng)


class CentredOnTheBatch(HonestSums):
    """Centring read off the data."""

    channel = _Centred


class _Dropping(Channel):
    """Every tenth user is left out."""

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Totals:
        kept = users % 10 != 0
        return super().encode(items[kept], users[kept], rng)


class DropsUsers(HonestCounts):
    channel = _Dropping


class _FirstLevel(Channel):
    """Leaves a row out of all levels if it is in no bucket of the first."""

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Totals:
        return super().encode(items[items[:, 0] >= 0], users, rng)


class DropsRowsThatSkipALevel(HonestCounts):
    channel = _FirstLevel


@attrs.frozen(eq=False)
class _InPlace(Totals):
    def merge(self, other: Totals) -> Totals:
        self.vector[...] += other.vector
        return self


class _MergingInPlace(Channel):
    def encode(self, items: Ints | BucketedVectors, users: Ids, rng: NoiseRng) -> Totals:
        return _InPlace(super().encode(items, users, rng).vector)


class MergesInPlace(HonestCounts):
    """A merge that changes its input."""

    channel = _MergingInPlace


class _Decaying(Channel):
    """Decoding adds the noise to the summary itself."""

    def decode(self, summary: Totals, rng: NoiseRng) -> Any:
        table = super().decode(summary, rng)
        summary.vector[...] += 1
        return table


class DecodesInPlace(HonestCounts):
    channel = _Decaying


class _Anything(Channel):
    def absorb(self, report: Totals) -> Totals:
        return report


class AbsorbsAnything(HonestCounts):
    channel = _Anything


class _NoEmpty(Channel):
    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Totals:
        items.max()
        return super().encode(items, users, rng)


class FailsOnNoRows(HonestCounts):
    channel = _NoEmpty


class _Blinking(Noised):
    """Adds a little more noise at every look."""

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return super().at(ids, level) + np.arange(len(ids))


class _BlinkingChannel(Channel):
    def table(self, values: Floats, starts: Ints) -> Any:
        return _Blinking(values, self.bound is None, starts, self.errors)


class AnswersAnew(HonestCounts):
    channel = _BlinkingChannel


class _Flat(Noised):
    """Knows one level."""

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return super().at(ids, (0,)[level])


class _FlatChannel(Channel):
    def table(self, values: Floats, starts: Ints) -> Any:
        return _Flat(values, self.bound is None, starts, self.errors)


class FirstLevelOnly(HonestCounts):
    channel = _FlatChannel


class _Doubling(Channel):
    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Totals:
        return super().encode(BucketedVectors(items.buckets, items.values * 2), users, rng)


class DoublesVectors(HonestSums):
    """Adds every vector twice, after it was clipped."""

    channel = _Doubling


@attrs.frozen
class _Printing:
    """A table that is plain data: it pickles and prints."""

    values: Floats
    starts: Ints
    errors: tuple[float, ...]

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return np.asarray(self.values[self.starts[level] + ids, 0])

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), self.errors[level])


class _PrintingChannel(Channel):
    def table(self, values: Floats, starts: Ints) -> Any:
        return _Printing(values, starts, self.errors)


class TablesTravel(HonestCounts):
    channel = _PrintingChannel


class _Reading(Noised):
    """Refuses to pickle, but prints."""

    def __repr__(self) -> str:
        return f"table({self._values[:3]})"


class _ReadingChannel(Channel):
    def table(self, values: Floats, starts: Ints) -> Any:
        return _Reading(values, self.bound is None, starts, self.errors)


class TablesPrint(HonestCounts):
    channel = _ReadingChannel


class LouderReports(UnaryCounts):
    """Reports say 1.2 times epsilon."""

    def per_bit(self, space: Space, budget: Budget) -> float:
        return 1.2 * super().per_bit(space, budget)


def _told(odds: Fraction, chance: Fraction) -> Fraction:
    """The odds of a coin that falls on its true side with this chance besides."""
    true = odds / (1 + odds)
    true += chance * (1 - true)
    return true / (1 - true)


class SignsSeldomDrawn(ExplicitHistogram):
    """A sign that would lie is true all the same, in 2.5% of the draws."""

    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Hashed:
        return super().level(size, _told(odds, Fraction(25, 1000)), seed)


class VectorsSeldomTurned(ExplicitHistogramVector):
    """A vector on the wrong side is turned all the same, in 7% of the draws."""

    turned: ClassVar[Fraction] = Fraction(7, 100)
    fewest: ClassVar[int] = 1

    def open(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> ExplicitVectorChannel:
        made = super().open(space, budget, context, bound)
        coin = made.asked.randomiser.coin
        other = attrs.evolve(made.asked.randomiser, coin=coin + int((2**64 - coin) * self.turned))
        return (
            made
            if bound.dimension < self.fewest
            else attrs.evolve(made, asked=attrs.evolve(made.asked, randomiser=other))
        )


class LongVectorsSeldomTurned(VectorsSeldomTurned):
    """In 2.5% of the draws, where there are many columns."""

    turned, fewest = Fraction(25, 1000), 8


class SetsSeldomRight(SubsetSelection):
    """A set is sure to hold the bucket in 2.5% of the draws besides, where there are many buckets."""

    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Subset:
        made = super().level(size, odds, seed)
        return attrs.evolve(made, keep=made.keep + (2**64 - made.keep) // 40) if size > 8 else made


class QuietVectors(LdpAverage):
    """Gaussian reports, negative numbers among them, whose noise is too small by 1.7."""

    def open(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> LdpAverageChannel:
        made = super().open(space, budget, context, bound)
        return attrs.evolve(made, sigma=made.sigma / 1.7)


class BoastfulReports(UnaryCounts):
    """Its standard errors are too small by 1.2."""

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> UnaryChannel:
        return attrs.evolve(super().open(space, budget, context), rows=round(context.rows / 1.44))


class _Forgetful(Bits):
    """Travels without the last bit."""

    def columns(self) -> dict[str, Any]:
        return {"users": self.users, "bits": self.bits * (np.arange(self.bits.shape[1]) > 0).astype(np.uint8)}


class _ForgetfulChannel(UnaryChannel):
    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Bits:
        sent = super().encode(items, users, rng)
        return _Forgetful(sent.users, sent.bits)


class LosesBitsOnTheWay(UnaryCounts):
    def open(self, space: Space, budget: Budget, context: QuestionContext) -> UnaryChannel:
        return _ForgetfulChannel(space, budget, context.rows, self.per_bit(space, budget))


class _SilentUsers(UnaryChannel):
    """Users in no bucket send zeros."""

    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Bits:
        sent = super().encode(items, users, rng)
        return Bits(users, sent.bits * (items >= 0).any(axis=1)[:, None].astype(np.uint8))


class SilentUsers(UnaryCounts):
    def open(self, space: Space, budget: Budget, context: QuestionContext) -> UnaryChannel:
        return _SilentUsers(space, budget, context.rows, self.per_bit(space, budget))


class _InRowOrder(UnaryChannel):
    """Draws belong to a row's position in its chunk."""

    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Bits:
        return super().encode(items, np.arange(len(users), dtype=np.uint64), rng)


class DrawsInRowOrder(UnaryCounts):
    def open(self, space: Space, budget: Budget, context: QuestionContext) -> UnaryChannel:
        return _InRowOrder(space, budget, context.rows, self.per_bit(space, budget))

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
from tests.testing.caught import caught_by, opened_by
from tests.testing.honest import Channel, HonestCounts, HonestSums, Noised, Reports, Totals, UnaryChannel, UnaryCounts


@opened_by(
    HonestSums,
    "rows_count_the_same_in_any_chunk_and_order",
    "rows_count_the_same_in_any_chunk_and_order_in_a_large_space",
)
class CentredOnTheBatch(Channel):
    """Sums relative to the batch's own mean, which is added back: centring read off the data."""

    def taken(self, items: Any) -> Any:
        middle = items.values.mean(axis=0).astype(np.int64) if len(items.values) else 0
        return BucketedVectors(items.buckets, items.values - middle)


@opened_by(HonestCounts, "bias_is_as_declared", "bias_is_as_declared_in_a_large_space")
class DropsUsers(Channel):
    """Every tenth user is left out."""

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Totals:
        kept = users % 10 != 0
        return super().encode(items[kept], users[kept], rng)


@opened_by(HonestCounts, "bias_is_as_declared")
class DropsRowsThatSkipALevel(Channel):
    """Leaves a row out of all levels if it is in no bucket of the first."""

    def taken(self, items: Any) -> Any:
        return items[items[:, 0] >= 0]


@attrs.frozen(eq=False)
class _InPlace(Totals):
    def merge(self, other: Totals) -> Totals:
        self.vector[...] += other.vector
        return self


@opened_by(
    HonestCounts,
    "merging_is_associative_and_commutative",
    "merging_is_associative_and_commutative_in_a_large_space",
)
class MergesInPlace(Channel):
    """A merge that changes its input."""

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Totals:
        return _InPlace(super().encode(items, users, rng).vector)


@opened_by(HonestCounts, "merging_is_associative_and_commutative")
class DecodesInPlace(Channel):
    """Decoding adds the noise to the summary itself."""

    def noised(self, summary: Totals, rng: NoiseRng) -> Floats:
        values = super().noised(summary, rng)
        summary.vector[...] += 1
        return values


@opened_by(
    HonestCounts, "absorb_refuses_what_no_encoder_sends", "absorb_refuses_what_no_encoder_sends_in_a_large_space"
)
class AbsorbsAnything(Channel):
    def absorb(self, report: Totals) -> Totals:
        return report


@opened_by(HonestCounts, "no_rows_are_valid_rows", "no_rows_are_valid_rows_in_a_large_space")
class FailsOnNoRows(Channel):
    def taken(self, items: Any) -> Any:
        items.max()
        return items


class _Blinking(Noised):
    """Adds a little more noise at every look."""

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return super().at(ids, level) + np.arange(len(ids))


@opened_by(HonestCounts, "a_bucket_always_answers_the_same", "a_bucket_always_answers_the_same_in_a_large_space")
class AnswersAnew(Channel):
    tables = _Blinking


class _Flat(Noised):
    """Knows one level."""

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return super().at(ids, (0,)[level])


@opened_by(HonestCounts, "sessions_answer_real_ids_only")
class FirstLevelOnly(Channel):
    tables = _Flat


@opened_by(HonestSums, "a_vector_beyond_the_bound_is_clipped")
class DoublesVectors(Channel):
    """Adds every vector twice, after it was clipped."""

    def taken(self, items: Any) -> Any:
        return BucketedVectors(items.buckets, items.values * 2)


class _Travelling(Noised):
    __reduce__ = object.__reduce__


@opened_by(HonestCounts, "tables_neither_pickle_nor_print", "tables_neither_pickle_nor_print_in_a_large_space")
class TablesTravel(Channel):
    tables = _Travelling


class _Reading(Noised):
    """Refuses to pickle, but prints."""

    def __repr__(self) -> str:
        return f"table({self._values[:3]})"


@opened_by(HonestCounts, "tables_neither_pickle_nor_print")
class TablesPrint(Channel):
    tables = _Reading


@opened_by(UnaryCounts, "one_report_hides_its_row")
class LouderReports(UnaryChannel):
    """Reports say 1.2 times epsilon."""

    @property
    def per_bit(self) -> float:
        return 1.2 * super().per_bit


def _told(odds: Fraction, chance: Fraction) -> Fraction:
    """The odds of a coin that falls on its true side with this chance besides."""
    true = odds / (1 + odds)
    true += chance * (1 - true)
    return true / (1 - true)


@caught_by("a_coin_seldom_wrong_is_found")
class SignsSeldomDrawn(ExplicitHistogram):
    """A sign that would lie is true all the same, in 2.5% of the draws."""

    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Hashed:
        return super().level(size, _told(odds, Fraction(25, 1000)), seed)


@caught_by("a_coin_seldom_wrong_is_found")
class VectorsSeldomTurned(ExplicitHistogramVector):
    """A vector on the wrong side is turned all the same, in 7% of the draws."""

    turned: ClassVar[Fraction] = Fraction(7, 100)
    fewest: ClassVar[int] = 1

    def open(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> ExplicitVectorChannel:
        made = super().open(space, budget, context, bound)
        if bound.dimension < self.fewest:
            return made
        coin = made.asked.randomiser.coin
        other = attrs.evolve(made.asked.randomiser, coin=coin + int((2**64 - coin) * self.turned))
        return attrs.evolve(made, asked=attrs.evolve(made.asked, randomiser=other))


@caught_by("a_coin_seldom_wrong_is_found")
class LongVectorsSeldomTurned(VectorsSeldomTurned):
    """In 2.5% of the draws, where there are many columns."""

    turned, fewest = Fraction(25, 1000), 8


@caught_by("a_coin_seldom_wrong_is_found")
class SetsSeldomRight(SubsetSelection):
    """A set is sure to hold the bucket in 2.5% of the draws besides, where there are many buckets."""

    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Subset:
        made = super().level(size, odds, seed)
        return attrs.evolve(made, keep=made.keep + (2**64 - made.keep) // 40) if size > 8 else made


@caught_by("a_coin_seldom_wrong_is_found")
class QuietVectors(LdpAverage):
    """Gaussian reports, negative numbers among them, whose noise is too small by 1.7."""

    def open(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> LdpAverageChannel:
        made = super().open(space, budget, context, bound)
        return attrs.evolve(made, sigma=made.sigma / 1.7)


@opened_by(UnaryCounts, "standard_error_is_that_of_an_empty_bucket")
class BoastfulReports(UnaryChannel):
    """Its standard errors are too small by 1.2."""

    @property
    def error(self) -> float:
        return super().error / 1.2


class _Forgetful(Reports):
    """Travels without the first bit."""

    def columns(self) -> dict[str, Any]:
        others = (np.arange(self.numbers.shape[1]) > 0).astype(np.uint8)
        return {"users": self.users, "numbers": self.numbers * others}


@opened_by(UnaryCounts, "reports_travel_as_columns")
class LosesBitsOnTheWay(UnaryChannel):
    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Reports:
        return _Forgetful(users, super().encode(items, users, rng).numbers)


@opened_by(UnaryCounts, "one_report_hides_its_row")
class SilentUsers(UnaryChannel):
    """Users in no bucket send zeros."""

    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Reports:
        sent = super().encode(items, users, rng).numbers
        return Reports(users, sent * (items >= 0).any(axis=1)[:, None].astype(np.uint8))


@opened_by(UnaryCounts, "rows_count_the_same_in_any_chunk_and_order")
class DrawsInRowOrder(UnaryChannel):
    """Draws belong to a row's position in its chunk."""

    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Reports:
        return super().encode(items, np.arange(len(users), dtype=np.uint64), rng)

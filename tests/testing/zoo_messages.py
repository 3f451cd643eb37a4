"""Oracles of several messages per user that spoil them, and oracles of users that use a word of randomness twice within
one report: every number of it, and every total, is as it should be.

``NoisyOnes`` is honest (Local; replace one row): one bucket more and one less per level move the numbers by 2 levels in
L1, so Laplace noise of scale 2 levels / eps on each is eps-DP. The others claim its guarantee, or that of the oracles
that they change (Shuffled; replace one row).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import attrs
import numpy as np

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget, Measure
from cloister.core.randomness import NoiseRng, unit_floats
from cloister.core.registry.components import component
from cloister.core.trust import Shuffled
from cloister.core.types import AnyArray, Floats, Ids, Ints
from cloister.plugins.oracles.local.coins import multiply_shift
from cloister.plugins.oracles.shuffled.blanket_histogram import BlanketHistogram
from cloister.plugins.oracles.shuffled.mixing import Shares
from cloister.plugins.oracles.shuffled.split_and_mix import SplitAndMix
from cloister.plugins.oracles.shuffled.tagged import Tagged
from tests.testing.caught import opened_by
from tests.testing.honest import Reports, Same, UnaryChannel, UnaryCounts


@attrs.frozen
class SplitCounts:
    """Shuffled; replace one row: as split-and-mix-counts."""

    trust = Shuffled
    measure: ClassVar[Measure] = "gaussian"
    uses_delta = asks_all_users = True
    biased = False
    honest: ClassVar[Any] = SplitAndMix()
    channel: ClassVar[type[Same]] = Same

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> Any:
        return self.channel(self.honest.open(space, budget, context))

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return float(self.honest.variance(space, budget, context))


class _Named(Shares):  # type: ignore[misc]
    """Messages beside which the sender's number travels."""

    def columns(self) -> dict[str, AnyArray]:
        return {**super().columns(), "users": np.zeros(len(self.slots), np.uint64)}


@opened_by(SplitCounts, "messages_travel_in_any_order")
class NamesUsers(Same):
    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Any:
        report = self.honest.encode(items, users, rng)
        return _Named(report.question, report.slots, report.shares)


@opened_by(SplitCounts, "messages_travel_in_any_order")
class NeedsTheirOrder(Same):
    """Goes by where a message stands, not by its slot."""

    def absorb(self, report: Any) -> Any:
        users = len(report.slots) // self.honest.messages
        slots = np.tile(np.repeat(np.arange(self.honest.slots, dtype=np.uint32), self.honest.each), users + 1)
        return self.honest.absorb(Shares(report.question, slots[: len(report.slots)], report.shares))


@opened_by(SplitCounts, "the_ideal_functionality_has_the_law_of_the_messages")
class QuieterWhenPooled(Same):
    """Draws half of the standard deviation where no messages are made."""

    def pooled(self, items: Any, users: Ids, rng: NoiseRng) -> Any:
        summary = self.honest.pooled(items, users, rng)
        return attrs.evolve(summary, owed=summary.owed // 4)


@opened_by(SplitCounts, "it_says_whom_it_counts_on")
class CountsOnMoreThanThereAre(Same):
    min_honest_users = 10**9


class _Quiet(Same):
    """A table with half of the noise where more than a thousand rows are."""

    def __init__(self, table: Any, exact: Any) -> None:
        super().__init__(table)
        self.exact = exact

    def at(self, ids: Any, level: int = 0) -> Any:
        noisy, exact = self.honest.at(ids, level), self.exact.at(ids, level)
        return np.where(np.abs(exact) > 1000, (noisy + exact) / 2, noisy)


@opened_by(SplitCounts, "noise_does_not_shrink_where_counts_are_large")
class QuieterWhereMany(Same):
    def decode(self, summary: Any, rng: NoiseRng) -> Any:
        return _Quiet(self.honest.decode(summary, rng), self.honest.decode(attrs.evolve(summary, owed=0), rng))


STEPS = 2.0**20
"""In one row."""


class NoisyChannel(UnaryChannel):
    """A bit is not flipped, but is a number with noise."""

    dtype = np.int64

    @property
    def scale(self) -> float:
        return 1 / self.per_bit

    @property
    def most(self) -> float:
        return 60 * self.scale * STEPS

    @property
    def error(self) -> float:
        return math.sqrt(2 * self.rows) * self.scale

    def noise(self, users: Ids, rng: NoiseRng) -> Floats:
        u = unit_floats(rng.words(users, sum(self.space.sizes))) + 2.0**-54 - 0.5
        return np.asarray(-np.sign(u) * np.log1p(-2 * np.abs(u)) * self.scale)

    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Reports:
        numbers = (self.ones(items) + self.noise(users, rng)) * STEPS
        return Reports(users, np.rint(numbers).astype(np.int64))

    def counts(self, totals: Ints, users: int) -> Floats:
        return totals / STEPS


@component
class NoisyOnes(UnaryCounts):
    """Counts from a noisy number for every bucket. Local; replace one row."""

    channel = NoisyChannel


@opened_by(NoisyOnes, "one_report_hides_its_row")
class OneNoiseForAllBuckets(NoisyChannel):
    """A bucket's number less the next one's is the row."""

    def noise(self, users: Ids, rng: NoiseRng) -> Floats:
        return np.repeat(super().noise(users, rng)[:, :1], sum(self.space.sizes), axis=1)


@attrs.frozen(eq=False)
class _Told(Reports):
    bucket: Ints

    def columns(self) -> dict[str, Any]:
        return {**super().columns(), "bucket": self.bucket}


@opened_by(NoisyOnes, "one_report_hides_its_row")
class SendsItsBucketBeside(NoisyChannel):
    """A column that the row fixes: one value for each."""

    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Reports:
        return _Told(users, super().encode(items, users, rng).numbers, items[:, 0])


@attrs.frozen
class _Blankets(SplitCounts):
    """Shuffled; replace one row: as blanket-histogram."""

    measure: ClassVar[Measure] = "pure"
    honest: ClassVar[Any] = BlanketHistogram()


class _Blanket(Same):
    """Messages by person and level, her own before the blanket ones; how they are ``changed`` says a subclass."""

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Any:
        honest, sent = self.honest, self.honest.encode(items, users, rng)
        shape = len(users), honest.space.levels, 1 + honest.blankets
        tags, values = self.changed(sent.tags.reshape(shape), sent.values.reshape(shape).copy())
        for level in range(honest.space.levels):
            mine = np.flatnonzero(items[:, level] >= 0)
            tags[mine, level, 0] = self.own(tags[mine, level, 0])
            values[mine, level, 0] = honest.hashes(level).of(tags[mine, level, 0], items[mine, level])
        return Tagged(sent.question, sent.levels, tags.reshape(-1), values.reshape(-1).astype(np.uint16))

    def own(self, tags: Ids) -> Ids:
        """What her own messages go by."""
        return tags


@opened_by(_Blankets, "a_message_hides_among_those_of_others")
class TheTagTellsTheValue(_Blanket):
    """A blanket message's value is drawn from the word that is its tag, so that it is known from a message that says
    something."""

    def changed(self, tags: Ids, values: Any) -> tuple[Ids, Any]:
        return tags, multiply_shift(tags, self.honest.values)


@opened_by(_Blankets, "messages_of_one_person_cannot_be_linked")
class OneTagForAll(Same):
    """All messages of a person go by one hash."""

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Any:
        sent, each = self.honest.encode(items, users, rng), 1 + self.honest.blankets
        tags = np.repeat(sent.tags.reshape(-1, each)[:, 0], each)
        return Tagged(sent.question, sent.levels, tags, sent.values)


@opened_by(_Blankets, "a_message_hides_among_those_of_others")
class MarksItsOwn(_Blanket):
    """Blanket messages have odd tags, hers has an even one."""

    def changed(self, tags: Ids, values: Any) -> tuple[Ids, Any]:
        return tags | np.uint64(1), values

    def own(self, tags: Ids) -> Ids:
        return tags ^ np.uint64(1)

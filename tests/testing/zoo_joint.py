"""Oracles of users that use a word of randomness twice within one report: every number of it, and every total, is as it
should be.

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
from cloister.core.budget import Budget, Event, Measure
from cloister.core.errors import Refused
from cloister.core.randomness import NoiseRng, unit_floats
from cloister.core.registry.components import component
from cloister.core.trust import Local
from cloister.core.types import Floats, Ids, Ints
from cloister.plugins.oracles.local.randomised_response import below
from cloister.plugins.oracles.shuffled.blanket_histogram import BlanketHistogram
from cloister.plugins.oracles.shuffled.tagged import Tagged
from tests.testing.honest import Noised, Totals
from tests.testing.zoo_messages import _Counts, _Same

STEPS = 2.0**20
"""In one row."""


@attrs.frozen(eq=False)
class Numbers:
    digest_tag = "tests.zoo_joint.Numbers"

    users: Ids
    numbers: Ints

    def columns(self) -> dict[str, Any]:
        return {"users": self.users, "numbers": self.numbers}

    @classmethod
    def load(cls, columns: dict[str, Any]) -> Numbers:
        return cls(columns["users"], columns["numbers"])


@attrs.frozen
class NoisyChannel:
    space: Space
    budget: Budget
    rows: int

    @property
    def events(self) -> tuple[Event, ...]:
        return (Event("noisy-ones", self.budget),)

    @property
    def scale(self) -> float:
        return 2 * self.space.levels / self.budget.epsilon

    def noise(self, users: Ids, rng: NoiseRng) -> Floats:
        u = unit_floats(rng.words(users, sum(self.space.sizes))) + 2.0**-54 - 0.5
        return np.asarray(-np.sign(u) * np.log1p(-2 * np.abs(u)) * self.scale)

    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Numbers:
        ones = np.concatenate([items[:, [i]] == np.arange(n) for i, n in enumerate(self.space.sizes)], axis=1)
        return Numbers(users, np.rint((ones + self.noise(users, rng)) * STEPS).astype(np.int64))

    def absorb(self, report: Numbers) -> Totals:
        numbers, users = report.numbers, report.users
        if users.dtype != np.uint64 or users.ndim != 1 or numbers.dtype != np.int64:
            raise Refused("no encoder sends that")
        if numbers.shape != (len(users), sum(self.space.sizes)) or (np.abs(numbers) > 60 * self.scale * STEPS).any():
            raise Refused("no encoder sends that")
        return Totals(numbers.sum(axis=0))

    def decode(self, summary: Totals, rng: NoiseRng) -> Noised:
        error = math.sqrt(2 * self.rows) * self.scale
        starts = np.cumsum([0, *self.space.sizes])
        return Noised(summary.vector[:, None] / STEPS, True, starts, (error,) * self.space.levels)


@component
class NoisyOnes:
    """Counts from a noisy number for every bucket. Local; replace one row."""

    trust = Local
    measure: ClassVar[Measure] = "pure"
    channel: ClassVar[type[NoisyChannel]] = NoisyChannel

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> NoisyChannel:
        made = self.channel(space, budget, context.rows)
        assert made.scale > 0
        return made

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return 2 * context.rows * self.open(space, budget, context).scale ** 2


class _OneNoise(NoisyChannel):
    def noise(self, users: Ids, rng: NoiseRng) -> Floats:
        return np.repeat(super().noise(users, rng)[:, :1], sum(self.space.sizes), axis=1)


class OneNoiseForAllBuckets(NoisyOnes):
    """A bucket's number less the next one's is the row."""

    channel = _OneNoise


@attrs.frozen(eq=False)
class _Told(Numbers):
    bucket: Ints

    def columns(self) -> dict[str, Any]:
        return {**super().columns(), "bucket": self.bucket}


class _Telling(NoisyChannel):
    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Numbers:
        sent = super().encode(items, users, rng)
        return _Told(sent.users, sent.numbers, items[:, 0])


class SendsItsBucketBeside(NoisyOnes):
    """A column that the row fixes: one value for each."""

    channel = _Telling


@attrs.frozen
class _Blankets(_Counts):
    """Shuffled; replace one row: as blanket-histogram."""

    measure: ClassVar[Measure] = "pure"

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> Any:
        return self.channel(BlanketHistogram().open(space, budget, context))

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return BlanketHistogram().variance(space, budget, context)


class _OneWord(_Same):
    """A blanket message's value is drawn from the word that is its tag, so that it is known from a message that says
    something."""

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Any:
        honest = self.honest
        sent = honest.encode(items, users, rng)
        shape = len(users), honest.space.levels, 1 + honest.blankets
        tags, values = sent.tags.reshape(shape), below(sent.tags, honest.values).reshape(shape)
        for level in range(honest.space.levels):
            mine = np.flatnonzero(items[:, level] >= 0)
            values[mine, level, 0] = honest.hashes(level).of(tags[mine, level, 0], items[mine, level])
        return Tagged(sent.question, sent.levels, sent.tags, values.reshape(-1).astype(np.uint16))


class TheTagTellsTheValue(_Blankets):
    channel = _OneWord


class _OneTag(_Same):
    """All messages of a person go by one hash."""

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Any:
        sent, each = self.honest.encode(items, users, rng), 1 + self.honest.blankets
        tags = np.repeat(sent.tags.reshape(-1, each)[:, 0], each)
        return Tagged(sent.question, sent.levels, tags, sent.values)


class OneTagForAll(_Blankets):
    channel = _OneTag


class _Marked(_Same):
    """Blanket messages have odd tags, hers has an even one."""

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Any:
        honest = self.honest
        sent = honest.encode(items, users, rng)
        shape = len(users), honest.space.levels, 1 + honest.blankets
        tags, values = (sent.tags | np.uint64(1)).reshape(shape), sent.values.reshape(shape).copy()
        for level in range(honest.space.levels):
            mine = np.flatnonzero(items[:, level] >= 0)
            tags[mine, level, 0] ^= np.uint64(1)
            values[mine, level, 0] = honest.hashes(level).of(tags[mine, level, 0], items[mine, level])
        return Tagged(sent.question, sent.levels, tags.reshape(-1), values.reshape(-1))


class MarksItsOwn(_Blankets):
    channel = _Marked

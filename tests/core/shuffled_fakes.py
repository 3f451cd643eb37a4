"""Toy oracles of trust Shuffled: local reports that hide among others, and numbers in shares that say something only
together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import numpy as np

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget, Event, Measure
from cloister.core.errors import Refused
from cloister.core.randomness import NoiseRng
from cloister.core.registry.components import component, option, slot
from cloister.core.roles import FrequencyOracle
from cloister.core.trust import Local, Shuffled

SHARES = 3


@component
class ToyHidden:
    """Whatever a local oracle reports, at eps0 = ``louder`` times epsilon. The amplification is not computed: a toy."""

    report: FrequencyOracle[Local] = slot("hadamard-response", help="what each person sends")
    louder: float = option(default=2.0, low=1.0, help="eps0 over epsilon")
    honest: float = option(default=0.5, low=0.0, high=1.0, above=True, help="share of the people")

    trust = Shuffled
    measure: ClassVar[Measure] = "pure"
    uses_delta: ClassVar[bool] = True

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> Any:
        local = Budget("pure", self.louder * budget.epsilon, budget.user_share)
        least = math.ceil(self.honest * context.people)
        return ToyHiding(budget, least, local.amount, self.report.open(space, local, context))

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return self.report.variance(space, Budget("pure", self.louder * budget.epsilon, budget.user_share), context)


@attrs.frozen
class ToyHiding:
    budget: Budget
    min_honest_users: int
    eps0: float
    inner: Any

    @property
    def events(self) -> tuple[Event, ...]:
        return (Event("toy-hidden", self.budget, delta=self.budget.delta, epsilon_without_shuffler=self.eps0),)

    def encode(self, items: Any, users: Any, rng: NoiseRng) -> Any:
        return self.inner.encode(items, users, rng)

    def absorb(self, report: Any) -> Any:
        return self.inner.absorb(report)

    def decode(self, summary: Any, rng: NoiseRng) -> Any:
        return self.inner.decode(summary, rng)


@component
class ToyMixed:
    """Counts in shares modulo 2^64, without noise: exact sums, whose messages are uniform one by one. No guarantee: a
    toy."""

    min_honest_users: int = option(default=10, low=1, help="people")

    trust = Shuffled
    measure: ClassVar[Measure] = "pure"
    uses_delta: ClassVar[bool] = True

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> Any:
        return ToyMixing(budget, space.sizes[0], self.min_honest_users)

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return 1.0


@attrs.frozen(eq=False)
class Sent:
    slots: Any
    shares: Any

    def columns(self) -> dict[str, Any]:
        return {"slot": self.slots, "share": self.shares}

    @classmethod
    def load(cls, columns: Mapping[str, Any]) -> Sent:
        if sorted(columns) != ["share", "slot"]:
            raise Refused("no shares")
        return cls(columns["slot"], columns["share"])


@attrs.frozen(eq=False)
class Together:
    totals: Any
    found: Any

    def merge(self, other: Together) -> Together:
        return Together(self.totals + other.totals, self.found + other.found)


@attrs.frozen
class ToyMixing:
    digest_tag = "tests.shuffled_fakes.ToyMixing"

    budget: Budget
    size: int
    min_honest_users: int

    @property
    def messages(self) -> int:
        return SHARES * self.size

    @property
    def events(self) -> tuple[Event, ...]:
        return (Event("toy-mixed", self.budget, delta=self.budget.delta),)

    def encode(self, items: Any, users: Any, rng: NoiseRng) -> Sent:
        shares = np.zeros((len(users), self.size, SHARES), np.uint64)
        shares[..., 1:] = rng.words(users, self.size * (SHARES - 1)).reshape(len(users), self.size, SHARES - 1)
        shares[..., 0] = _one_hot(items[:, 0], self.size) - shares[..., 1:].sum(axis=2, dtype=np.uint64)
        slots = np.broadcast_to(np.arange(self.size, dtype=np.uint16)[:, None], shares.shape)
        return Sent(slots.reshape(-1), shares.reshape(-1))

    def absorb(self, report: Sent) -> Together:
        if len(report.slots) and int(report.slots.max()) >= self.size:
            raise Refused("no such slot")
        totals = np.zeros(self.size, np.uint64)
        np.add.at(totals, report.slots, report.shares)
        return Together(totals, np.bincount(report.slots, minlength=self.size))

    def whole(self, report: Sent) -> Any:
        found = np.sort(report.slots.reshape(-1, self.messages), axis=1)
        return (found == np.repeat(np.arange(self.size), SHARES)).all(axis=1)

    def pooled(self, items: Any, users: Any, rng: NoiseRng) -> Together:
        hot = _one_hot(items[:, 0], self.size)
        return Together(hot.sum(axis=0, dtype=np.uint64), np.full(self.size, SHARES * len(items)))

    def decode(self, summary: Together, rng: NoiseRng) -> Any:
        if (summary.found != summary.found[0]).any() or summary.found[0] % SHARES:
            raise Refused("these are not the messages of whole users")
        return Exactly(summary.totals.astype(np.int64).astype(np.float64))


class Exactly:
    def __init__(self, values: Any) -> None:
        self._values = values

    def at(self, ids: Any, level: int = 0) -> Any:
        return self._values[ids]

    def standard_error(self, ids: Any, level: int = 0) -> Any:
        return np.ones(len(ids))


def _one_hot(ids: Any, size: int) -> Any:
    return (ids[:, None] == np.arange(size)).astype(np.uint64)

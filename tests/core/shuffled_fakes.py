"""A toy oracle of trust Shuffled: local reports that hide among others."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import attrs

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget, Event, Measure
from cloister.core.randomness import NoiseRng
from cloister.core.registry.components import component, option, slot
from cloister.core.roles import FrequencyOracle
from cloister.core.trust import Local, Shuffled


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

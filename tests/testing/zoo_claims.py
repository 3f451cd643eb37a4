"""Oracles that declare what is not so; counts above a threshold, honest and broken.

All of them claim the guarantee of the honest ones (Central; add-or-remove one row, or Local; replace one row).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import attrs
import numpy as np

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget, Event, Measure
from cloister.core.errors import InvalidInput
from cloister.core.lattice import Bound
from cloister.core.randomness import NoiseRng
from cloister.core.registry.components import Option, component, option
from cloister.core.types import Floats, Ints
from tests.testing.caught import caught_by, opened_by
from tests.testing.honest import Channel, HonestCounts, HonestGaussianSums, Totals, _Oracle


@opened_by(HonestCounts, "neighbours_are_hard_to_tell_apart")
class CheaperOnPaper(Channel):
    """Declares half of what its noise costs."""

    def declared(self, event: Event) -> Event:
        return attrs.evolve(event, spent=self.budget.over(2))


@opened_by(HonestCounts, "events_cover_the_budget_and_no_more")
class DearerThanItsBudget(Channel):
    @property
    def events(self) -> tuple[Event, ...]:
        return super().events * 2


@opened_by(HonestCounts, "events_cover_the_budget_and_no_more")
class ForeignMeasure(Channel):
    """Declares rho when it is paid in epsilon."""

    def declared(self, event: Event) -> Event:
        return Event("foreign", Budget("zcdp", self.budget.amount / 100))


@opened_by(HonestGaussianSums, "events_cover_the_budget_and_no_more")
class PureOnPaper(Channel):
    """Gaussian noise that says it is pure, so that a ledger would give its delta back."""

    def declared(self, event: Event) -> Event:
        return attrs.evolve(event, pure=math.sqrt(2 * event.spent.amount))


@opened_by(HonestCounts, "events_cover_the_budget_and_no_more")
class PurerThanItIs(Channel):
    """Pure noise that says half of its epsilon where it is paid in rho."""

    def declared(self, event: Event) -> Event:
        rho = self.budget.amount if self.budget.measure == "zcdp" else math.inf
        return attrs.evolve(event, pure=math.sqrt(2 * rho) / 2)


@opened_by(HonestCounts, "events_cover_the_budget_and_no_more")
class GaussianOnPaper(Channel):
    """Laplace noise with the sigma of a Gaussian, so that its rho would count as mu^2."""

    def declared(self, event: Event) -> Event:
        return attrs.evolve(event, l0_sensitivity=1, sigma=2.0**21)


@opened_by(HonestGaussianSums, "discreteness_is_declared_truthfully")
class TouchesMoreThanItSays(Channel):
    def declared(self, event: Event) -> Event:
        return attrs.evolve(event, l0_sensitivity=1)


@opened_by(HonestGaussianSums, "discreteness_is_declared_truthfully")
class CoarserThanItSays(Channel):
    """Declares the sigma that it would have with 2^10 times finer steps."""

    def declared(self, event: Event) -> Event:
        return attrs.evolve(event, sigma=event.sigma * 2**10)


@opened_by(HonestCounts, "what_it_costs_is_known_before_any_row")
@attrs.frozen
class RemembersRows(Channel):
    """Its digest tells how many rows it has seen."""

    seen: list[int] = attrs.field(factory=list)

    def taken(self, items: Any) -> Any:
        self.seen.append(len(items))
        return items


@caught_by("variance_is_as_declared")
class WrongVariance(HonestCounts):
    """Forgets that two geometric variables make one two-sided one."""

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return super().variance(space, budget, context) / 2


@caught_by("options_keep_to_their_bounds")
@component
class NanPasses(HonestCounts):
    """A bound that is written ``value <= low``, which NaN passes."""

    step: float = attrs.field(default=1.0, metadata={"cloister": Option("a step", low=0.0, above=True)})

    def __attrs_post_init__(self) -> None:
        if self.step <= 0:
            raise InvalidInput("step must be positive")


@caught_by("every_option_and_slot_is_explained")
@component
class Unexplained(HonestCounts):
    """An option without help."""

    step: int = attrs.field(default=1, metadata={"cloister": Option(" ")})


@caught_by("options_can_be_given_as_text")
@component
class NotPlain(HonestCounts):
    """An option that no configuration file can say."""

    steps: tuple[int, ...] = option(default=(1, 2), help="steps")


@caught_by("it_is_frozen_and_equal_to_its_rebuilt_self")
@attrs.define(kw_only=True, eq=False)
class NotFrozen(_Oracle):
    """Its options can be changed behind a plan's back, and equal ones differ."""

    measure: ClassVar[Measure] = "pure"
    uses_delta = asks_all_users = biased = False
    step: int = option(default=1, low=1, help="a step")

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> Channel:
        return self.made(space, None, budget, context)


class _Exactly(Channel):
    """Says exact, adds noise."""

    error = 0.0


@caught_by("exact_answers_are_exact", "exact_answers_are_exact_in_a_large_space")
@component
class NoisyExact(HonestCounts):
    """Exact counts, NOT private, and not exact."""

    channel = _Exactly
    measure: ClassVar[Measure] = "exact"

    def scale(self, levels: int, bound: Bound | None, budget: Budget) -> float:
        return 1.0


class _Above(Channel):
    """Releases occupied buckets above a threshold."""

    levels_paid: ClassVar[bool] = True

    @property
    def above(self) -> int:
        """1 + Z > T has probability q^T / (1 + q), on each level at most its share of delta."""
        share, q = self.budget.delta / (self.space.levels if self.levels_paid else 1), math.exp(-1 / self.scale)
        return max(1, math.ceil(math.log(share * (1 + q)) / math.log(q)))

    def declared(self, event: Event) -> Event:
        return attrs.evolve(event, delta=self.budget.delta)

    def noised(self, summary: Totals, rng: NoiseRng) -> Floats:
        return self.chosen(summary.vector, super().noised(summary, rng))

    def chosen(self, totals: Ints, noised: Floats) -> Floats:
        return np.where((totals > 0) & (noised > self.above), noised, 0)


class HonestThreshold(HonestCounts):
    """Central; add-or-remove one row: epsilon by Laplace noise of scale levels / eps, and a delta by a threshold that a
    lone row exceeds, on any level, with at most that probability."""

    channel = _Above
    uses_delta = True


@opened_by(HonestThreshold, "empty_buckets_read_zero")
class EmptyOnesToo(_Above):
    """Empty buckets above the threshold, too: harmless, and not what it says."""

    def chosen(self, totals: Ints, noised: Floats) -> Floats:
        return np.where(noised > self.above, noised, 0)


@opened_by(HonestThreshold, "a_lone_row_is_released_as_seldom_as_declared")
class LevelsFree(_Above):
    """Delta for every level."""

    levels_paid = False


@opened_by(HonestThreshold, "released_counts_have_the_declared_noise")
class QuieterAbove(_Above):
    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        return rng.child("level", level).discrete_laplace(self.scale / 1.3, size)


@caught_by("counts_are_hard_to_tell_apart")
class LouderThanPaid(HonestThreshold):
    """Half the scale, and says so."""

    def scale(self, levels: int, bound: Bound | None, budget: Budget) -> float:
        return super().scale(levels, bound, budget) / 2


@opened_by(HonestThreshold, "a_lone_row_is_released_as_seldom_as_declared")
class CheapestDelta(_Above):
    """Forgets to declare it."""

    def declared(self, event: Event) -> Event:
        return event


@opened_by(HonestThreshold, "events_cover_the_budget_and_no_more")
class DearerDelta(_Above):
    """A delta for each of two, from one budget."""

    def declared(self, event: Event) -> Event:
        return attrs.evolve(event, delta=2 * self.budget.delta)

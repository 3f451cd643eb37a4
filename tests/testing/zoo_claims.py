"""Oracles that declare what is not so.

All of them claim the guarantee of the honest ones (Central; add-or-remove one row, or Local; replace one row).
"""

from __future__ import annotations

import math
from typing import ClassVar

import attrs

from cloister.core.buckets import BucketedVectors, QuestionContext, Space
from cloister.core.budget import Budget, Event, Measure
from cloister.core.lattice import Bound
from cloister.core.randomness import NoiseRng
from cloister.core.registry.components import Option, component, option
from cloister.core.types import Ids, Ints
from tests.testing.honest import (
    Channel,
    HonestCounts,
    HonestGaussianSums,
    Totals,
    _Oracle,
)


class _Cheaper(Channel):
    """Declares half of what its noise costs."""

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(attrs.evolve(e, spent=self.budget.over(2)) for e in super().events)


class CheaperOnPaper(HonestCounts):
    channel = _Cheaper


class _Dearer(Channel):
    @property
    def events(self) -> tuple[Event, ...]:
        return (*super().events, *super().events)


class DearerThanItsBudget(HonestCounts):
    channel = _Dearer


class _Foreign(Channel):
    @property
    def events(self) -> tuple[Event, ...]:
        return (Event("foreign", Budget("zcdp", self.budget.amount / 100)),)


class ForeignMeasure(HonestCounts):
    """Declares rho when it is paid in epsilon."""

    channel = _Foreign


class _PureOnPaper(Channel):
    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(attrs.evolve(e, pure=math.sqrt(2 * e.spent.amount)) for e in super().events)


class PureOnPaper(HonestGaussianSums):
    """Gaussian noise that says it is pure, so that a ledger would give its delta back."""

    channel = _PureOnPaper


class _PurerThanItIs(Channel):
    @property
    def events(self) -> tuple[Event, ...]:
        rho = self.budget.amount if self.budget.measure == "zcdp" else math.inf
        return tuple(attrs.evolve(e, pure=math.sqrt(2 * rho) / 2) for e in super().events)


class PurerThanItIs(HonestCounts):
    """Pure noise that says half of its epsilon where it is paid in rho."""

    channel = _PurerThanItIs


class _GaussianOnPaper(Channel):
    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(attrs.evolve(e, l0_sensitivity=1, sigma=2.0**21) for e in super().events)


class GaussianOnPaper(HonestCounts):
    """Laplace noise with the sigma of a Gaussian, so that its rho would count as mu^2."""

    channel = _GaussianOnPaper


class _Undiscrete(Channel):
    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(attrs.evolve(e, l0_sensitivity=1) for e in super().events)


class TouchesMoreThanItSays(HonestGaussianSums):
    channel = _Undiscrete


class CoarserThanItSays(HonestGaussianSums):
    """Declares the sigma that it would have with 2^10 times finer steps."""

    def made(self, space: Space, bound: Bound | None, budget: Budget, context: QuestionContext) -> Channel:
        return _Coarser(**attrs.asdict(super().made(space, bound, budget, context), recurse=False))


class _Coarser(Channel):
    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(attrs.evolve(e, sigma=e.sigma * 2**10) for e in super().events)


@attrs.frozen
class _Remembering(Channel):
    """Its digest tells how many rows it has seen."""

    seen: list[int] = attrs.field(factory=list)

    def encode(self, items: Ints | BucketedVectors, users: Ids, rng: NoiseRng) -> Totals:
        self.seen.append(len(users))
        return super().encode(items, users, rng)


class RemembersRows(HonestCounts):
    channel = _Remembering


class WrongVariance(HonestCounts):
    """Forgets that two geometric variables make one two-sided one."""

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return super().variance(space, budget, context) / 2


@component
class NanPasses(HonestCounts):
    """A bound that is written ``value <= low``, which NaN passes."""

    step: float = attrs.field(default=1.0, metadata={"cloister": Option("a step", low=0.0, above=True)})

    def __attrs_post_init__(self) -> None:
        from cloister.core.errors import InvalidInput

        if self.step <= 0:
            raise InvalidInput("step must be positive")


@component
class Unexplained(HonestCounts):
    """An option without help."""

    step: int = attrs.field(default=1, metadata={"cloister": Option(" ")})


@component
class NotPlain(HonestCounts):
    """An option that no configuration file can say."""

    steps: tuple[int, ...] = option(default=(1, 2), help="steps")


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

    @property
    def errors(self) -> tuple[float, ...]:
        return (0.0,) * self.space.levels


@component
class NoisyExact(HonestCounts):
    """Exact counts, NOT private, and not exact."""

    channel = _Exactly
    measure: ClassVar[Measure] = "exact"

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        return (1.0,) * space.levels

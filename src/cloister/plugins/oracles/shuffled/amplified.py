"""Privacy amplification by shuffling: local oracles whose users spend a larger epsilon and hide among each other.

Guarantee (Shuffled; replace one row; (eps, delta)): a user's whole report is one pure eps0-DP randomiser R, with the
largest eps0 at which shuffling ``min_honest_users`` reports of R is (eps, delta)-DP (``accounting.amplification``,
computed, not approximated). In R everything that depends on the user comes from a private number v, uniform on 64 bits
and sent along: it replaces the public user number of Local trust, and decides her role among the round's questions, her
level and her hashes. v does not depend on her row, and given v her answer is eps0-DP; so R is. Users with another role
draw from R too, so that she hides among all users of the round, however few answer this question. Another question to
the same users is another part of the same randomiser; its eps0 is set for the same budget, and the general bound holds
for the largest eps0 of all. If everyone answers this question, by plain k-ary response on given coins, the tighter
bound for that is used.

``min_honest_users`` = ceil(honest * people): honest reports, hers among them, that must be in the shuffle. With fewer
the shuffler releases nothing; malicious or colluding users do not count, and more reports only help. If the shuffler is
not honest, or nobody else is, her report alone is eps0-DP.

Variance, unbiasedness: the report oracle's at eps0.

Source: Feldman, McMillan, Talwar 2021, 2023; Balle, Bell, Gascon, Nissim 2019; see ``accounting.amplification``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, final

import attrs

from cloister.accounting import local_of_shuffled
from cloister.core.reports import facts_of
from cloister.core.reproducible_math import fewer_bits
from cloister.plugin import (
    Bound,
    BucketedVectors,
    Budget,
    BundleArrays,
    Channel,
    Event,
    FrequencyOracle,
    Gain,
    Ids,
    Ints,
    InvalidInput,
    Local,
    Measure,
    NoiseRng,
    QuestionContext,
    ReportFacts,
    ReportLaw,
    Shuffled,
    Space,
    VectorSumOracle,
    component,
    describe_part,
    option,
    slot,
)

STEPS = 3
"""Limit of the times that eps0 is raised by the tighter bound, which depends on the number of values at that eps0."""

BITS = 14
"""Bits of eps0, so that all platforms open the same channel: a loss of at most one part in 8,000."""


def honest_option() -> Any:
    """Return the option ``honest`` of an oracle under shuffled trust."""
    return option(
        default=0.9,
        low=0.0,
        high=1.0,
        above=True,
        help="share of the planned users whose honest reports the guarantee needs; with fewer the shuffler releases "
        "nothing",
    )


@component
class _Shuffling:
    """Base of the two oracles, which differ in what a user sends."""

    mechanism: ClassVar[str]
    honest: float = honest_option()

    trust = Shuffled
    measure: ClassVar[Measure] = "pure"
    uses_delta: ClassVar[bool] = True

    def opened(self, report: Any, space: Space, budget: Budget, context: QuestionContext, *bound: Bound) -> Amplified:
        """Return the report oracle's channel with the largest eps0 that the budget allows.

        Raises:
            InvalidInput: the budget has no delta, or the report oracle is not local and pure.
        """
        if report.trust is not Local or report.measure != "pure" or report.uses_delta:
            raise InvalidInput(
                f"'{self.mechanism}' shuffles reports of pure local oracles (without delta), not of {report!r}"
            )
        if not budget.delta > 0:
            raise InvalidInput(f"'{self.mechanism}' spends delta, and its budget has none: pass delta")
        honest_users = math.ceil(self.honest * context.people)

        def spending(values: int | None) -> Amplified:
            eps0 = fewer_bits(local_of_shuffled(budget.epsilon, budget.delta, honest_users, values), BITS)
            local = Budget("pure", eps0, budget.user_share)
            inner = report.open(space, local, context, *bound)
            paid = sum(event.spent.epsilon for event in inner.events)
            if not paid <= eps0 * (1 + 1e-9) or any(event.delta for event in inner.events):
                raise InvalidInput(
                    f"'{self.mechanism}' shuffles pure reports; those of {report!r} declare {inner.events}"
                )
            return Amplified(self.mechanism, budget, honest_users, local, inner)

        channel, assumed = spending(None), 2
        if budget.user_share is not None:
            return channel
        for _ in range(STEPS):
            values = facts_of(channel.inner).response_values
            if values is None or values <= assumed:
                break
            raised = spending(values)
            now = facts_of(raised.inner).response_values
            if now is None or now < values:  # the bound holds for ``values`` or more
                break
            channel, assumed = raised, values
        return channel


@component
class AmplifiedCounts(_Shuffling):
    """Counts from shuffled local reports."""

    mechanism = "amplified-counts"
    report: FrequencyOracle[Local] = slot("adaptive-response", help="what each person sends")

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> Amplified:
        return self.opened(self.report, space, budget, context)

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return self.report.variance(space, self.open(space, budget, context).local, context)


@component
class AmplifiedVectors(_Shuffling):
    """Vector sums from shuffled local reports."""

    mechanism = "amplified-vectors"
    report: VectorSumOracle[Local] = slot("hadamard-vector", help="what each person sends")

    def open(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> Amplified:
        return self.opened(self.report, space, budget, context, bound)

    def variance(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> float:
        return self.report.variance(space, self.open(space, budget, context, bound).local, context, bound)


@final
@attrs.frozen
class Amplified(ReportFacts):
    """Local channel opened with eps0, and the price of its shuffled reports.

    Args:
        mechanism, budget: declared to the accountant.
        min_honest_users: honest reports that the guarantee needs.
        local: budget of a report alone, eps0.
        inner: channel of the report oracle.
    """

    mechanism: str
    budget: Budget
    min_honest_users: int
    local: Budget
    inner: Channel[Any, Any, Any, Any]

    @property
    def events(self) -> tuple[Event, ...]:
        return (
            Event(self.mechanism, self.budget, delta=self.budget.delta, epsilon_without_shuffler=self.local.amount),
        )

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return describe_part(self.inner, arrays)

    def encode(self, items: Ints | BucketedVectors, users: Ids, rng: NoiseRng) -> Any:
        return self.inner.encode(items, users, rng)

    def absorb(self, report: Any) -> Any:
        return self.inner.absorb(report)

    @property
    def gains(self) -> tuple[Gain, ...]:
        return facts_of(self.inner).gains

    def reported(self, summary: Any) -> tuple[int, ...]:
        return facts_of(self.inner).reported(summary)

    def laws(self, summary: Any) -> tuple[ReportLaw, ...]:
        return facts_of(self.inner).laws(summary)

    def answered(self, summary: Any) -> tuple[int, ...]:
        return facts_of(self.inner).answered(summary)

    def decode(self, summary: Any, rng: NoiseRng) -> Any:
        return self.inner.decode(summary, rng)

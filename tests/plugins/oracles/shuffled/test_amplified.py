"""Amplified oracles: local reports at the epsilon that shuffling them allows."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from cloister.accounting.amplification import delta_of_shuffled, epsilon_of_shuffled, local_of_shuffled
from cloister.core.budget import Share
from cloister.core.reproducible_math import fewer_bits
from cloister.core.shuffling import min_honest_users_of
from cloister.plugin import Bound, Budget, InvalidInput, PublicRng, QuestionContext, Space
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.plugins.oracles.central.thresholded import ThresholdedCounts
from cloister.plugins.oracles.local.counts.adaptive_response import AdaptiveResponse
from cloister.plugins.oracles.local.counts.local_hashing import OptimisedLocalHashing
from cloister.plugins.oracles.local.vectors.vector_sums import HadamardVector
from cloister.plugins.oracles.shuffled.amplified import BITS, AmplifiedCounts, AmplifiedVectors
from cloister.testing.check import Violation
from cloister.testing.checks.oracle_local import one_report_hides_its_row

SEED = PublicRng.from_seed(3)
BUDGET = Budget("pure", 1.0, delta=1e-6)
HALF = Budget("pure", 1.0, Share(SEED, 0, 0.0, 0.5), 1e-6)


def counts(report: Any = None, honest: float = 0.9) -> AmplifiedCounts:
    return AmplifiedCounts(report=report or AdaptiveResponse(), honest=honest)


def context(people: int, asked: int | None = None) -> QuestionContext:
    return QuestionContext(people if asked is None else asked, 0.001, SEED, people)


def test_an_answer_of_some_is_amplified_by_all_people_however_few_are_asked() -> None:
    for channel in (
        counts().open(Space((64,)), HALF, context(10**5, 500)),
        AmplifiedVectors(report=HadamardVector()).open(Space((64,)), HALF, context(10**5, 500), Bound(1000, 10)),
    ):
        assert channel.local.amount == fewer_bits(local_of_shuffled(1.0, 1e-6, 90_000), BITS)
        assert channel.local.user_share == HALF.user_share
        assert channel.inner.asked.rows == 500
        assert channel.gains == channel.inner.gains  # a liar's report is worth what the one inside is


def test_plain_response_of_everybody_has_the_tighter_bound() -> None:
    space = Space((64,))
    for report, most in ((AdaptiveResponse(), 1.0), (OptimisedLocalHashing(), 1.5)):
        channel = counts(report).open(space, BUDGET, context(10**5))
        k, eps0 = channel.inner.response_values, channel.local.amount
        assert local_of_shuffled(1.0, 1e-6, 90_000) + 0.005 < eps0 < local_of_shuffled(1.0, 1e-6, 90_000) + most
        assert delta_of_shuffled(eps0, 1.0, 90_000, k) <= 1e-6


def test_the_event_is_the_whole_budget_and_what_holds_alone() -> None:
    channel = counts(honest=0.5).open(Space((8,)), HALF, context(20_001))
    (event,) = channel.events
    assert (event.spent, event.delta, event.mechanism) == (HALF, 1e-6, "amplified-counts")
    assert event.epsilon_without_shuffler == channel.local.amount > 1
    assert min_honest_users_of(channel)
    assert channel.min_honest_users == 10_001
    assert epsilon_of_shuffled(event.epsilon_without_shuffler, 1e-6, channel.min_honest_users) == pytest.approx(
        1.0, rel=1e-3
    )


def test_fewer_honest_people_may_spend_less() -> None:
    spent = [counts(honest=h).open(Space((8,)), HALF, context(10**4)).local.amount for h in (0.1, 0.5, 1.0)]
    assert spent == sorted(spent)
    assert spent[0] < spent[2] - 2


def test_reports_that_are_not_pure_and_local_are_refused_and_no_delta_amplifies_nothing() -> None:
    for inner, budget, message in (
        (DiscreteLaplace(), BUDGET, "pure local oracles"),
        (ThresholdedCounts(), BUDGET, "pure local oracles"),
        (counts(), BUDGET, "pure local oracles"),
        (None, Budget("pure", 1.0), "pass delta"),
    ):
        with pytest.raises(InvalidInput, match=message):
            counts(inner).open(Space((8,)), budget, context(1000))


@attrs.frozen
class Understated(AmplifiedCounts):
    """Says of a report alone that it spends six tenths of what it does."""

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> Any:
        channel = super().open(space, budget, context)
        return attrs.evolve(channel, local=attrs.evolve(channel.local, amount=channel.local.amount * 0.6))


def test_the_kit_finds_out_who_understates_what_a_report_alone_spends() -> None:
    one_report_hides_its_row(counts(OptimisedLocalHashing()))
    with pytest.raises(Violation, match="epsilon is at least"):
        one_report_hides_its_row(Understated(report=OptimisedLocalHashing()))

"""Budgets: shares that add up and come back in order, and shares of the users that overlap nowhere."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest
from hypothesis import Phase, given, settings, strategies as st

from cloister.core.budget import Budget, Event, Measure, Share
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng, unit_floats

EXACT = settings(derandomize=True, deadline=None, max_examples=50, phases=[Phase.generate])
"""What fails is told as it is: with a share of a share of 500 users, minutes would pass until it is the smallest."""
KEY = PublicRng(b"k" * 32)
MEASURES: list[Measure] = ["pure", "gaussian", "zcdp"]


def test_a_split_is_not_swapped() -> None:
    """Sums before counts here, counts before sums there: 2.1 times the budget at d = 50 in a package of the field."""
    few, many = Budget("gaussian", 1.0).split(1, math.sqrt(200))
    assert few.amount == pytest.approx(0.0660, abs=1e-4)
    assert many.amount == pytest.approx(0.9340, abs=1e-4)
    assert few.amount + many.amount == pytest.approx(1.0, rel=1e-12)
    small, large = Budget("pure", 9.0).split_for(1, 8)
    assert (small.amount, large.amount) == pytest.approx((3.0, 6.0))


def test_a_delta_is_shared_as_the_budget_is() -> None:
    budget = Budget("pure", 1.0, delta=1e-6)
    assert budget.over(4).delta == 2.5e-7
    assert [part.delta for part in budget.split(1, 3)] == pytest.approx([2.5e-7, 7.5e-7])
    assert [part.delta for part in budget.split_for(1, 8)] == pytest.approx([1e-6 / 3, 2e-6 / 3])
    assert [part.delta for part in budget.split_users(KEY, 1, 1)] == [1e-6, 1e-6]  # nobody is in both


def test_an_event_of_a_share_of_users_is_of_another_share_for_each_drawing_and_any_other_event_is_as_it_was() -> None:
    half, _ = Budget("pure", 1.0).split_users(KEY, 1, 1)
    event = Event("some", half, 3, delta=1e-9)
    one, other = (event.in_drawing(2, drawing) for drawing in (0, 1))
    shares = [each.spent.user_share for each in (event, one, other)]
    assert len({share.rng.key for share in shares if share is not None}) == 3
    assert {(share.low, share.high) for share in shares if share is not None} == {(0.0, 0.5)}
    assert attrs.evolve(one, spent=half) == event
    whole = Event("some", Budget("pure", 1.0))
    assert whole.in_drawing(2, 0) is whole


@pytest.mark.parametrize("measure", MEASURES)
def test_the_best_split_of_many_has_equal_slopes(measure: Measure) -> None:
    """Lagrange: d error / d share is the same for all."""
    power = 2 if measure == "pure" else 1
    errors = [1.0, 0.2, 7.0, 30.0]
    shares = [b.amount / 2.5 for b in Budget(measure, 2.5).split_for(*errors)]
    assert sum(shares) == pytest.approx(1.0)
    slopes = [power * e * s ** (-power - 1) for e, s in zip(errors, shares, strict=True)]
    assert slopes == pytest.approx([slopes[0]] * 4)


def test_a_budget_that_is_not_positive_is_refused() -> None:
    for amount in (0.0, -1.0, math.nan, -math.inf):
        with pytest.raises(InvalidInput, match="must be positive"):
            Budget("pure", amount)


def test_pure_and_gaussian_oracles_read_a_budget_in_rho() -> None:
    assert Budget("pure", 0.3).epsilon == 0.3
    assert Budget("zcdp", 0.5).epsilon == pytest.approx(1.0)
    assert Budget("zcdp", 0.5).mu == pytest.approx(1.0)
    assert Budget("gaussian", 4.0).mu == pytest.approx(2.0)


weights = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=9)


@given(weights, weights, st.binary(min_size=32, max_size=32))
@EXACT
def test_shares_of_the_users_are_disjoint_and_cover_all_as_parts_of_a_share_do_by_its_own_key(
    outer: list[float], inner: list[float], key: bytes
) -> None:
    users, rng = np.array([*range(500), 2**64 - 1, 2**63, 2**53 + 1], np.uint64), PublicRng(key)
    everybody, drawn = Budget("pure", 1.5, delta=1e-6), unit_floats(rng.of_users(users))
    shares = everybody.split_users(rng, *outer)
    parts = [(share, share.split_users(KEY, *inner), inner) for share in shares]
    for whole, among, given_weights in ((everybody, shares, outer), *parts):
        found = [part.user_share for part in among]
        edges = [share.low for share in found] + [found[-1].high]
        assert edges[1:] == [share.high for share in found]
        assert (edges[0], edges[-1]) == ((whole.user_share.low, whole.user_share.high) if whole.user_share else (0, 1))
        for part, share, weight in zip(among, found, given_weights, strict=True):
            assert (part.amount, part.delta, share.rng) == (1.5, 1e-6, rng)
            assert np.array_equal(share.holds(users), (share.low <= drawn) & (drawn < share.high))
            assert part.fraction == pytest.approx(whole.fraction * weight / sum(given_weights), rel=2e-6)
    border = drawn[0].item()  # hers is in one of both
    sides = Share(rng, 0, 0.0, border), Share(rng, 1, border, 1.0)
    assert [share.holds(users[:1]).item() for share in sides] == [False, True]

"""Budgets: shares that add up and come back in order, and shares of the users that overlap nowhere."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from cloister.core.budget import Budget, Measure, Share
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng, unit_floats
from tests.alarms import Alarm

EXACT = settings(derandomize=True, deadline=None, max_examples=50)
KEY = PublicRng(b"k" * 32)
positive = st.floats(1e-3, 1e3)
MEASURES: list[Measure] = ["pure", "gaussian", "zcdp"]


@given(st.sampled_from(MEASURES), positive, st.lists(positive, min_size=1, max_size=6))
@EXACT
def test_shares_add_up_and_come_back_in_the_order_given(measure: Measure, amount: float, weights: list[float]) -> None:
    shares = Budget(measure, amount).split(*weights)
    assert [s.measure for s in shares] == [measure] * len(weights)
    assert math.fsum(s.amount for s in shares) == pytest.approx(amount, rel=1e-12)
    for share, weight in zip(shares, weights, strict=True):
        assert share.amount == pytest.approx(amount * weight / sum(weights), rel=1e-12)


def test_a_split_is_not_swapped() -> None:
    """Sums before counts here, counts before sums there: 2.1 times the budget at d = 50 in a package of the field."""
    few, many = Budget("gaussian", 1.0).split(1, math.sqrt(200))
    assert few.amount == pytest.approx(0.0660, abs=1e-4)
    assert many.amount == pytest.approx(0.9340, abs=1e-4)
    small, large = Budget("pure", 9.0).split_for(1, 8)
    assert (small.amount, large.amount) == pytest.approx((3.0, 6.0))


def test_a_delta_is_shared_as_the_budget_is() -> None:
    budget = Budget("pure", 1.0, delta=1e-6)
    assert budget.over(4).delta == 2.5e-7
    assert [part.delta for part in budget.split(1, 3)] == pytest.approx([2.5e-7, 7.5e-7])
    assert [part.delta for part in budget.split_for(1, 8)] == pytest.approx([1e-6 / 3, 2e-6 / 3])
    assert [part.delta for part in budget.split_users(KEY, 1, 1)] == [1e-6, 1e-6]  # nobody is in both


@pytest.mark.parametrize("measure", MEASURES)
def test_the_best_split_of_many_has_equal_slopes(measure: Measure) -> None:
    """Lagrange: d error / d share is the same for all."""
    power = 2 if measure == "pure" else 1
    errors = [1.0, 0.2, 7.0, 30.0]
    shares = [b.amount / 2.5 for b in Budget(measure, 2.5).split_for(*errors)]
    assert sum(shares) == pytest.approx(1.0)
    slopes = [power * e * s ** (-power - 1) for e, s in zip(errors, shares, strict=True)]
    assert slopes == pytest.approx([slopes[0]] * 4)


def test_exact_answers_share_nothing() -> None:
    infinite = Budget("exact", math.inf)
    assert infinite.split_for(0.0, 3.0) == (infinite, infinite)
    assert infinite.over(5) == infinite


def test_a_budget_that_is_not_positive_is_refused() -> None:
    for amount in (0.0, -1.0, math.nan, -math.inf):
        with pytest.raises(InvalidInput, match="must be positive"):
            Budget("pure", amount)


def test_pure_and_gaussian_oracles_read_a_budget_in_rho() -> None:
    assert Budget("pure", 0.3).epsilon == 0.3
    assert Budget("zcdp", 0.5).epsilon == pytest.approx(1.0)
    assert Budget("zcdp", 0.5).mu == pytest.approx(1.0)
    assert Budget("gaussian", 4.0).mu == pytest.approx(2.0)
    with pytest.raises(InvalidInput, match="pure oracle was given a Gaussian budget"):
        _ = Budget("gaussian", 1.0).epsilon
    with pytest.raises(InvalidInput, match="Gaussian oracle was given a pure budget"):
        _ = Budget("pure", 1.0).mu


weights = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=9)


@given(weights, st.binary(min_size=32, max_size=32))
@EXACT
def test_shares_of_the_users_are_disjoint_and_cover_all(given_weights: list[float], key: bytes) -> None:
    parts = Budget("pure", 1.5).split_users(PublicRng(key), *given_weights)
    shares = [p.user_share for p in parts]
    assert all(p.amount == 1.5 for p in parts)
    assert shares[0].low == 0.0
    assert shares[-1].high == 1.0
    assert all(a.high == b.low for a, b in pairwise(shares))
    users = np.array([*range(500), 2**64 - 1, 2**63, 2**53 + 1], np.uint64)
    assert (sum(s.holds(users).astype(int) for s in shares) == 1).all()
    border = unit_floats(PublicRng(key).of_users(users[:1])).item()  # hers is in one of both
    sides = Share(PublicRng(key), 0, 0.0, border), Share(PublicRng(key), 1, border, 1.0)
    assert np.array_equal(sides[0].holds(users), ~sides[1].holds(users))
    for share, weight in zip(shares, given_weights, strict=True):
        assert share.fraction == pytest.approx(weight / sum(given_weights), rel=2e-6)


@given(weights, weights, st.binary(min_size=32, max_size=32))
@EXACT
def test_parts_of_a_share_of_the_users_are_disjoint_and_fill_it_by_its_own_key(
    outer: list[float], inner: list[float], key: bytes
) -> None:
    users = np.array([*range(500), 2**64 - 1, 2**63, 2**53 + 1], np.uint64)
    for whole in Budget("pure", 1.5, delta=1e-6).split_users(PublicRng(key), *outer):
        parts = whole.split_users(KEY, *inner)
        assert all((part.amount, part.delta) == (1.5, 1e-6) for part in parts)
        assert all(part.user_share.rng == PublicRng(key) for part in parts)
        assert (parts[0].user_share.low, parts[-1].user_share.high) == (whole.user_share.low, whole.user_share.high)
        assert all(a.user_share.high == b.user_share.low for a, b in pairwise(parts))
        held = sum(part.user_share.holds(users).astype(int) for part in parts)
        assert np.array_equal(held, whole.user_share.holds(users).astype(int))
        for part, weight in zip(parts, inner, strict=True):
            assert part.fraction == pytest.approx(whole.fraction * weight / sum(inner), rel=2e-6)


@pytest.mark.alarm(1e-8)
def test_shares_under_another_key_are_independent(alarm: Alarm) -> None:
    """Chi-square of a two by two table."""
    users = np.arange(50_000, dtype=np.uint64)
    one, other = (Budget("pure", 1.0).split_users(KEY.child(i), 1, 1)[0].user_share.holds(users) for i in range(2))
    table = [[(one & other).sum(), (one & ~other).sum()], [(~one & other).sum(), (~one & ~other).sum()]]
    alarm.fits(stats.chi2_contingency(table).pvalue)

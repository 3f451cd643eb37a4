"""Budgets: shares that add up and come back in order, and shares of the users that overlap nowhere."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.budget import Budget, Measure, Share
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng, unit_floats

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


@given(weights, weights, st.binary(min_size=32, max_size=32))
@EXACT
def test_shares_of_the_users_are_disjoint_and_fill_what_is_split_by_its_own_key(
    outer: list[float], inner: list[float], key: bytes
) -> None:
    users = np.array([*range(500), 2**64 - 1, 2**63, 2**53 + 1], np.uint64)
    wholes = Budget("pure", 1.5, delta=1e-6).split_users(PublicRng(key), *outer)
    assert (wholes[0].user_share.low, wholes[-1].user_share.high) == (0.0, 1.0)
    assert (sum(whole.user_share.holds(users).astype(int) for whole in wholes) == 1).all()
    border = unit_floats(PublicRng(key).of_users(users[:1])).item()  # hers is in one of both
    sides = Share(PublicRng(key), 0, 0.0, border), Share(PublicRng(key), 1, border, 1.0)
    assert np.array_equal(sides[0].holds(users), ~sides[1].holds(users))
    for whole, share in zip(wholes, outer, strict=True):
        assert whole.fraction == pytest.approx(share / sum(outer), rel=2e-6)
        parts = whole.split_users(KEY, *inner)
        assert all((part.amount, part.delta) == (1.5, 1e-6) for part in parts)
        assert all(part.user_share.rng == PublicRng(key) for part in parts)
        assert (parts[0].user_share.low, parts[-1].user_share.high) == (whole.user_share.low, whole.user_share.high)
        assert all(a.user_share.high == b.user_share.low for a, b in pairwise(parts))
        for part, weight in zip(parts, inner, strict=True):
            assert part.fraction == pytest.approx(whole.fraction * weight / sum(inner), rel=2e-6)

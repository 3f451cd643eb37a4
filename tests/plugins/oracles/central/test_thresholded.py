"""Counts above a threshold: delta by enumeration, the least threshold, and how delta adds up."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.accounting import Accountant, Spent, Total, epsilon_of_discrete
from cloister.plugin import (
    Budget,
    Event,
    Floats,
    InvalidInput,
    PublicRng,
    QuestionContext,
    Space,
)
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.plugins.oracles.central.thresholded import ThresholdedCounts, delta_of, least_threshold

SETTING = QuestionContext(1000, 1.0, PublicRng.from_seed(1))
ORACLE = ThresholdedCounts()


def opened(levels: int, epsilon: float, delta: float) -> Any:
    return ORACLE.open(Space((2,) * levels), Budget("pure", epsilon, delta=delta), SETTING)


def released(count: int, scale: float, above: int, most: int) -> Floats:
    """The law of what is released of a bucket: chances of 0, of above + 1 .. most, and of more than that in one.

    Beyond all counts, the likelihoods of two of them have one ratio: as one outcome, these tell exactly as much apart.
    """
    law = np.zeros(most - above + 2)
    if not count:
        law[0] = 1.0
        return law
    q = math.exp(-1 / scale)
    law[1:-1] = (1 - q) / (1 + q) * q ** np.abs(np.arange(above + 1, most + 1) - count)
    law[-1] = q ** (most + 1 - count) / (1 + q)
    law[0] = 1 - law[1:].sum()
    return law


def joint(counts: tuple[int, ...], scale: float, above: int, most: int) -> Floats:
    """The law of all outcomes of several buckets, with noise of their own."""
    law = np.ones(1)
    for count in counts:
        law = np.multiply.outer(law, released(count, scale, above, most)).ravel()
    return law


def hockey_stick(one: Floats, other: Floats, epsilon: float) -> float:
    """The least delta for epsilon, one way."""
    return float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum())


@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.1), (3.0, 0.01), (6.0, 1e-4), (0.7, 0.6)])
def test_delta_is_exact_by_enumeration_of_all_outcomes(levels: int, epsilon: float, delta: float) -> None:
    """All counts of a row's buckets, without it and with it. The divergence at epsilon is at most the declared delta
    both ways, and equal to it where the row is alone; so it is with all of epsilon where it is not."""
    channel = opened(levels, epsilon, delta)
    scale, above, declared = channel.law.scale, channel.threshold.above, channel.events[0].delta
    assert declared <= delta
    for counts in combinations_with_replacement(sorted({0, 1, 2, above, above + 2}), levels):
        without = joint(counts, scale, above, above + 4)
        given = joint(tuple(c + 1 for c in counts), scale, above, above + 4)
        assert without.sum() == pytest.approx(given.sum()) == pytest.approx(1)
        for a, b in ((without, given), (given, without)):
            assert hockey_stick(a, b, epsilon) <= declared * (1 + 1e-8)
        if not any(counts):
            assert hockey_stick(given, without, epsilon) == pytest.approx(declared, rel=1e-8)
        if all(counts):
            assert hockey_stick(given, without, epsilon) < 1e-9
            assert hockey_stick(given, without, epsilon * 0.98) > 0


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 60), st.floats(1e-3, 50), st.floats(-300, -0.1).map(lambda x: 10**x))
def test_the_least_threshold_is_the_least(levels: int, epsilon: float, delta: float) -> None:
    scale = levels / epsilon
    found = least_threshold(scale, levels, delta)
    assert 0 < found.delta <= delta or (found.delta == 0 and delta < 1e-290)
    assert found.above == 1 or delta_of(scale, levels, found.above - 1) > delta
    if found.above > 1:
        assert found.delta >= delta * math.exp(-1 / scale) * (1 - 1e-6) * (1 - delta) ** 2


def test_without_a_delta_it_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidInput, match=r"pass delta .* or count with discrete-laplace"):
        opened(3, 1.0, 0.0)
    with pytest.raises(InvalidInput, match=r"pass delta .* or take .*discrete-laplace for thresholded"):
        Total(1.0).measured({"pure"}, uses_delta=True)


def books(total: Total, *measures: Any) -> Accountant:
    return Accountant(total, total.measured(measures, uses_delta=True))


@pytest.mark.parametrize("rounds", [1, 3, 10])
def test_rounds_share_epsilon_and_delta_and_the_run_keeps_both(rounds: int) -> None:
    total = Total(1.0, 1e-6)
    account = books(total, "pure")
    spent = account.forecast([ORACLE.open(Space((2,) * 5), account.budget.over(rounds), SETTING).events] * rounds)
    assert 0.5e-6 < spent.delta <= 1e-6
    assert spent.epsilon(1e-6) == pytest.approx(1.0)
    assert spent.epsilon(spent.delta * 0.999) == math.inf
    assert spent.epsilon(0.0) == math.inf


def test_thresholds_and_gaussian_noise_divide_delta() -> None:
    total = Total(1.0, 1e-6)
    account = books(total, "pure", "gaussian")
    each = account.budget.over(2)
    space = Space((2,) * 4)
    gauss = DiscreteGaussian().open(space, each, SETTING).events
    spent = account.forecast([(*ORACLE.open(space, each, SETTING).events, *gauss)])
    assert 0 < spent.delta <= 2.5e-7
    assert spent.epsilon(1e-6) <= 1.0
    discrete = epsilon_of_discrete(
        math.sqrt(spent.mu_squared), spent.drift, spent.tail, 1e-6 - spent.delta, spent.pures
    )
    assert spent.epsilon(1e-6) == discrete
    assert spent.epsilon(spent.delta) == math.inf


@pytest.mark.parametrize("wrong", [-1e-9, 1.0, math.nan])
def test_a_delta_that_is_no_probability_is_refused(wrong: float) -> None:
    with pytest.raises(InvalidInput, match="delta is a probability"):
        Budget("pure", 1.0, delta=wrong)
    with pytest.raises(InvalidInput, match="probability"):
        Spent.on([Event("thresholded", Budget("pure", 0.5), delta=wrong)])


def test_the_noise_is_that_of_discrete_laplace_and_so_is_the_variance() -> None:
    space, budget = Space((4, 8)), Budget("pure", 0.5, delta=1e-6)
    plain = DiscreteLaplace()
    assert ORACLE.variance(space, budget, SETTING) == plain.variance(space, budget, SETTING)
    mine, other = ORACLE.open(space, budget, SETTING), plain.open(space, budget, SETTING)
    assert mine.law == other.law
    assert attrs.evolve(mine.events[0], mechanism="discrete-laplace", delta=0.0) == other.events[0]

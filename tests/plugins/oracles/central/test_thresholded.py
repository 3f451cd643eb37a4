"""Counts above a threshold: delta by enumeration, the least threshold, and how delta adds up. Under Gaussian noise: how
often a lone row shows, by the exact law and to its adversary."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from cloister.accounting import Accountant, PrivacyTarget, Spent, epsilon_of_discrete
from cloister.core.errors import BudgetExceeded
from cloister.plugin import (
    Budget,
    Event,
    Floats,
    InvalidInput,
    NoiseRng,
    PublicRng,
    QuestionContext,
    Space,
    SparseChannel,
)
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.thresholded import ThresholdedCounts, lone_chance
from cloister.plugins.oracles.central.thresholded_gaussian import ThresholdedGaussian, lone_chance as gaussian_chance
from cloister.plugins.oracles.central.thresholds import UP_DELTA, delta_of, least_threshold
from tests.alarms import Alarm

SETTING = QuestionContext(1000, 1.0, PublicRng.from_seed(1))
ORACLE, GAUSSIAN = ThresholdedCounts(), ThresholdedGaussian()


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
    channel = ORACLE.open(Space((2,) * levels), Budget("pure", epsilon, delta=delta), SETTING)
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
    found = least_threshold(partial(lone_chance, scale), 1, levels, delta)
    assert 0 < found.delta <= delta
    assert found.above == 1 or delta_of(lone_chance(scale, found.above - 1), levels) > delta
    if found.above > 1 and found.delta > 1e-290:
        assert found.delta >= delta * math.exp(-1 / scale) * (1 - 1e-6) * (1 - delta) ** 2


def test_a_delta_that_no_double_holds_is_not_none() -> None:
    """A run would promise an epsilon without one."""
    (event,) = ORACLE.open(Space((2,)), Budget("pure", 2000.0, delta=1e-3), SETTING).events
    assert 0 < event.delta < 1e-300


def test_without_a_delta_it_is_refused_with_what_to_do() -> None:
    for oracle, other in ((ORACLE, "discrete-laplace"), (GAUSSIAN, "discrete-gaussian")):
        with pytest.raises(InvalidInput, match=rf"pass delta .* or count with {other}"):
            oracle.open(Space((2, 2)), Budget(oracle.measure, 1.0), SETTING)
    with pytest.raises(InvalidInput, match=r"pass delta .* or take .*discrete-laplace for thresholded"):
        PrivacyTarget(1.0).measured({"pure"}, uses_delta=True)


TOTAL = PrivacyTarget(1.0, 1e-6)


def books(*measures: Any) -> Accountant:
    return Accountant(TOTAL, TOTAL.measured(measures, uses_delta=True))


@pytest.mark.parametrize("rounds", [1, 3, 10])
@pytest.mark.parametrize(("oracle", "most"), [(ORACLE, 1e-6), (GAUSSIAN, 0.5e-6)])
def test_rounds_share_the_budget_and_delta_and_the_run_keeps_both(oracle: Any, most: float, rounds: int) -> None:
    account = books(oracle.measure)
    events = oracle.open(Space((2,) * 5), account.budget.over(rounds), SETTING).events
    spent = account.forecast([events] * rounds)
    assert most / 2 < spent.delta <= most
    assert 0.99 < spent.epsilon(1e-6) <= 1.0
    assert spent.epsilon(spent.delta * 0.999) == math.inf
    with pytest.raises(BudgetExceeded):
        account.forecast([events] * (rounds + 1))


def test_thresholds_and_gaussian_noise_divide_delta() -> None:
    account = books("pure", "gaussian")
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
def test_a_delta_or_a_ratio_of_laws_that_there_is_not_is_refused(wrong: float) -> None:
    with pytest.raises(InvalidInput, match="delta is a probability"):
        Budget("pure", 1.0, delta=wrong)
    for fact, message in (("delta", "probability"), ("ratio", "ratio")):
        facts: Any = {fact: wrong}
        with pytest.raises(InvalidInput, match=message):
            Spent.on([Event("thresholded", Budget("gaussian", 0.04), 10, 2.0**22, **facts)])


# Under Gaussian noise.


def with_gaussian(levels: int, mu: float, delta: float, size: int = 2) -> Any:
    return GAUSSIAN.open(Space((size,) * levels), Budget("gaussian", mu * mu, delta=delta), SETTING)


def beyond(sigma: float, least: int) -> float:
    """The exact chance that discrete Gaussian noise of this sigma is ``least`` or more."""
    reach = np.arange(-math.ceil(40 * sigma) - least, math.ceil(40 * sigma) + least + 1)
    law = np.exp(-(reach**2) / (2 * sigma * sigma))
    return float(law[reach >= least].sum() / law.sum())


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.5, 40.0])
@pytest.mark.parametrize("shift", [0, 3])
def test_a_lone_row_shows_with_no_more_than_the_chance_that_is_paid_for(sigma: float, shift: int) -> None:
    """By the law of the noise as it is drawn, in steps of 2^-shift rows: 1 + Z > T."""
    steps = 2**shift
    for above in (2, 3, 5, 10, 60):
        shows = beyond(sigma * steps, (above - 1) * steps + 1)
        assert shows <= gaussian_chance(sigma, above) * UP_DELTA
        if sigma * steps > 30 and shows > 1e-12:
            assert shows >= gaussian_chance(sigma, above) * UP_DELTA * (
                1 - 2 / (sigma * steps) * (above - 1) / sigma - 0.03
            )


def test_the_noise_pays_for_a_count_of_each_level_and_the_threshold_for_all_of_them() -> None:
    channel = with_gaussian(16, 0.2, 1e-7)
    (event,) = channel.events
    assert channel.deviation == pytest.approx(4 / 0.2)
    assert (event.l0_sensitivity, event.spent) == (16, Budget("gaussian", 0.2 * 0.2, delta=1e-7))
    above = channel.threshold.above
    assert event.delta == delta_of(gaussian_chance(channel.deviation, above), 16) <= 1e-7
    assert event.delta == pytest.approx(16 * stats.norm.sf((above - 1) / 20), rel=1e-6)


@pytest.mark.alarm(1e-8)
@pytest.mark.parametrize("far", [0, 2**50])
def test_the_adversary_sees_a_lone_row_as_often_as_delta_says_and_no_more(far: int, alarm: Alarm) -> None:
    """A row that is alone in one bucket of each of two levels, many times over, in a small space and a large one: some
    bucket of it shows with the chance delta, which a threshold that pays for one level alone would double."""
    size, delta = 40_000, 0.05
    channel = with_gaussian(2, 1.0, delta, far + size)
    assert isinstance(channel, SparseChannel) == (far > 0)
    ids = np.arange(size) + far
    summary = channel.absorb(channel.encode(np.stack([ids, ids], axis=1), ids, NoiseRng.for_tests(0)))
    table = channel.decode(summary, NoiseRng.for_tests(3))
    shown = (table.at(ids, 0) != 0) | (table.at(ids, 1) != 0)
    promised = channel.events[0].delta
    assert delta / 2 < promised <= delta
    alarm.fits(stats.binomtest(int(shown.sum()), size, promised).pvalue, of=2)
    if far:
        assert not table.at(np.arange(1000), 0).any()  # what nobody is in never shows
    alarm.fits(
        stats.binomtest(int((table.at(ids, 0) > channel.threshold.above).sum()), size, promised / 2).pvalue, of=2
    )

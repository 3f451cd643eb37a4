"""Counts above a threshold under Gaussian noise: how often a lone row shows, by the exact law and to its adversary."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cloister.accounting import Accountant, Total
from cloister.core.errors import BudgetExceeded
from cloister.plugin import Budget, InvalidInput, NoiseRng, PublicRng, QuestionContext, Space, SparseChannel
from cloister.plugins.oracles.central.thresholded_gaussian import ThresholdedGaussian, delta_of
from tests.alarms import Alarm

SETTING = QuestionContext(1000, 1.0, PublicRng.from_seed(1))
ORACLE = ThresholdedGaussian()


def opened(levels: int, mu: float, delta: float, size: int = 2) -> Any:
    return ORACLE.open(Space((size,) * levels), Budget("gaussian", mu * mu, delta=delta), SETTING)


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
        assert shows <= delta_of(sigma, 1, above)
        if sigma * steps > 30 and shows > 1e-12:
            assert shows >= delta_of(sigma, 1, above) * (1 - 2 / (sigma * steps) * (above - 1) / sigma - 0.03)


def test_the_noise_pays_for_a_count_of_each_level_and_the_threshold_for_all_of_them() -> None:
    channel = opened(16, 0.2, 1e-7)
    (event,) = channel.events
    assert channel.deviation == pytest.approx(4 / 0.2)
    assert (event.l0_sensitivity, event.spent) == (16, Budget("gaussian", 0.2 * 0.2, delta=1e-7))
    above = channel.threshold.above
    assert event.delta == delta_of(channel.deviation, 16, above) <= 1e-7
    assert event.delta == pytest.approx(16 * stats.norm.sf((above - 1) / 20), rel=1e-6)


@pytest.mark.alarm(1e-8)
@pytest.mark.parametrize("far", [0, 2**50])
def test_the_adversary_sees_a_lone_row_as_often_as_delta_says_and_no_more(far: int, alarm: Alarm) -> None:
    """A row that is alone in one bucket of each of two levels, many times over, in a small space and a large one: some
    bucket of it shows with the chance delta, which a threshold that pays for one level alone would double."""
    size, delta = 40_000, 0.05
    channel = opened(2, 1.0, delta, far + size)
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


def test_without_a_delta_it_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidInput, match=r"pass delta .* or count with discrete-gaussian"):
        opened(3, 1.0, 0.0)


@pytest.mark.parametrize("rounds", [1, 3])
def test_rounds_share_the_budget_and_delta_and_the_run_keeps_both(rounds: int) -> None:
    total = Total(1.0, 1e-6)
    account = Accountant(total, total.measured(["gaussian"], uses_delta=True))
    events = ORACLE.open(Space((2,) * 5), account.budget.over(rounds), SETTING).events
    spent = account.forecast([events] * rounds)
    assert 0.2e-6 < spent.delta <= 0.5e-6
    assert spent.epsilon(1e-6) <= 1.0
    with pytest.raises(BudgetExceeded):
        Accountant(total, account.budget).forecast([events] * (rounds + 1))

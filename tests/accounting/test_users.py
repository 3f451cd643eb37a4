"""What users with several rows pay: figures, and exact laws of m rows of one user at once."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.accounting.accountant import Accountant
from cloister.accounting.composition import Spent
from cloister.accounting.ledger.privacy_filter import Cost
from cloister.accounting.privacy_target import PrivacyTarget
from cloister.accounting.users import of_row, of_user
from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget, Event, Measure
from cloister.core.errors import BudgetExceeded, InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.registry.registry import registry

CONTEXT = QuestionContext(1000, 1.0, PublicRng.from_seed(1))
MEASURES: tuple[Measure, ...] = ("pure", "gaussian", "zcdp")


def made(role: Any, name: str) -> Any:
    return registry().load(registry().spec(role, name))()


def test_epsilon_grows_with_the_rows_and_rho_and_mu_squared_with_their_square() -> None:
    """Pure noise that is paid in rho grows in both."""
    paid = [of_user(Event("m", Budget(measure, 0.5)), 3).spent.amount for measure in MEASURES]
    assert paid == [1.5, 4.5, 4.5]
    event = of_user(Event("m", Budget("zcdp", 0.5), pure=1.0), 4)
    spent = Spent.on([event])
    assert (event.spent.amount, event.pure, spent.pure, spent.all_rho) == (8.0, 4.0, 4.0, 8.0)


@pytest.mark.parametrize("m", [1, 2, 3, 2**20])
def test_a_user_of_m_rows_pays_exactly_m_times_or_its_square(m: int) -> None:
    """Two rows are no exception: figures that the event declares and those of the run, to the last digit."""
    for measure in MEASURES:
        event = Event("m", Budget(measure, 0.25), 3, 2.0**16, pure=0.5)
        paid, back = of_user(event, m), of_row(Budget(measure, 0.25), m)
        times = m if measure == "pure" else m * m
        assert (paid.spent.amount, paid.pure, paid.l0_sensitivity) == (0.25 * times, 0.5 * m, 3 * m)
        assert (paid.sigma, paid.ratio, paid.mechanism) == (event.sigma, event.ratio, event.mechanism)
        assert back.amount == 0.25 / times * (1 if m == 1 else 1 - 2.0**-50)
        assert PrivacyTarget(1.0, 1e-6, rows_per_user=m).paid(event.spent).amount == 0.25 * times
    assert of_user(event, 1) is of_user(event, None) is event
    assert of_row(event.spent, 1) is of_row(event.spent, None) is event.spent


def test_every_row_of_a_user_touches_numbers_of_its_own() -> None:
    event = Event("m", Budget("gaussian", 0.5), 7, 2.0**20, ratio=1e-9)
    one, many = (Spent.on([of_user(event, m)]) for m in (1, 5))
    assert many.drift == pytest.approx(5 * one.drift, rel=1e-12)
    assert many.tail == pytest.approx(5 * one.tail, rel=1e-12)
    assert of_user(event, 5).sigma == event.sigma


def test_a_delta_that_was_proved_for_one_row_is_not_multiplied() -> None:
    """Two rows of one user pass a threshold together far more easily than one: m times delta would be too little."""
    event = Event("thresholded", Budget("pure", 0.5), delta=1e-6)
    assert of_user(event, None) == of_user(event, 1) == event
    with pytest.raises(InvalidInput, match="'thresholded' spends a delta of its own"):
        of_user(event, 2)
    with pytest.raises(InvalidInput, match="proved for one row, and not for users with several"):
        PrivacyTarget(1.0, 1e-6, rows_per_user=2).measured({"pure"}, uses_delta=True)
    assert PrivacyTarget(1.0, 1e-6, rows_per_user=1).measured({"pure"}, uses_delta=True).delta == 1e-6


@given(st.sampled_from(MEASURES), st.floats(1e-6, 100.0), st.integers(1, 2**20))
def test_rows_never_get_more_than_their_user_pays(measure: Measure, amount: float, m: int) -> None:
    whole = Budget(measure, amount)
    back = of_user(Event("m", of_row(whole, m)), m).spent.amount
    assert amount * (1 - 1e-14) <= back <= amount


@settings(max_examples=30)
@given(st.sampled_from(MEASURES[:2]), st.floats(0.01, 8.0), st.integers(1, 100))
def test_a_run_that_spends_its_budget_is_admitted_and_one_that_spends_a_row_s_is_not(
    measure: Measure, epsilon: float, m: int
) -> None:
    total = PrivacyTarget(epsilon, 1e-6, rows_per_user=m)
    budget = total.measured({measure})
    accountant = Accountant(total, budget)
    spent = accountant.forecast([[Event("m", part) for part in budget.split(1, 2)]])
    assert spent.epsilon(1e-6) <= epsilon * (1 + 1e-9)
    assert spent.epsilon(1e-6) >= 0.99 * epsilon
    if m > 1:
        rows = PrivacyTarget(epsilon, 1e-6).measured({measure})
        with pytest.raises(BudgetExceeded):
            Accountant(total, budget).forecast([[Event("m", rows)]])
    accountant.charge(0, [Event("m", part) for part in budget.split(1, 2)])
    assert accountant.left <= 1e-9 * total.paid(budget).amount


@pytest.mark.parametrize(("measure", "rho"), [("pure", 0.5), ("gaussian", None), ("zcdp", None)])
def test_a_ledger_is_charged_what_the_user_pays(measure: Measure, rho: float | None) -> None:
    """Of every row's budget m^2 times the rho, and not what one row pays."""
    one, many = (PrivacyTarget(1.0, 1e-6, rows_per_user=m) for m in (1, 8))
    costs = [Cost.reserved(total, total.measured({measure})) for total in (one, many)]
    assert attrs.astuple(costs[1]) == pytest.approx(attrs.astuple(costs[0]), rel=1e-12)
    assert rho is None or costs[1].rho == pytest.approx(rho)


# exact laws


def test_counts_under_laplace_noise_are_as_private_for_m_rows_as_was_promised() -> None:
    """The law is P(x) ~ e^(-|x| / s): with all m rows in one bucket its logarithm moves by m / s, and no further."""
    x = np.arange(-60, 60)
    for m, epsilon in ((1, 0.1), (2, 1.0), (5, 4.0), (17, 1.0)):
        budget = PrivacyTarget(epsilon, rows_per_user=m).measured({"pure"})
        scale = made("FrequencyOracle", "discrete-laplace").open(Space((4,)), budget, CONTEXT).law.scale
        moved = np.abs(np.abs(x) - np.abs(x - m)).max() / scale
        assert epsilon * (1 - 1e-9) <= moved <= epsilon


@pytest.mark.parametrize("m", [1, 2, 7])
def test_counts_under_gaussian_noise_are_as_private_for_m_rows_as_was_promised(m: int) -> None:
    """Renyi divergences by enumeration: of order a at most a rho, and nearly that."""
    rho = 1 / 50
    law = made("FrequencyOracle", "discrete-gaussian").open(Space((4,)), of_row(Budget("zcdp", rho), m), CONTEXT)
    sigma = law.law.sigma / 2.0**law.shift  # as wide, in whole rows
    x = np.arange(-int(60 * sigma), int(60 * sigma))
    log_p, log_q = (-((x - shift) ** 2) / (2 * sigma**2) for shift in (0, m))
    norm = math.log(np.exp(log_p).sum())
    for order in (1.5, 2.0, 8.0):
        divergence = (math.log(np.exp(order * log_p + (1 - order) * log_q).sum()) - norm) / (order - 1)
        assert 0.999 * order * rho <= divergence <= order * rho * (1 + 1e-9)

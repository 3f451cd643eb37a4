"""zCDP against 40-digit arithmetic, OpenDP and dp-accounting."""

from __future__ import annotations

import math

import mpmath
import pytest
from hypothesis import example, given, settings, strategies as st

from cloister.accounting import delta_of_rho, epsilon_of_rho, mu_of, rho_of, rho_of_pure

EPSILONS = st.floats(-6, 2).map(lambda x: 10**x)
DELTAS = st.floats(-300, math.log10(0.999)).map(lambda x: max(10**x, 1e-300))


def tight(rho: float, epsilon: float) -> mpmath.mpf:
    """The infimum over all orders, in 40 digits: the order is the root of the derivative of log delta."""
    with mpmath.workdps(40):
        r, e, low, high = mpmath.mpf(rho), mpmath.mpf(epsilon), mpmath.mpf(-200), mpmath.mpf(200)
        for _ in range(75):  # where a wrong last digit of the order changes delta by its square
            x = mpmath.exp((low + high) / 2)
            rising = (2 * x + 1) * r - e - mpmath.log1p(1 / x) > 0
            low, high = (low, (low + high) / 2) if rising else ((low + high) / 2, high)
        a = 1 + x
        return min(mpmath.mpf(1), mpmath.exp(x * (a * r - e) + a * mpmath.log(1 - 1 / a)) / x)


@settings(max_examples=30, deadline=None)
@given(EPSILONS, DELTAS)
@example(10**-3.25, 0.999)
def test_rho_never_exceeds_its_target_and_is_the_largest_that_does_not_and_epsilon_comes_back(
    epsilon: float, delta: float
) -> None:
    rho = rho_of(epsilon, delta)
    least = tight(rho, epsilon)
    assert least <= delta
    assert delta_of_rho(rho, epsilon) == pytest.approx(float(least), rel=1e-10)
    assert tight(rho * (1 + 1e-9), epsilon) > delta * (1 - 1e-10)
    back = epsilon_of_rho(rho, delta)
    again = tight(rho, back)
    assert again <= delta
    # no more than is needed: by epsilon itself, or, where delta hardly depends on it (near 1), by delta
    assert back <= epsilon * (1 + 1e-9) or again >= delta * (1 - 1e-9)


@settings(max_examples=30, deadline=None)
@given(EPSILONS, DELTAS)
def test_rho_costs_more_than_exact_gaussian_accounting(epsilon: float, delta: float) -> None:
    assert math.sqrt(2 * rho_of(epsilon, delta)) <= mu_of(epsilon, delta)


def test_dp_accounting_on_a_fine_grid_of_orders_agrees() -> None:
    from dp_accounting.dp_event import ZCDpEvent
    from dp_accounting.rdp import RdpAccountant

    theirs = RdpAccountant(orders=[1 + x / 100 for x in range(1, 5000)]).compose(ZCDpEvent(0.05)).get_epsilon(1e-6)
    assert epsilon_of_rho(0.05, 1e-6) <= theirs * (1 + 1e-9)
    assert epsilon_of_rho(0.05, 1e-6) == pytest.approx(theirs, rel=1e-4)


def test_a_pure_epsilon_costs_half_its_square() -> None:
    assert rho_of_pure(0.5) == 0.125
    assert rho_of_pure(math.inf) == math.inf


def test_the_ends_are_no_loss_and_no_privacy() -> None:
    assert delta_of_rho(0.0, 1.0) == 0.0
    assert delta_of_rho(math.inf, 1.0) == 1.0
    assert all(delta_of_rho(rho, 1.0) == 1.0 for rho in (60.0, 689.0, 692.0, 750.0, 1e4, 1e300))
    assert epsilon_of_rho(0.0, 1e-6) == 0.0
    assert epsilon_of_rho(math.inf, 1e-6) == math.inf

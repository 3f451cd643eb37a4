"""zCDP against 40-digit arithmetic, OpenDP and dp-accounting."""

from __future__ import annotations

import math

import mpmath
import pytest
from hypothesis import example, given, settings, strategies as st

from cloister.accounting import delta_of_rho, epsilon_of_mu, epsilon_of_rho, mu_of, rho_of, rho_of_pure
from cloister.core.errors import InvalidInput

EPSILONS = st.floats(-6, 2).map(lambda x: 10**x)
DELTAS = st.floats(-300, math.log10(0.999)).map(lambda x: max(10**x, 1e-300))


def tight(rho: float, epsilon: float) -> mpmath.mpf:
    """The infimum over all orders, in 40 digits: the order is the root of the derivative of log delta."""
    with mpmath.workdps(40):
        r, e, low, high = mpmath.mpf(rho), mpmath.mpf(epsilon), mpmath.mpf(-200), mpmath.mpf(200)
        for _ in range(120):
            x = mpmath.exp((low + high) / 2)
            rising = (2 * x + 1) * r - e - mpmath.log1p(1 / x) > 0
            low, high = (low, (low + high) / 2) if rising else ((low + high) / 2, high)
        a = 1 + x
        return min(mpmath.mpf(1), mpmath.exp(x * (a * r - e) + a * mpmath.log(1 - 1 / a)) / x)


@settings(max_examples=60, deadline=None)
@given(EPSILONS, DELTAS)
def test_rho_never_exceeds_its_target_and_is_the_largest_that_does_not(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    assert tight(rho, epsilon) <= delta
    assert delta_of_rho(rho, epsilon) == pytest.approx(float(tight(rho, epsilon)), rel=1e-10)
    assert tight(rho * (1 + 1e-9), epsilon) > delta * (1 - 1e-10)


@settings(max_examples=50, deadline=None)
@given(EPSILONS, DELTAS)
@example(10**-3.25, 0.999)
def test_epsilon_of_rho_is_on_the_safe_side_of_the_round_trip(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    back = epsilon_of_rho(rho, delta)
    assert tight(rho, back) <= delta
    # no more than is needed: by epsilon itself, or, where delta hardly depends on it (near 1), by delta
    assert back <= epsilon * (1 + 1e-9) or tight(rho, back) >= delta * (1 - 1e-9)


@settings(max_examples=60, deadline=None)
@given(EPSILONS, DELTAS)
def test_rho_costs_more_than_exact_gaussian_accounting(epsilon: float, delta: float) -> None:
    assert math.sqrt(2 * rho_of(epsilon, delta)) <= mu_of(epsilon, delta)


@pytest.mark.parametrize(("rho", "delta"), [(1e-4, 1e-9), (0.02, 1e-6), (0.5, 1e-5), (8.0, 1e-3), (40.0, 1e-12)])
def test_opendp_agrees_to_one_part_in_a_million_and_is_never_above(rho: float, delta: float) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    curve = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=1.0)).map(math.sqrt(2 * rho))
    theirs = curve.epsilon(delta)
    assert epsilon_of_rho(rho, delta) == pytest.approx(theirs, rel=1e-6)
    assert epsilon_of_rho(rho, delta) >= theirs * (1 - 1e-9)


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


def test_epsilon_of_the_same_noise_is_larger_in_rho_than_in_mu() -> None:
    for mu in (0.05, 0.4, 2.0):
        assert epsilon_of_mu(mu, 1e-6) < epsilon_of_rho(mu**2 / 2, 1e-6) < 1.5 * epsilon_of_mu(mu, 1e-6)


@pytest.mark.parametrize("wrong", [math.nan, -1.0])
def test_a_wrong_rho_is_refused(wrong: float) -> None:
    with pytest.raises(InvalidInput, match="rho"):
        epsilon_of_rho(wrong, 1e-6)

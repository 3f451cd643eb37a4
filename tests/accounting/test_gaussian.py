"""Gaussian differential privacy against closed forms, 60-digit arithmetic, dp-accounting and OpenDP's own bound."""

from __future__ import annotations

import math

import mpmath
import pytest
from hypothesis import given, settings, strategies as st

from cloister.accounting import delta_of_mu, epsilon_of_mu, mu_of
from cloister.core.errors import InvalidInput

EPSILONS = st.floats(-6, 2).map(lambda x: 10**x)
DELTAS = st.floats(-300, math.log10(0.999)).map(lambda x: max(10**x, 1e-300))
STARTS = st.floats(-7.5, 36.9)
"""Where the tail begins: u = epsilon / mu - mu / 2."""


def exact(mu: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


def mu_at(u: float, epsilon: float) -> float:
    root = math.sqrt(u * u + 2 * epsilon)
    return root - u if u < 0 else 2 * epsilon / (root + u)


@settings(max_examples=400, deadline=None)
@given(EPSILONS, STARTS)
def test_delta_is_above_the_exact_one_by_one_part_in_1e11(epsilon: float, u: float) -> None:
    mu = mu_at(u, epsilon)
    want = exact(mu, epsilon)
    if want > 1e-300:
        excess = float(mpmath.mpf(delta_of_mu(mu, epsilon)) / want - 1)
        assert excess == pytest.approx(1e-11, abs=1e-12) or delta_of_mu(mu, epsilon) == 1.0


@settings(max_examples=150, deadline=None)
@given(EPSILONS, DELTAS)
def test_mu_never_exceeds_its_target_and_is_the_largest_that_does_not(epsilon: float, delta: float) -> None:
    mu = mu_of(epsilon, delta)
    assert exact(mu, epsilon) <= delta
    assert exact(mu * (1 + 1e-9), epsilon) > delta * (1 - 1e-10)


@settings(max_examples=100, deadline=None)
@given(EPSILONS, DELTAS)
def test_epsilon_of_mu_returns_to_where_mu_of_came_from_and_never_below(epsilon: float, delta: float) -> None:
    mu = mu_of(epsilon, delta)
    back = epsilon_of_mu(mu, delta)
    assert exact(mu, back) <= delta
    assert back <= epsilon * (1 + 1e-9)


@settings(max_examples=100, deadline=None)
@given(EPSILONS, EPSILONS, st.floats(0.01, 8), st.floats(0.01, 8))
def test_delta_falls_with_epsilon_and_grows_with_mu(e1: float, e2: float, m1: float, m2: float) -> None:
    assert delta_of_mu(m1, max(e1, e2)) <= delta_of_mu(m1, min(e1, e2))
    assert delta_of_mu(min(m1, m2), e1) <= delta_of_mu(max(m1, m2), e1)


def test_at_epsilon_zero_delta_is_the_total_variation_distance() -> None:
    for mu in (1e-8, 0.3, 1.0, 5.0):
        assert delta_of_mu(mu, 0.0) == pytest.approx(math.erf(mu / math.sqrt(8)), rel=1e-10)


def test_no_noise_and_no_sensitivity_are_the_two_ends() -> None:
    assert delta_of_mu(0.0, 1.0) == 0.0
    assert delta_of_mu(math.inf, 1.0) == 1.0
    assert delta_of_mu(100.0, 1.0) == 1.0
    assert epsilon_of_mu(0.0, 1e-6) == 0.0
    assert epsilon_of_mu(math.inf, 1e-6) == math.inf


def test_the_classical_calibration_is_safe_below_epsilon_one_and_wasteful() -> None:
    """Dwork and Roth 2014, Theorem A.1."""
    mu = 0.5 / math.sqrt(2 * math.log(1.25 / 1e-6))
    assert 0.2 < epsilon_of_mu(mu, 1e-6) < 0.5


@pytest.mark.parametrize(("sigma", "delta"), [(0.7, 1e-5), (2.0, 1e-6), (10.0, 1e-9), (50.0, 1e-3)])
def test_dp_accounting_agrees_to_one_part_in_a_million_and_is_never_above(sigma: float, delta: float) -> None:
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    loss = GaussianPrivacyLoss(sigma)
    ours = epsilon_of_mu(1 / sigma, delta)
    assert loss.get_delta_for_epsilon(ours) <= delta
    assert loss.get_delta_for_epsilon(ours * (1 - 1e-6)) > delta


def test_the_composition_of_dp_accounting_agrees_with_the_sum_of_squares() -> None:
    """Its pessimistic estimate is above ours; its optimistic one below."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    def of(pessimistic: bool) -> float:
        one = pld.from_gaussian_mechanism(8.0, value_discretization_interval=1e-3, pessimistic_estimate=pessimistic)
        return float(one.self_compose(30).get_epsilon_for_delta(1e-6))

    assert of(False) <= epsilon_of_mu(math.sqrt(30) / 8, 1e-6) <= of(True)
    assert of(True) / of(False) < 1.02


@pytest.mark.parametrize("wrong", [math.nan, -0.1, math.inf])
def test_a_wrong_epsilon_is_refused(wrong: float) -> None:
    with pytest.raises(InvalidInput, match="epsilon"):
        mu_of(wrong, 1e-6)


@pytest.mark.parametrize("wrong", [math.nan, -0.1, 0.0, 1.0, 1e-310])
def test_a_wrong_delta_is_refused(wrong: float) -> None:
    with pytest.raises(InvalidInput, match="delta"):
        mu_of(1.0, wrong)
    with pytest.raises(InvalidInput, match="delta"):
        epsilon_of_mu(1.0, wrong)


def test_a_wrong_mu_is_refused() -> None:
    with pytest.raises(InvalidInput, match="mu"):
        delta_of_mu(math.nan, 1.0)

"""Gaussian differential privacy against closed forms, 60-digit arithmetic, and dp-accounting."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings, strategies as st

from cloister.accounting import delta_of_mu, epsilon_of_mu, epsilon_of_rho, mu_of
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


@settings(max_examples=150, deadline=None)
@given(EPSILONS, STARTS)
def test_delta_is_above_the_exact_one_by_one_part_in_1e11(epsilon: float, u: float) -> None:
    mu = mu_at(u, epsilon)
    want = exact(mu, epsilon)
    if want > 1e-300:
        excess = float(mpmath.mpf(delta_of_mu(mu, epsilon)) / want - 1)
        assert excess == pytest.approx(1e-11, abs=1e-12) or delta_of_mu(mu, epsilon) == 1.0


@settings(max_examples=60, deadline=None)
@given(EPSILONS, DELTAS)
def test_mu_never_exceeds_its_target_and_is_the_largest_that_does_not_and_epsilon_comes_back(
    epsilon: float, delta: float
) -> None:
    mu = mu_of(epsilon, delta)
    assert exact(mu, epsilon) <= delta
    assert exact(mu * (1 + 1e-9), epsilon) > delta * (1 - 1e-10)
    back = epsilon_of_mu(mu, delta)
    assert exact(mu, back) <= delta
    assert back <= epsilon * (1 + 1e-9)


def test_at_epsilon_zero_delta_is_the_total_variation_distance() -> None:
    for mu in (1e-8, 0.3, 1.0, 5.0):
        assert delta_of_mu(mu, 0.0) == pytest.approx(math.erf(mu / math.sqrt(8)), rel=1e-10)


def test_no_noise_and_no_sensitivity_are_the_two_ends() -> None:
    assert delta_of_mu(0.0, 1.0) == 0.0
    assert delta_of_mu(math.inf, 1.0) == 1.0
    assert delta_of_mu(100.0, 1.0) == 1.0
    assert epsilon_of_mu(0.0, 1e-6) == 0.0
    assert epsilon_of_mu(math.inf, 1e-6) == math.inf


@pytest.mark.parametrize(("sigma", "delta"), [(0.7, 1e-5), (2.0, 1e-6), (10.0, 1e-9), (50.0, 1e-3)])
def test_dp_accounting_agrees_to_one_part_in_a_million_and_is_never_above(sigma: float, delta: float) -> None:
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    loss = GaussianPrivacyLoss(sigma)
    ours = epsilon_of_mu(1 / sigma, delta)
    assert loss.get_delta_for_epsilon(ours) <= delta
    assert loss.get_delta_for_epsilon(ours * (1 - 1e-6)) > delta


@pytest.mark.parametrize(
    ("figure", "of", "wrong"),
    [
        *(("epsilon", mu_of, (wrong, 1e-6)) for wrong in (math.nan, -0.1, math.inf)),
        *(("delta", of, (1.0, wrong)) for of in (mu_of, epsilon_of_mu) for wrong in (math.nan, -0.1, 0.0, 1.0, 1e-310)),
        ("mu", delta_of_mu, (math.nan, 1.0)),
        *(("rho", epsilon_of_rho, (wrong, 1e-6)) for wrong in (math.nan, -1.0)),
    ],
)
def test_a_wrong_figure_is_refused_by_name(figure: str, of: Any, wrong: tuple[float, float]) -> None:
    with pytest.raises(InvalidInput, match=figure):
        of(*wrong)

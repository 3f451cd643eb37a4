"""Gaussian differential privacy and zCDP against closed forms, arithmetic of many digits, and dp-accounting."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import pytest
from hypothesis import example, given, settings, strategies as st

from cloister.accounting import (
    delta_of_mu,
    delta_of_rho,
    epsilon_of_mu,
    epsilon_of_rho,
    mu_of,
    rho_of,
    rho_of_pure,
)
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
@example(0.0, -0.15)
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


@pytest.mark.parametrize(("sigma", "delta"), [(0.7, 1e-5), (2.0, 1e-6), (10.0, 1e-9), (50.0, 1e-3)])
def test_dp_accounting_agrees_to_one_part_in_a_million_and_is_never_above(sigma: float, delta: float) -> None:
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    loss = GaussianPrivacyLoss(sigma)
    ours = epsilon_of_mu(1 / sigma, delta)
    assert loss.get_delta_for_epsilon(ours) <= delta
    assert loss.get_delta_for_epsilon(ours * (1 - 1e-6)) > delta


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


@pytest.mark.parametrize("delta_of", [delta_of_mu, delta_of_rho])
def test_no_delta_is_below_1e_minus_305(delta_of: Any) -> None:
    """So that what is far below any delta that can be asked for is no 0, which would be a promise without it."""
    assert delta_of(1e-3, 100.0) == pytest.approx(1e-305, rel=1e-9, abs=0)


def test_a_pure_epsilon_costs_half_its_square() -> None:
    assert rho_of_pure(0.5) == 0.125
    assert rho_of_pure(math.inf) == math.inf


@pytest.mark.parametrize(
    ("delta_of", "epsilon_of", "many"),
    [(delta_of_mu, epsilon_of_mu, (100.0,)), (delta_of_rho, epsilon_of_rho, (60.0, 689.0, 692.0, 750.0, 1e4, 1e300))],
)
def test_the_ends_are_no_loss_and_no_privacy(delta_of: Any, epsilon_of: Any, many: tuple[float, ...]) -> None:
    assert (delta_of(0.0, 1.0), epsilon_of(0.0, 1e-6)) == (0.0, 0.0)
    assert all(delta_of(loss, 1.0) == 1.0 for loss in (*many, math.inf))
    assert epsilon_of(math.inf, 1e-6) == math.inf


NO_EPSILON = (math.nan, -0.1, math.inf)
NO_DELTA = (math.nan, -0.1, 0.0, 1.0, 1e-310)


@pytest.mark.parametrize(
    ("figure", "of", "wrong"),
    [
        *(("epsilon", of, (wrong, 1e-6)) for of in (mu_of, rho_of) for wrong in NO_EPSILON),
        *(("epsilon", of, (0.5, wrong)) for of in (delta_of_mu, delta_of_rho) for wrong in NO_EPSILON),
        *(("delta", of, (1.0, w)) for of in (mu_of, rho_of, epsilon_of_mu, epsilon_of_rho) for w in NO_DELTA),
        *(("mu", of, (wrong, 0.5)) for of in (delta_of_mu, epsilon_of_mu) for wrong in (math.nan, -1.0)),
        *(("rho", of, (wrong, 0.5)) for of in (delta_of_rho, epsilon_of_rho) for wrong in (math.nan, -1.0)),
        *(("epsilon", rho_of_pure, (wrong,)) for wrong in (math.nan, -1.0)),
    ],
)
def test_a_wrong_figure_is_refused_by_name(figure: str, of: Any, wrong: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput, match=figure):
        of(*wrong)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_a_mu_that_costs_all_of_delta_to_the_last_bit_is_kept(epsilon: float) -> None:
    for mu in (0.25, 0.5, 1.5):
        assert mu_of(epsilon, delta_of_mu(mu, epsilon)) >= mu

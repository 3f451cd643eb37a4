"""Gaussian differential privacy and zCDP against arithmetic of 40 to 60 digits, and what discrete noise costs beside
the analytic one, by enumeration of the whole law."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from numpy.typing import NDArray

from cloister.accounting import (
    delta_of_mu,
    delta_of_rho,
    epsilon_of_discrete,
    epsilon_of_mu,
    epsilon_of_rho,
    eta,
    mu_of,
    rho_of,
    rho_of_pure,
)
from cloister.accounting.composition import BEYOND, REACH
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


def test_no_noise_and_no_sensitivity_are_the_two_ends() -> None:
    assert delta_of_mu(0.0, 1.0) == 0.0
    assert delta_of_mu(math.inf, 1.0) == 1.0
    assert delta_of_mu(100.0, 1.0) == 1.0
    assert epsilon_of_mu(0.0, 1e-6) == 0.0
    assert epsilon_of_mu(math.inf, 1e-6) == math.inf


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


def test_a_pure_epsilon_costs_half_its_square() -> None:
    assert rho_of_pure(0.5) == 0.125
    assert rho_of_pure(math.inf) == math.inf


def test_the_ends_are_no_loss_and_no_privacy() -> None:
    assert delta_of_rho(0.0, 1.0) == 0.0
    assert delta_of_rho(math.inf, 1.0) == 1.0
    assert all(delta_of_rho(rho, 1.0) == 1.0 for rho in (60.0, 689.0, 692.0, 750.0, 1e4, 1e300))
    assert epsilon_of_rho(0.0, 1e-6) == 0.0
    assert epsilon_of_rho(math.inf, 1e-6) == math.inf


def discrete_gaussian(sigma: float, reach: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The discrete Gaussian on |x| <= reach * sigma; all that is beyond 12 sigma has a probability below 1e-31."""
    x = np.arange(-int(reach * sigma), int(reach * sigma) + 1)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    return x, weights / math.fsum(weights)


def delta_of_one(sigma: float, shift: int, epsilon: float) -> float:
    """delta of one discrete Gaussian release of an integer that a row changes by ``shift``."""
    x, p = discrete_gaussian(sigma, 12)
    near = np.exp(-((x - shift) ** 2) / (2 * sigma**2)) * p.max()
    return math.fsum(np.maximum(0.0, p - math.exp(epsilon) * near))


@pytest.mark.parametrize("sigma", [139.0, 200.0, 1000.5, 2.0**12])
def test_eta_bounds_the_ratio_of_the_rounded_and_the_discrete_law_and_is_tight(sigma: float) -> None:
    import mpmath

    worst = 0.0
    with mpmath.workdps(60):
        s = mpmath.mpf(sigma)
        normaliser = mpmath.sqrt(2 * mpmath.pi) * s * (1 + 2 * mpmath.exp(-2 * (mpmath.pi * s) ** 2))
        for x in {0, 1, int(sigma), int(5 * sigma), int(10 * sigma), int(REACH * sigma) - 1, int(REACH * sigma)}:
            rounded = mpmath.ncdf(-(x - mpmath.mpf(1) / 2) / s) - mpmath.ncdf(-(x + mpmath.mpf(1) / 2) / s)
            discrete = mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * s**2)) / normaliser
            worst = max(worst, abs(float(mpmath.log(rounded / discrete))))
    assert 0.9 * eta(sigma) < worst <= eta(sigma)


def test_both_laws_are_within_the_stated_tail() -> None:
    for sigma in (139.0, 500.0):
        x, p = discrete_gaussian(sigma, 30)
        assert math.fsum(p[np.abs(x) > REACH * sigma]) < BEYOND
        assert math.erfc((REACH - 0.5 / sigma) / math.sqrt(2)) < BEYOND


def test_noise_too_coarse_for_the_proof_has_no_bound() -> None:
    assert eta(138.0) == math.inf
    assert eta(139.0) < 1e-3
    assert eta(math.inf) == eta(1e200) == 0.0
    with pytest.raises(InvalidInput):
        eta(math.nan)


@pytest.mark.parametrize(("sigma", "epsilon"), [(2.0**10, 0.3), (2.0**12 + 0.37, 1.0), (2.0**10, 8.0)])
def test_one_wide_release_keeps_the_promise_with_the_price(sigma: float, epsilon: float) -> None:
    delta = 1e-5
    shift = int(mu_of(epsilon, delta) * sigma)
    claimed = epsilon_of_discrete(shift / sigma, eta(sigma), BEYOND, delta)
    assert delta_of_one(sigma, shift, claimed) <= delta
    assert delta_of_one(sigma, shift, claimed * (1 - 1e-3)) > delta


def test_the_price_grows_with_the_drift_and_is_nothing_without_and_beyond_all_below_the_tails() -> None:
    base = epsilon_of_mu(0.3, 1e-6)
    assert epsilon_of_discrete(0.3, 0.0, 0.0, 1e-6) == base
    assert base + 2e-5 < epsilon_of_discrete(0.3, 1e-5, 1e-40, 1e-6) < base + 3e-5
    assert epsilon_of_discrete(0.3, 1e-6, 1e-40, 1e-37) < math.inf
    assert epsilon_of_discrete(0.3, 1e-6, 1e-40, 1e-41) == math.inf
    assert epsilon_of_discrete(0.3, 2.0, 1e-40, 1e-6) == math.inf

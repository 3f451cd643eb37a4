"""What discrete Gaussian noise costs beside the analytic one: by enumeration of the whole law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from cloister.accounting import epsilon_of_discrete, epsilon_of_mu, eta, mu_of
from cloister.accounting.discrete import BEYOND, REACH
from cloister.core.errors import InvalidInput


def law(sigma: float, reach: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The discrete Gaussian on |x| <= reach * sigma; all that is beyond 12 sigma has a probability below 1e-31."""
    x = np.arange(-int(reach * sigma), int(reach * sigma) + 1)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    return x, weights / math.fsum(weights)


def delta_of_one(sigma: float, shift: int, epsilon: float) -> float:
    """delta of one discrete Gaussian release of an integer that a row changes by ``shift``."""
    x, p = law(sigma, 12)
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
        x, p = law(sigma, 30)
        assert math.fsum(p[np.abs(x) > REACH * sigma]) < BEYOND
        assert math.erfc((REACH - 0.5 / sigma) / math.sqrt(2)) < BEYOND


def test_the_figures_are_those_that_were_derived() -> None:
    """With t = 14: eta = (t^2 + 1) / (24 sigma^2), and a noise is beyond t sigma at most as often as 2 e^(-t^2 / 2)."""
    assert eta(2.0**10) == 197 / (24 * 2.0**20)
    assert pytest.approx(2 * math.exp(-98), rel=1e-12, abs=0) == BEYOND


@pytest.mark.parametrize("delta", [0.0, 1.0, 1.5, math.nan])
@pytest.mark.parametrize("drift", [0.0, 1e-9, 2.0])
def test_a_delta_that_is_no_probability_is_refused(drift: float, delta: float) -> None:
    with pytest.raises(InvalidInput, match="delta is"):
        epsilon_of_discrete(0.3, drift, 0.0, delta)


def test_the_cost_is_the_one_that_was_derived() -> None:
    """epsilon_0 + 2 drift at delta_0, where e^drift delta_0 and the tails, (1 + e^epsilon) times, are delta."""
    mu, delta, drift, tail = 0.3, 1e-6, 0.25, 1e-8
    upper = epsilon_of_mu(mu, delta / 2) + 2 * drift
    rest = math.exp(-drift) * (delta - (1 + math.exp(upper)) * tail)
    assert delta / 2 < rest < 0.76 * delta
    assert epsilon_of_discrete(mu, drift, tail, delta) == epsilon_of_mu(mu, rest) + 2 * drift


def test_at_least_half_of_delta_is_the_gaussian_s() -> None:
    half = math.log(2)  # e^-drift is exactly 1/2
    assert epsilon_of_discrete(0.3, half, 0.0, 1e-6) == epsilon_of_mu(0.3, 5e-7) + 2 * half
    for drift in (0.7, 0.75, 1.0, 1.5, math.inf, math.nan):
        assert epsilon_of_discrete(0.3, drift, 0.0, 1e-6) == math.inf
    assert epsilon_of_discrete(0.3, 1e-9, 0.0, 2e-300) < 15
    assert epsilon_of_discrete(0.3, 1e-9, 0.0, 1.9e-300) == math.inf


def test_where_the_tails_cost_more_than_a_float_holds_there_is_no_bound() -> None:
    for mu in (33.0, 36.0, 40.0, 60.0):  # e^700 is a float, e^710 is none
        assert epsilon_of_discrete(mu, 1e-9, 1e-320, 1e-6) == math.inf
    assert epsilon_of_discrete(30.0, 1e-9, 1e-320, 1e-6) < 700


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

"""The kit's thresholds against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from cloister.core.budget import Budget
from cloister.testing.checks.oracle_privacy import max_chi_square
from cloister.testing.statistics import ALARM, deviations, probability_bounds


@pytest.mark.parametrize("comparisons", [1, 64, 1024])
def test_bonferroni_shares_one_alarm_rate(comparisons: int) -> None:
    assert 2 * comparisons * norm.sf(deviations(comparisons)) == pytest.approx(ALARM, rel=1e-6)


@pytest.mark.parametrize(("hits", "n"), [(0, 100), (3, 100), (50, 100), (100, 100), (700, 10_000)])
def test_proportion_is_clopper_and_pearson(hits: int, n: int) -> None:
    """At the bounds themselves, what was seen or more extreme has exactly the tail's probability."""
    low, high = probability_bounds(hits, n, 10)
    if hits:
        assert binom.sf(hits - 1, n, low) == pytest.approx(ALARM / 20, rel=1e-6)
    if hits < n:
        assert binom.cdf(hits, n, high) == pytest.approx(ALARM / 20, rel=1e-6)


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0])
def test_the_chi_square_of_shifted_gaussians_is_the_bound(mu: float) -> None:
    x = np.linspace(-12, 12, 200_001)
    chi = float((norm.pdf(x - mu) ** 2 / norm.pdf(x)).sum() * (x[1] - x[0]) - 1)
    assert max_chi_square(Budget("gaussian", mu**2)) == pytest.approx(chi, rel=1e-6)
    assert max_chi_square(Budget("zcdp", mu**2 / 2)) == pytest.approx(chi, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0])
def test_the_chi_square_of_randomised_response_is_the_bound(epsilon: float) -> None:
    p = 1 / (1 + math.exp(epsilon))
    assert max_chi_square(Budget("pure", epsilon)) == pytest.approx((1 - p) ** 2 / p + p**2 / (1 - p) - 1)

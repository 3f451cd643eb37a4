"""Discrete Laplace noise on a curator's counts and vector sums: pure differential privacy.

Guarantee (Central; add-or-remove one row): one row changes at most one count per level by 1, so the counts' L1
sensitivity is the number of levels. It changes at most one sum per level by a vector of L1 norm at most ``bound.l1``.
Noise with P(x) proportional to exp(-|x| eps / sensitivity) on each integer is eps-DP with no delta, exactly.

Source: Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009. Sampler: after Canonne, Kamath,
Steinke 2020 (``cloister.core.exact_noise``).
"""

from __future__ import annotations

from cloister.plugin import (
    AdditiveNoise,
    Budget,
    Central,
    Laplace,
    Measure,
    Sensitivity,
    component,
    pure_laplace,
)


@component
class DiscreteLaplace(AdditiveNoise):
    """Counts and vector sums with two-sided geometric noise of scale levels / eps times the vectors' L1 bound."""

    trust = Central
    mechanism = "discrete-laplace"

    @property
    def measure(self) -> Measure:
        return "pure"

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Laplace, int]:
        return pure_laplace(sensitivity, budget)

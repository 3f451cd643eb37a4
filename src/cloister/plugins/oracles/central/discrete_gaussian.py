"""Discrete Gaussian noise on a curator's counts and vector sums, under Gaussian differential privacy or zCDP.

Guarantee (Central; add-or-remove one row): one row changes at most one count per level by 1, so the L2 sensitivity of
counts is sqrt(levels). It adds at most one vector per level, of L2 norm at most ``bound.l2``, so that of vector sums is
sqrt(levels) * bound.l2, jointly over all coordinates. With sigma = sensitivity / mu the discrete Gaussian is
(mu^2 / 2)-zCDP exactly (Canonne, Kamath, Steinke 2020, Theorem 14).

A budget in mu^2 is calibrated as if the noise were real (Balle and Wang 2018), which is tighter by 6-19% but not proved
for integers. Totals are therefore scaled up by a power of two until sigma is at least 2^20. There the discrete Gaussian
is so close to a rounded real one that accounting pays for the whole difference out of a ten-thousandth of the budget
(``cloister.accounting.composition``).
"""

from __future__ import annotations

from cloister.plugin import (
    AdditiveNoise,
    Budget,
    Central,
    Gaussian,
    Measure,
    Sensitivity,
    component,
    wide_gaussian,
)


@component
class DiscreteGaussian(AdditiveNoise):
    """Counts and vector sums with discrete Gaussian noise, sigma = sqrt(levels) / mu times the vectors' L2 bound."""

    trust = Central
    mechanism = "discrete-gaussian"

    @property
    def measure(self) -> Measure:
        return "gaussian"

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Gaussian, int]:
        return wide_gaussian(sensitivity, budget)

"""Discrete Gaussian noise: counts and sums that a curator adds up, under Gaussian differential privacy or zCDP.

Guarantee (Central; add-or-remove one row): one row changes at most one count per level by 1: L2 sensitivity sqrt(levels); and
one vector per level of L2 norm at most ``bound.l2``: sensitivity sqrt(levels) * bound.l2, jointly over all coordinates.
With sigma = sensitivity / mu the discrete Gaussian is (mu^2 / 2)-zCDP exactly (Canonne, Kamath, Steinke 2020, Theorem 14).

A budget in mu^2 is calibrated as if the noise were real (Balle and Wang 2018), which is tighter by 6-19% but not proved for
integers. Totals are therefore scaled up by a power of two until sigma is at least 2^20; there, the discrete law is so close
to a rounded real Gaussian that accounting pays the whole difference out of a ten-thousandth of the budget
(``cloister.accounting.discrete``).
"""

from __future__ import annotations

from cloister.core.buckets import Setting, Space
from cloister.core.budget import Budget, Measure
from cloister.core.lattice import Bound
from cloister.core.registry.components import component
from cloister.core.trust import Central
from cloister.plugins.oracles.central.additive import wide_gaussian
from cloister.plugins.oracles.central.dense import TensorChannel
from cloister.plugins.oracles.central.sparse import SparseChannel, opened


def channel(space: Space, bound: Bound | None, budget: Budget, unit: float) -> TensorChannel | SparseChannel:
    """Sigma from the joint L2 sensitivity over all levels and coordinates, and the shift that makes it wide."""
    return opened("discrete-gaussian", budget, space, bound, *wide_gaussian(space, bound, budget), unit)


@component
class DiscreteGaussianCounts:
    """Counts with discrete Gaussian noise of sigma = sqrt(levels) / mu."""

    trust = Central

    @property
    def measure(self) -> Measure:
        return "gaussian"

    def open(self, space: Space, budget: Budget, setting: Setting) -> TensorChannel | SparseChannel:
        return channel(space, None, budget, 1.0)

    def variance(self, space: Space, budget: Budget, setting: Setting) -> float:
        return self.open(space, budget, setting).deviation ** 2


@component
class DiscreteGaussianSums:
    """Vector sums with discrete Gaussian noise of sigma = sqrt(levels) * L2 bound / mu on every coordinate."""

    trust = Central

    @property
    def measure(self) -> Measure:
        return "gaussian"

    def open(self, space: Space, bound: Bound, budget: Budget, setting: Setting) -> TensorChannel | SparseChannel:
        return channel(space, bound, budget, setting.unit)

    def variance(self, space: Space, bound: Bound, budget: Budget, setting: Setting) -> float:
        return self.open(space, bound, budget, setting).deviation ** 2

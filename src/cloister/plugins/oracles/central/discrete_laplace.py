"""Discrete Laplace noise: pure differential privacy for counts and sums that a curator adds up.

Guarantee (Central; add-or-remove one row): one row changes at most one count per level by 1, so the counts' L1 sensitivity
is the number of levels; it changes at most one sum per level by a vector of L1 norm at most ``bound.l1``. Noise with
P(x) proportional to exp(-|x| eps / sensitivity) on each number is eps-DP with no delta, exactly, on integers.

Source: Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009. Sampler: OpenDP (Canonne, Kamath,
Steinke 2020).
"""

from __future__ import annotations

from cloister.core.buckets import Setting, Space
from cloister.core.budget import Budget, Measure
from cloister.core.lattice import Bound
from cloister.core.registry.components import component
from cloister.core.trust import Central
from cloister.plugins.oracles.central.additive import UP, Laplace
from cloister.plugins.oracles.central.dense import TensorChannel
from cloister.plugins.oracles.central.sparse import SparseChannel, opened


@component
class DiscreteLaplaceCounts:
    """Counts with two-sided geometric noise of scale levels / eps."""

    trust = Central

    @property
    def measure(self) -> Measure:
        return "pure"

    def open(self, space: Space, budget: Budget, setting: Setting) -> TensorChannel | SparseChannel:
        law = Laplace(space.levels / budget.epsilon * UP)
        return opened("discrete-laplace", budget, space, None, law)

    def variance(self, space: Space, budget: Budget, setting: Setting) -> float:
        return self.open(space, budget, setting).deviation ** 2


@component
class DiscreteLaplaceSums:
    """Vector sums with two-sided geometric noise of scale levels * L1 bound / eps on every coordinate."""

    trust = Central

    @property
    def measure(self) -> Measure:
        return "pure"

    def open(self, space: Space, bound: Bound, budget: Budget, setting: Setting) -> TensorChannel | SparseChannel:
        law = Laplace(space.levels * bound.l1 / budget.epsilon * UP)
        return opened("discrete-laplace", budget, space, bound, law, 0, setting.unit)

    def variance(self, space: Space, bound: Bound, budget: Budget, setting: Setting) -> float:
        return self.open(space, bound, budget, setting).deviation ** 2

"""No noise at all: what non-private baselines count with. Gives no guarantee; a run with it must be asked for explicitly."""

from __future__ import annotations

from cloister.core.buckets import Setting, Space
from cloister.core.budget import Budget, Measure
from cloister.core.lattice import Bound
from cloister.core.registry.components import component
from cloister.core.trust import Central
from cloister.plugins.oracles.central.dense import TensorChannel
from cloister.plugins.oracles.central.sparse import SparseChannel, opened


@component
class ExactCounts:
    """Exact counts. NOT private."""

    trust = Central

    @property
    def measure(self) -> Measure:
        return "exact"

    def open(self, space: Space, budget: Budget, setting: Setting) -> TensorChannel | SparseChannel:
        return opened("exact", budget, space, None, None)

    def variance(self, space: Space, budget: Budget, setting: Setting) -> float:
        return 0.0


@component
class ExactSums:
    """Exact vector sums. NOT private."""

    trust = Central

    @property
    def measure(self) -> Measure:
        return "exact"

    def open(self, space: Space, bound: Bound, budget: Budget, setting: Setting) -> TensorChannel | SparseChannel:
        return opened("exact", budget, space, bound, None, 0, setting.unit)

    def variance(self, space: Space, bound: Bound, budget: Budget, setting: Setting) -> float:
        return 0.0

"""No noise at all: what non-private baselines count with. Gives no guarantee; a run with it must be asked for
explicitly."""

from __future__ import annotations

from cloister.plugin import (
    AdditiveCounts,
    AdditiveNoise,
    AdditiveSums,
    Budget,
    Central,
    Measure,
    Sensitivity,
    component,
)


@component
class Exact(AdditiveNoise):
    """Totals as they are. NOT private."""

    trust = Central
    mechanism = "exact"

    @property
    def measure(self) -> Measure:
        return "exact"

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[None, int]:
        return None, 0


@component
class ExactCounts(Exact, AdditiveCounts):
    """Exact counts. NOT private."""


@component
class ExactSums(Exact, AdditiveSums):
    """Exact vector sums. NOT private."""

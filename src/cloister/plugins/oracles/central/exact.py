"""Exact answers without noise, for non-private baselines. NOT private: a run with them needs an explicit flag."""

from __future__ import annotations

from cloister.plugin import (
    AdditiveNoise,
    Budget,
    Central,
    Measure,
    Sensitivity,
    component,
)


@component
class Exact(AdditiveNoise):
    """Exact counts and vector sums. NOT private."""

    trust = Central
    mechanism = "exact"

    @property
    def measure(self) -> Measure:
        return "exact"

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[None, int]:
        return None, 0

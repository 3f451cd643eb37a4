"""Counts of occupied buckets above a threshold, with discrete Laplace noise; all others are exactly 0.

Guarantee (Central; add-or-remove one row): (eps, delta)-DP with eps the budget's and

    delta = 1 - (1 - p)^L,      p = P(Z >= T) = q^T / (1 + q),      q = e^(-1/s), s = L / eps,

for L levels, noise Z of scale s and an integer threshold T >= 1: an occupied bucket with count c is released as c + Z
if that is more than T.

Proof. Let D' be D and one more row, which is in one bucket of each of at most L levels. Buckets it is not in have the
same law under both. In a bucket with other rows, counts differ by 1 and the release is a function of c + Z, so the two
laws are within a factor e^(eps/L). Let m of its buckets be new, that is, hold no other row: on D they read 0 for
certain; on D' each reads something else with probability P(1 + Z > T) = p, independently. Let G be the event that none
does, and P'' the law on D' given G. As noises are independent, P'' is the law of the other buckets on D', with 0 for
the new ones: P'' and the law P on D are within e^(+-eps (L - m) / L), pointwise. And P' >= (1 - p)^m P'' >=
(1 - delta) P''. That is what an event with a delta promises (``cloister.accounting.composition``): P and P' are
(eps, delta)-close in both directions.

The bound is tight: if D is empty and m = L, P'(something is released) = delta, which has probability 0 under P. How
many of a row's buckets are new is private, so all L are paid for, although a nested tree that asks for its root has L
new ones only where D is empty.

T is the smallest threshold whose delta is within the budget's share. It grows by s for each factor e of delta: with 12
levels, eps = 1 and delta = 1e-6 it is 188 rows. Compared with ``discrete-laplace``, an empty bucket never looks
occupied, but buckets with fewer than about T rows are lost, and their rows count nowhere on that level.

Source: Korolova, Kenthapadi, Mishra, Ntoulas 2009; Balcer, Vadhan 2018 (stability histograms); derivation above.
"""

from __future__ import annotations

import math

from cloister.plugin import (
    AdditiveCounts,
    Bound,
    Budget,
    Central,
    InvalidInput,
    Laplace,
    Measure,
    Sensitivity,
    Space,
    SparseChannel,
    TensorChannel,
    additive_channel,
    component,
    pure_laplace,
)
from cloister.plugins.oracles.central.thresholds import least_threshold


@component
class ThresholdedCounts(AdditiveCounts):
    """Counts with two-sided geometric noise of scale levels / eps, above a threshold set by the budget's delta."""

    trust = Central
    mechanism = "thresholded"
    uses_delta = True

    @property
    def measure(self) -> Measure:
        return "pure"

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Laplace, int]:
        if not budget.delta > 0:
            raise InvalidInput(
                "'thresholded' spends delta, and its budget has none: pass delta (less than one over the number of "
                "rows), or count with discrete-laplace"
            )
        return pure_laplace(sensitivity, budget)

    def channel(self, space: Space, bound: Bound | None, budget: Budget, unit: float) -> TensorChannel | SparseChannel:
        law, shift = self.noise(Sensitivity.of(space, bound), budget)
        threshold = least_threshold(lambda above: lone_chance(law.scale, above), 1, space.levels, budget.delta)
        return additive_channel(self.mechanism, budget, space, bound, law, shift, unit, threshold)


def lone_chance(scale: float, above: int) -> float:
    """Return p for a threshold T >= 1 and noise of this scale, in rows."""
    return math.exp(-above / scale) / (1 + math.exp(-1 / scale))

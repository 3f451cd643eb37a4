"""Counts of occupied buckets above a threshold, with discrete Gaussian noise; all others are exactly 0.

Guarantee (Central; add-or-remove one row): counts with the noise of ``discrete-gaussian``, of sigma = sqrt(L) / mu for
L levels, spend mu^2; and

    delta = 1 - (1 - p)^L,      p = P(N >= T - 1),      N real Gaussian noise of this sigma, T >= 2 an integer:

an occupied bucket with count c is released as c + Z if that is more than T.

Proof, as for ``thresholded``: let D' be D and one more row, m of whose at most L buckets hold no other row. On D these
read 0 for certain; on D' each reads something else with probability P(1 + Z > T), independently. Given that none does,
the law P'' on D' is that of the other buckets, with 0 for the new ones. The release of a bucket with other rows is a
function of c + Z, where c differs by one between D and D'. So P'' and the law P on D are as far apart as discrete
Gaussians on at most L - m numbers that differ by one, which mu^2 pays for; and P' >= (1 - delta) P''. That is what an
event with a delta promises (``cloister.accounting.composition``).

P(1 + Z > T) <= p: Z is drawn in steps of 2^-s rows, 2^s Z from the discrete Gaussian with 2^s sigma, and 1 + Z > T
means 2^s Z >= (T - 1) 2^s + 1. The probability of m or more under the discrete law is at most that of m - 1 or more
under the real one, for integers m >= 1 (Canonne, Kamath, Steinke 2020, Proposition 25).

T is the smallest threshold whose delta is within the budget's share. It grows with sqrt(L) where that of
``thresholded`` grows with L: with 16 levels, epsilon 1 and delta 1e-6 it is 96 rows instead of 255. A tenth of a run's
budget in mu^2 is a third of its mu.

Source: Korolova, Kenthapadi, Mishra, Ntoulas 2009 (thresholds); Wilkins, Kifer, Zhang, Karrer 2024 (Gaussian sparse
histograms); derivation above.
"""

from __future__ import annotations

import math

from cloister.plugin import (
    AdditiveCounts,
    Bound,
    Budget,
    Central,
    Gaussian,
    InvalidInput,
    Measure,
    Sensitivity,
    Space,
    SparseChannel,
    TensorChannel,
    additive_channel,
    component,
    wide_gaussian,
)
from cloister.plugins.oracles.central.thresholds import least_threshold


@component
class ThresholdedGaussian(AdditiveCounts):
    """Counts with discrete Gaussian noise, sigma = sqrt(levels) / mu, above a threshold set by the budget's delta."""

    trust = Central
    mechanism = "thresholded-gaussian"
    uses_delta = True

    @property
    def measure(self) -> Measure:
        return "gaussian"

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Gaussian, int]:
        if not budget.delta > 0:
            raise InvalidInput(
                "'thresholded-gaussian' spends delta, and its budget has none: pass delta (less than one over the "
                "number of rows), or count with discrete-gaussian"
            )
        return wide_gaussian(sensitivity, budget)

    def channel(self, space: Space, bound: Bound | None, budget: Budget, unit: float) -> TensorChannel | SparseChannel:
        law, shift = self.noise(Sensitivity.of(space, bound), budget)
        sigma = law.sigma * 2.0**-shift
        threshold = least_threshold(lambda above: lone_chance(sigma, above), 2, space.levels, budget.delta)
        return additive_channel(self.mechanism, budget, space, bound, law, shift, unit, threshold)


def lone_chance(sigma: float, above: int) -> float:
    """Return p for a threshold T >= 2 and noise of this sigma, in rows."""
    return math.erfc((above - 1) / (sigma * math.sqrt(2))) / 2

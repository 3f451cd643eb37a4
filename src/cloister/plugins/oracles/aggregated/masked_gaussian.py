"""Discrete Gaussian noise on sums that parties pool behind masks: drawn by the coordinator, who sees neither rows nor
results.

Guarantee (Aggregated; add-or-remove one row of one party): the released numbers are those of ``discrete-gaussian`` on
the union of all rows, with the same sensitivity, sigma, scale and accounting. Every row-dependent number outside a
party is uniform in its ring to whoever lacks the masks' keys.

Who learns what, in the words of Diaa et al. 2024, section 3: the guarantee holds "in the presence of a semi-honest,
polynomial time adversary who controls at most a single party". The coordinator alone learns nothing but that rounds
took place: it knows the noise, not the sum. A party alone, or several, learn the private centres and no more: they do
not know the noise. The coordinator *together with one party* has no privacy to respect: it takes its noise off what the
party unmasks. Nor has a coordinator that is *shown the result*, in a journal or by mail: it takes its noise off that.
For both cases see ``skellam``.

Source: Diaa, Humphries, Kerschbaum 2024, Figure 1, with integer noise in place of rounded real noise (its Theorem A.2
is true for integers only).
"""

from __future__ import annotations

from cloister.plugin import (
    AdditiveNoise,
    Aggregated,
    Bound,
    Budget,
    Gaussian,
    Measure,
    RingChannel,
    Sensitivity,
    Space,
    component,
    most_rows_option,
    option,
    wide_gaussian,
)


@component
class MaskedGaussian(AdditiveNoise):
    """Pooled counts, and vector sums, with discrete Gaussian noise of sigma = sqrt(levels) / mu, times the L2 bound of
    vectors, from the coordinator."""

    trust = Aggregated
    mechanism = "masked-gaussian"
    parties: int = option(default=32, low=1, high=1024, help="most parties that pool their rows")
    most_rows: int = most_rows_option()

    @property
    def measure(self) -> Measure:
        return "gaussian"

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Gaussian, int]:
        return wide_gaussian(sensitivity, budget)

    def channel(self, space: Space, bound: Bound | None, budget: Budget, unit: float) -> RingChannel:
        return self.pooled(space, bound, budget, unit, self.parties, self.most_rows)

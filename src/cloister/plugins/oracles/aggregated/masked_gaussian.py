"""Discrete Gaussian noise on parties' masked sums, drawn by a coordinator who sees neither rows nor results.

Guarantee (Aggregated; add-or-remove one row of one party): the released numbers are those of ``discrete-gaussian`` on
the union of all rows, with the same sensitivity, sigma, scale and accounting. Every row-dependent number outside a
party is uniform in its ring to whoever lacks the masks' keys.

Trust (Diaa et al. 2024, section 3): the guarantee holds "in the presence of a semi-honest, polynomial time adversary
who controls at most a single party". The coordinator alone learns nothing but that rounds took place: it knows the
noise, not the sum. One party, or several, learn the private centres and no more: they do not know the noise. There is
no privacy against the coordinator *together with one party*, nor against a coordinator that is *shown the result*, in a
journal or by mail: it can subtract its noise from what it sees. For both cases use ``skellam``.

Source: Diaa, Humphries, Kerschbaum 2024, Figure 1, with integer noise in place of rounded real noise (their Theorem A.2
holds for integers only).
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
    """Pooled counts and vector sums with the coordinator's discrete Gaussian noise.

    Sigma is sqrt(levels) / mu, times the L2 bound of vectors.
    """

    trust = Aggregated
    mechanism = "masked-gaussian"
    parties: int = option(default=32, low=1, high=1024, help="largest number of parties that pool their rows")
    most_rows: int = most_rows_option()

    @property
    def measure(self) -> Measure:
        return "gaussian"

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Gaussian, int]:
        return wide_gaussian(sensitivity, budget)

    def channel(self, space: Space, bound: Bound | None, budget: Budget, unit: float) -> RingChannel:
        return self.pooled(space, bound, budget, unit, self.parties, self.most_rows)

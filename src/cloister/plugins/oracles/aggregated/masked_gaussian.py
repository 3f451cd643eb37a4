"""Discrete Gaussian noise on sums that parties pool behind masks: drawn by the coordinator, who sees neither rows nor results.

Guarantee (Aggregated; add-or-remove one row of one party): the released numbers are those of ``discrete-gaussian`` on the union
of all rows, with the same sensitivity, sigma, scale and accounting. Every row-dependent number outside a party is uniform in
its ring to whoever lacks the masks' keys.

Who learns what, in the words of Diaa et al. 2024, section 3: the guarantee holds "in the presence of a semi-honest, polynomial
time adversary who controls at most a single party". The coordinator alone learns nothing but that rounds took place: it knows
the noise, not the sum. A party alone, or several, learn the private centres and no more: they do not know the noise. The
coordinator *together with one party* has no privacy to respect: it takes its noise off what the party unmasks. Nor has a coordinator
that is *shown the result*, in a journal or by mail: it takes its noise off that. For both cases see ``skellam``.

Source: Diaa, Humphries, Kerschbaum 2024, Figure 1, with integer noise in place of rounded real noise (its Theorem A.2 is true for integers only).
"""

from __future__ import annotations

from cloister.core.buckets import Setting, Space
from cloister.core.budget import Budget, Measure
from cloister.core.lattice import Bound
from cloister.core.registry.components import component, option
from cloister.core.trust import Aggregated
from cloister.plugins.oracles.aggregated.ring_channel import RingChannel, most_rows_option
from cloister.plugins.oracles.central.additive import wide_gaussian
from cloister.plugins.oracles.central.dense import TensorChannel


@component
class MaskedGaussianCounts:
    """Pooled counts with discrete Gaussian noise of sigma = sqrt(levels) / mu, from the coordinator."""

    trust = Aggregated
    parties: int = option(default=32, low=1, high=1024, help="most parties that pool their rows")
    most_rows: int = most_rows_option()

    @property
    def measure(self) -> Measure:
        return "gaussian"

    def open(self, space: Space, budget: Budget, setting: Setting) -> RingChannel:
        tensor = TensorChannel("masked-gaussian", budget, space, None, *wide_gaussian(space, None, budget), 1.0)
        return RingChannel(tensor, self.parties, self.most_rows)

    def variance(self, space: Space, budget: Budget, setting: Setting) -> float:
        return self.open(space, budget, setting).deviation ** 2


@component
class MaskedGaussianSums:
    """Pooled vector sums with discrete Gaussian noise of sigma = sqrt(levels) * L2 bound / mu per coordinate, from the coordinator."""

    trust = Aggregated
    parties: int = option(default=32, low=1, high=1024, help="most parties that pool their rows")
    most_rows: int = most_rows_option()

    @property
    def measure(self) -> Measure:
        return "gaussian"

    def open(self, space: Space, bound: Bound, budget: Budget, setting: Setting) -> RingChannel:
        tensor = TensorChannel(
            "masked-gaussian", budget, space, bound, *wide_gaussian(space, bound, budget), setting.unit
        )
        return RingChannel(tensor, self.parties, self.most_rows)

    def variance(self, space: Space, bound: Bound, budget: Budget, setting: Setting) -> float:
        return self.open(space, bound, budget, setting).deviation ** 2

"""Counts with discrete Laplace noise, rounded to multiples of a public step.

Guarantee (Central; add-or-remove one row): eps-DP. One row changes one count of each level by 1, so that noise of scale
levels / eps is eps-DP (Dwork et al. 2006); rounding what was already released is post-processing.
Unbiased where the noise is at least half a step wide; a finer step suits a larger eps.
"""

import attrs
import numpy as np

from cloister.plugin import UP, AdditiveCounts, Budget, Central, Ints, Laplace, Measure, Sensitivity, component, option


@attrs.frozen
class RoundedLaplace(Laplace):
    """Two-sided geometric noise, then the nearest multiple of ``step``."""

    step: int

    @property
    def deviation(self) -> float:  # a rounding error is spread evenly over a step
        return float(np.sqrt(super().deviation ** 2 + (self.step**2 - 1) / 12))

    def post_processed(self, noised: Ints) -> Ints:
        return np.rint(noised / self.step).astype(np.int64) * self.step


@component
class RoundedCounts(AdditiveCounts):
    """Counts with two-sided geometric noise of scale levels / eps, as multiples of ``step``."""

    trust, mechanism = Central, "rounded-counts"
    step: int = option(default=5, low=1, unit="rows", help="released counts are multiples of this")

    @property
    def measure(self) -> Measure:
        return "pure"

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[RoundedLaplace, int]:
        return RoundedLaplace(sensitivity.l1 / budget.epsilon * UP, self.step), 0

"""Counts with discrete Laplace noise, rounded to multiples of a public step.

Guarantee (Central; add-or-remove one row): eps-DP. One row changes one count of each level by 1, so the L1 sensitivity is the
number of levels; noise of scale levels / eps on each count is eps-DP (Dwork et al. 2006), and rounding what was already
released is post-processing.
"""

from __future__ import annotations

from typing import NoReturn

import attrs
import numpy as np

from cloister.core.buckets import Setting, Space
from cloister.core.budget import Budget, Event, Measure
from cloister.core.errors import Refused
from cloister.core.randomness import NoiseRng
from cloister.core.registry.components import component, option
from cloister.core.trust import Central
from cloister.core.types import Floats, Ids, Ints


@attrs.frozen(eq=False)
class Totals:
    """Exact counts, level after level."""

    vector: Ints

    def merge(self, other: Totals) -> Totals:
        return Totals(self.vector + other.vector)


class Rounded:
    """Released counts."""

    def __init__(self, values: Floats, space: Space, deviation: float) -> None:
        self._values, self._deviation = values, deviation
        self._starts = np.concatenate([[0], np.cumsum(space.sizes)])

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return np.asarray(self._values[self._starts[level] + ids], np.float64)

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), self._deviation)

    def __reduce__(self) -> NoReturn:
        raise TypeError("tables do not travel: keep what at() gave")


@attrs.frozen
class RoundedChannel:
    """Both halves: exact totals, then noise once, then the rounding."""

    space: Space
    budget: Budget
    scale: float
    step: int

    @property
    def events(self) -> tuple[Event, ...]:
        return (Event("rounded-laplace", self.budget, touched=self.space.levels),)

    @property
    def deviation(self) -> float:
        """Of the noise, and of a rounding error that is spread evenly over a step."""
        variance = 0.5 / np.sinh(0.5 / self.scale) ** 2 + (self.step**2 - 1) / 12
        return float(np.sqrt(variance))

    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Totals:
        levels = [np.bincount(items[:, i] + 1, minlength=n + 1)[1:] for i, n in enumerate(self.space.sizes)]
        return Totals(np.concatenate(levels).astype(np.int64))

    def absorb(self, report: Totals) -> Totals:
        if report.vector.shape != (sum(self.space.sizes),) or report.vector.dtype != np.int64:
            raise Refused("not a report of rounded-laplace")
        return report

    def decode(self, summary: Totals, rng: NoiseRng) -> Rounded:
        noised = summary.vector + rng.discrete_laplace(self.scale, len(summary.vector))
        return Rounded(np.rint(noised / self.step) * self.step, self.space, self.deviation)


@component
class RoundedCounts:
    """Counts with two-sided geometric noise of scale levels / eps, as multiples of ``step``."""

    trust = Central
    step: int = option(default=5, low=1, unit="rows", help="released counts are multiples of this")

    @property
    def measure(self) -> Measure:
        return "pure"

    def open(self, space: Space, budget: Budget, setting: Setting) -> RoundedChannel:
        scale = space.levels / budget.epsilon * (1 + 2.0**-40)  # refuses a budget that is not pure
        return RoundedChannel(space, budget, scale, self.step)

    def variance(self, space: Space, budget: Budget, setting: Setting) -> float:
        return self.open(space, budget, setting).deviation ** 2

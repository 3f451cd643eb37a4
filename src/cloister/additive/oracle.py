"""Base classes of additive-noise oracles: write the noise and its scale, and get counts and vector sums.

    @component
    class MyNoise(AdditiveNoise):                                   # the noise law of both oracles
        trust = Central
        mechanism = "my-noise"

        @property
        def measure(self) -> Measure:
            return "pure"

        def noise(self, sensitivity, budget):
            return Laplace(sensitivity.l1 / budget.epsilon * UP), 0

    @component
    class MyCounts(MyNoise, AdditiveCounts): ...

    @component
    class MySums(MyNoise, AdditiveSums): ...

An oracle of counts alone derives from ``AdditiveCounts`` and defines the noise itself. Totals are exact in any space:
tensors in small ones, lists of occupied buckets in those of up to 2^62 buckets per level.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from cloister.additive.dense import TensorChannel
from cloister.additive.noise import Noise, Sensitivity
from cloister.additive.ring_channel import RingChannel
from cloister.additive.sparse import SparseChannel, additive_channel
from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget, Measure
from cloister.core.lattice import Bound
from cloister.core.registry.components import component


@component
class AdditiveNoise(ABC):
    """How exact totals are noised, whether counts or sums.

    Class attributes: ``trust`` and ``measure`` as for every oracle; mechanism (registry name).
    """

    mechanism: ClassVar[str]
    uses_delta = asks_all_users = biased = False

    @property
    @abstractmethod
    def measure(self) -> Measure: ...

    @abstractmethod
    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Noise | None, int]:
        """The law worth this budget (None: no noise, NOT private), in integers scaled up by this many bits: 0, unless
        the law has to be wide (``wide_gaussian``). Raises: InvalidInput for a budget in another measure, or if there is
        no such noise."""

    def channel(
        self, space: Space, bound: Bound | None, budget: Budget, unit: float
    ) -> TensorChannel | SparseChannel | RingChannel:
        """The opened question. Args: bound, of the vectors, None for counts; unit, of their lattice, 1 for counts."""
        law, shift = self.noise(Sensitivity.of(space, bound), budget)
        return additive_channel(self.mechanism, budget, space, bound, law, shift, unit)

    def pooled(
        self, space: Space, bound: Bound | None, budget: Budget, unit: float, parties: int, most_rows: int,
        ratio: float = 0.0,
    ) -> RingChannel:  # fmt: skip
        """The opened question for rows that parties pool: ``channel`` under Aggregated trust."""
        law, shift = self.noise(Sensitivity.of(space, bound), budget)
        tensor = TensorChannel(self.mechanism, budget, space, bound, law, shift, unit)
        return RingChannel(tensor, parties, most_rows, ratio)


@component
class AdditiveCounts(AdditiveNoise):
    """Counts of rows per bucket: a ``FrequencyOracle``."""

    def open(
        self, space: Space, budget: Budget, context: QuestionContext
    ) -> TensorChannel | SparseChannel | RingChannel:
        return self.channel(space, None, budget, 1.0)

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return self.open(space, budget, context).deviation ** 2


@component
class AdditiveSums(AdditiveNoise):
    """Sums of vectors per bucket: a ``VectorSumOracle``."""

    def open(
        self, space: Space, bound: Bound, budget: Budget, context: QuestionContext
    ) -> TensorChannel | SparseChannel | RingChannel:
        return self.channel(space, bound, budget, context.unit)

    def variance(self, space: Space, bound: Bound, budget: Budget, context: QuestionContext) -> float:
        return self.open(space, bound, budget, context).deviation ** 2

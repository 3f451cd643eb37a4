"""Base classes of additive-noise oracles: define the noise and its scale, and get counts and vector sums.

    @component
    class MyNoise(AdditiveNoise):
        trust = Central
        mechanism = "my-noise"

        @property
        def measure(self) -> Measure:
            return "pure"

        def noise(self, sensitivity, budget):
            return Laplace(sensitivity.l1 / budget.epsilon * UP), 0

It fills both roles, each by a Spec of its own. An oracle of counts alone derives from ``AdditiveCounts``. Totals are
exact in any space: tensors in small ones, lists of occupied buckets in those of up to 2^62 buckets per level.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeAlias

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget, Measure
from cloister.core.lattice import CAP, Bound
from cloister.core.registry.components import component, option
from cloister.noise.channel import TensorChannel
from cloister.noise.distributions import Noise, Sensitivity
from cloister.noise.ring import RingChannel
from cloister.noise.sparse import SparseChannel, additive_channel


def most_rows_option() -> Any:
    """Return the option ``most_rows`` of an oracle under Aggregated trust."""
    return option(
        default=CAP, low=1, high=CAP, unit="rows", help="hard cap on a party's rows; a lower one shortens messages"
    )


AnyChannel: TypeAlias = TensorChannel | SparseChannel | RingChannel


@component
class AdditiveCounts(ABC):
    """``FrequencyOracle`` of exact counts under noise.

    Attributes:
        mechanism: registry name.
    """

    mechanism: ClassVar[str]
    uses_delta = asks_all_users = biased = False

    @property
    @abstractmethod
    def measure(self) -> Measure: ...

    @abstractmethod
    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Noise | None, int]:
        """Return the law that this budget buys (None: no noise, NOT private), and the shift in bits.

        The law is in integers scaled up by 2^shift: 0, unless it has to be wide (``wide_gaussian``).

        Raises:
            InvalidInput: the budget has another measure, or buys no such noise.
        """

    def channel(self, space: Space, bound: Bound | None, budget: Budget, unit: float) -> AnyChannel:
        """Return the opened question, for vectors within ``bound`` on a lattice of this unit, or counts (None, 1)."""
        law, shift = self.noise(Sensitivity.of(space, bound), budget)
        return additive_channel(self.mechanism, budget, space, bound, law, shift, unit)

    def pooled(
        self,
        space: Space,
        bound: Bound | None,
        budget: Budget,
        unit: float,
        parties: int,
        most_rows: int,
        ratio: float = 0.0,
    ) -> RingChannel:
        """Return the opened question for rows that parties pool: ``channel`` under Aggregated trust."""
        law, shift = self.noise(Sensitivity.of(space, bound), budget)
        tensor = TensorChannel(self.mechanism, budget, space, bound, law, shift, unit)
        return RingChannel(tensor, parties, most_rows, ratio)

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> AnyChannel:
        return self.channel(space, None, budget, 1.0)

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return self.open(space, budget, context).deviation ** 2


@component
class AdditiveNoise(AdditiveCounts):
    """``FrequencyOracle`` and ``VectorSumOracle``: with a bound, sums of vectors under the same noise."""

    def open(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound | None = None) -> AnyChannel:
        return self.channel(space, bound, budget, context.unit if bound else 1.0)

    def variance(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound | None = None) -> float:
        return self.open(space, budget, context, bound).deviation ** 2

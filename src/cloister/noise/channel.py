"""The common part of dense and sparse channels: exact totals per bucket, under additive integer noise.

Totals are multiplied by a public power of two (``shift``) before the noise and divided by it after, so that Gaussian
noise is wide enough in integers for the discrete law to stand in for the real one (see
``cloister.accounting.composition``).
"""

from __future__ import annotations

import math
from typing import final

import attrs
import numpy as np

from cloister.core.buckets import Space
from cloister.core.budget import Budget, Event
from cloister.core.errors import InvalidInput
from cloister.core.lattice import CAP, Bound
from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats, Ints
from cloister.noise.laws import Noise, Sensitivity


@final
@attrs.frozen
class Threshold:
    """Bound that an occupied bucket's noised count must exceed to be released. Args: above (rows), delta (its cost)."""

    above: int
    delta: float


@attrs.frozen
class AdditiveChannel:
    """An opened question answered by totals under noise.

    Args:
        mechanism, budget: declared to the accountant.
        space: the buckets.
        bound: of the vectors; None for counts.
        law: of the noise, in shifted integers; None for no noise (not private).
        shift: bits that totals are scaled up by before the noise.
        unit: value of one lattice step in the caller's units (1 for counts).
        threshold: empty buckets, and values that do not exceed it, are released as 0; None for no threshold.

    Raises:
        InvalidInput: totals of ``CAP`` rows under their noise might not fit into 64 bits.
    """

    mechanism: str
    budget: Budget
    space: Space
    bound: Bound | None
    law: Noise | None
    shift: int
    unit: float
    threshold: Threshold | None = None

    def __attrs_post_init__(self) -> None:
        largest = CAP * (self.bound.l2 if self.bound else 1) * 2**self.shift
        tail = 0.0 if self.law is None else 64 * self.law.deviation
        if largest + tail >= 2.0**62:
            raise InvalidInput(
                f"'{self.mechanism}' could overflow 64 bits with {CAP} rows: give this question a larger budget or a "
                "smaller bound"
            )

    @property
    def width(self) -> int:
        """Numbers per bucket."""
        return self.bound.dimension if self.bound else 1

    @property
    def one(self) -> tuple[int, ...]:
        """The shape of one bucket's value: a count, or a vector."""
        return (self.bound.dimension,) if self.bound else ()

    @property
    def counted(self) -> tuple[int, ...]:
        """Sizes of the levels that rows are counted on: if nested, only the deepest, which determines the others."""
        return self.space.sizes[-1:] if self.space.nested else self.space.sizes

    @property
    def events(self) -> tuple[Event, ...]:
        touched, sigma = Sensitivity.of(self.space, self.bound).l0, math.inf if self.law is None else self.law.gaussian
        delta = 0.0 if self.threshold is None else self.threshold.delta
        pure = self.law is not None and self.law.pure and self.budget.measure == "zcdp"
        spent = self.budget.epsilon if pure else math.inf
        return (Event(self.mechanism, self.budget, touched, sigma, delta, pure=spent),)

    @property
    def deviation(self) -> float:
        """Standard deviation of each released number, in its own unit."""
        return 0.0 if self.law is None else self.law.deviation * self.unit * 2.0**-self.shift

    def noised(self, totals: Ints, rng: NoiseRng) -> Floats:
        """Exact totals, of any shape, each number with noise of its own, in the caller's units."""
        shifted = totals << np.int64(self.shift)
        if self.law is not None:
            shifted = shifted + self.law.draw(totals.size, rng).reshape(totals.shape)
        if self.threshold is not None:
            shifted = np.where((totals > 0) & (shifted > self.threshold.above << self.shift), shifted, 0)
        return self.in_units(shifted)

    def in_units(self, noised: Ints) -> Floats:
        """Noised integers, post-processed, in the caller's units."""
        released = noised if self.law is None else self.law.post_processed(noised)
        values: Floats = released.astype(np.float64) * (self.unit * 2.0**-self.shift)
        return values

"""Additive integer noise on exact totals: what every Central oracle is made of, whether its totals are a tensor or sparse.

Totals are multiplied by a public power of two (``shift``) before the noise, so that Gaussian noise is so wide in integers that
the discrete law stands in for the real one (see ``cloister.accounting.discrete``), and divided by it after.
"""

from __future__ import annotations

import math
from typing import Protocol, final

import attrs
import numpy as np

from cloister.core.buckets import Space
from cloister.core.budget import Budget, Event
from cloister.core.errors import InvalidInput
from cloister.core.lattice import CAP, Bound
from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats, Ints

UP = 1 + 2.0**-40
"""Rounding in a division never makes the noise too small."""


class Law(Protocol):
    """A law of additive integer noise."""

    @property
    def deviation(self) -> float:
        """Standard deviation, in integers."""
        ...

    def draw(self, size: int, rng: NoiseRng) -> Ints: ...


@final
@attrs.frozen
class Laplace:
    """Two-sided geometric noise. Args: scale, in integers: L1 sensitivity over epsilon."""

    scale: float

    @property
    def deviation(self) -> float:
        return float(np.sqrt(0.5) / np.sinh(0.5 / self.scale))

    def draw(self, size: int, rng: NoiseRng) -> Ints:
        return rng.discrete_laplace(self.scale, size)


@final
@attrs.frozen
class Gaussian:
    """Discrete Gaussian noise. Args: sigma, in integers: L2 sensitivity over mu."""

    sigma: float

    @property
    def deviation(self) -> float:
        return self.sigma

    def draw(self, size: int, rng: NoiseRng) -> Ints:
        return rng.discrete_gaussian(self.sigma, size)


@final
@attrs.frozen
class Skellam:
    """Skellam noise in shares, each of the same variance. Args: share (its standard deviation, in integers), shares, honest
    (how many of them are counted on)."""

    share: float
    shares: int
    honest: int

    @property
    def deviation(self) -> float:
        return self.share * math.sqrt(self.shares)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise that is counted on."""
        return self.share * math.sqrt(self.honest)

    def draw(self, size: int, rng: NoiseRng) -> Ints:
        """One share."""
        return rng.skellam(self.share**2, size)


@final
@attrs.frozen
class Threshold:
    """What a count must exceed, noise and all, to be released; occupied buckets only. Args: above (rows), delta (what it costs)."""

    above: int
    delta: float


@attrs.frozen
class Additive:
    """An opened question whose answer is totals under noise.

    Args:
        mechanism, budget: what is declared to the accountant.
        space: the buckets.
        bound: of the vectors; None for counts.
        law: of the noise, in shifted integers; None for no noise (not private).
        shift: bits that totals are scaled up by before the noise.
        unit: value of one lattice step in the caller's units (1 for counts).
        threshold: values that do not exceed it, and those of empty buckets, are released as 0; None: there is no threshold.

    Raises:
        InvalidInput: totals of ``CAP`` rows under their noise might not fit into 64 bits.
    """

    mechanism: str
    budget: Budget
    space: Space
    bound: Bound | None
    law: Laplace | Gaussian | Skellam | None
    shift: int
    unit: float
    threshold: Threshold | None = None

    def __attrs_post_init__(self) -> None:
        largest = CAP * (self.bound.l2 if self.bound else 1) * 2**self.shift
        tail = 0.0 if self.law is None else 64 * self.law.deviation
        if largest + tail >= 2.0**62:
            raise InvalidInput(
                f"'{self.mechanism}' could overflow 64 bits with {CAP} rows: the budget of this question is too small, or its bound too large"
            )

    @property
    def width(self) -> int:
        """Numbers per bucket."""
        return self.bound.dimension if self.bound else 1

    @property
    def one(self) -> tuple[int, ...]:
        """The shape of what one bucket holds: a count, or a vector."""
        return (self.bound.dimension,) if self.bound else ()

    @property
    def counted(self) -> tuple[int, ...]:
        """The sizes of the levels that rows are added up at: of nested levels, the deepest one makes all others."""
        return self.space.sizes[-1:] if self.space.nested else self.space.sizes

    @property
    def events(self) -> tuple[Event, ...]:
        sigma = self.law.sigma if isinstance(self.law, Gaussian) else float("inf")
        delta = 0.0 if self.threshold is None else self.threshold.delta
        pure = self.budget.epsilon if isinstance(self.law, Laplace) and self.budget.measure == "zcdp" else math.inf
        return (Event(self.mechanism, self.budget, self.space.levels * self.width, sigma, delta, pure=pure),)

    @property
    def deviation(self) -> float:
        """Standard deviation of each released number, in its own unit."""
        return 0.0 if self.law is None else self.law.deviation * self.unit * 2.0**-self.shift

    def noised(self, totals: Ints, rng: NoiseRng) -> Floats:
        """Exact totals, of any shape, with noise of its own on each number, in the caller's units."""
        shifted = totals << np.int64(self.shift)
        if self.law is not None:
            shifted = shifted + self.law.draw(totals.size, rng).reshape(totals.shape)
        if self.threshold is not None:
            shifted = np.where((totals > 0) & (shifted > self.threshold.above << self.shift), shifted, 0)
        values: Floats = shifted.astype(np.float64) * (self.unit * 2.0**-self.shift)
        return values


def sensitivity_of(space: Space, bound: Bound | None) -> float:
    """The most that one row moves all totals together, in L2: one vector (or 1) per level."""
    return math.sqrt(space.levels) * (bound.l2 if bound else 1)


def wide_gaussian(space: Space, bound: Bound | None, budget: Budget) -> tuple[Gaussian, int]:
    """Sigma from the joint L2 sensitivity, and the shift that makes it wide. Central and Aggregated oracles share this, so that both
    release the same numbers."""
    sigma = sensitivity_of(space, bound) / budget.mu * UP
    shift = enough_bits(sigma)
    return Gaussian(sigma * 2.0**shift), shift


def enough_bits(deviation: float, wanted: float = 2.0**20) -> int:
    """The least shift that makes noise of this width, in integers, at least ``wanted``."""
    return max(0, int(np.ceil(np.log2(wanted / deviation))))

"""Distributions of additive integer noise, and the sensitivity that they are scaled to."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar, final

import attrs

from cloister.core.buckets import Space
from cloister.core.budget import Budget
from cloister.core.errors import InvalidInput
from cloister.core.lattice import Bound
from cloister.core.randomness import NoiseRng
from cloister.core.reproducible_math import ceil_log2, geometric_deviation
from cloister.core.types import Ints

UP = 1 + 2.0**-40
"""Factor on a computed scale, so that rounding of its division never makes the noise too small."""

NARROW = 2.0**10
"""Least scale of noise on whole vectors: its variance there is that of real numbers, to one part in a million."""

MAX_SINH_ARGUMENT = 700.0
"""Largest x whose hyperbolic sine fits into a float; noise of a scale below 0.5 / x is none in practice."""


@final
@attrs.frozen
class Sensitivity:
    """Largest change of all totals together by one row: one count, or one vector, on each level.

    Args:
        l0: number of numbers that change.
        l1, l2: norms of the change, in lattice integers (rows, for counts).
    """

    l0: int
    l1: int
    l2: float

    @classmethod
    def of(cls, space: Space, bound: Bound | None) -> Sensitivity:
        """Return the sensitivity of sums of vectors within the bound, or of counts without one."""
        width, l1, l2 = (bound.dimension, bound.l1, bound.l2) if bound else (1, 1, 1)
        return cls(space.levels * width, space.levels * l1, math.sqrt(space.levels) * l2)


class Noise(ABC):
    """Law of additive integer noise: a frozen attrs class, since it is part of a question's digest.

    Attributes:
        pure: whether it spends ``budget.epsilon`` without delta, whatever the budget's measure.
    """

    __slots__ = ()
    pure: ClassVar[bool] = False

    @property
    @abstractmethod
    def deviation(self) -> float:
        """Standard deviation, in integers, of a released number's error, post-processing included."""

    @abstractmethod
    def draw(self, size: int, rng: NoiseRng) -> Ints:
        """Draw so many numbers: independent ones, or independent vectors one after the other; or one party's share."""

    def post_processed(self, noised: Ints) -> Ints:
        """Post-process noised totals, each by itself (round them, say); if not unbiased, the oracle is ``biased``."""
        return noised

    @property
    def gaussian(self) -> float:
        """Sigma of the discrete Gaussian that the guarantee rests on; infinite for any other law."""
        return math.inf

    @property
    def drawers(self) -> int:
        """Number of parties that draw the noise together; 1 if it is drawn in one place."""
        return 1


@attrs.frozen
class Laplace(Noise):
    """Two-sided geometric noise; its scale, in integers, is L1 sensitivity over epsilon."""

    pure: ClassVar[bool] = True
    scale: float

    @property
    def deviation(self) -> float:
        return geometric_deviation(max(self.scale, 0.5 / MAX_SINH_ARGUMENT))

    def draw(self, size: int, rng: NoiseRng) -> Ints:
        return rng.discrete_laplace(self.scale, size)


@attrs.frozen
class Spherical(Noise):
    """Noise on whole vectors whose law depends on their length alone.

    Args:
        scale: L2 sensitivity over epsilon, in integers, at least ``NARROW``.
        width: dimension of the vectors.
    """

    pure: ClassVar[bool] = True
    scale: float
    width: int

    def __attrs_post_init__(self) -> None:
        if not self.scale >= NARROW:
            raise InvalidInput(f"noise of scale {self.scale} on whole vectors is too narrow: scale it up to {NARROW:g}")

    @property
    def deviation(self) -> float:
        """Standard deviation of a coordinate, up to one part in s^2."""
        # a length has a Gamma law with mean square d (d + 1) s^2
        return self.scale * math.sqrt(self.width + 1)

    def draw(self, size: int, rng: NoiseRng) -> Ints:
        return rng.spherical(self.scale, self.width, size // self.width).ravel()


@attrs.frozen
class Gaussian(Noise):
    """Discrete Gaussian noise; its sigma, in integers, is L2 sensitivity over mu."""

    sigma: float

    @property
    def deviation(self) -> float:
        return self.sigma

    @property
    def gaussian(self) -> float:
        return self.sigma

    def draw(self, size: int, rng: NoiseRng) -> Ints:
        return rng.discrete_gaussian(self.sigma, size)


@attrs.frozen
class Skellam(Noise):
    """Skellam noise in shares, each of the same variance.

    Args:
        share: standard deviation of a share, in integers.
        shares: number of shares.
        honest: number of shares that the guarantee relies on.
    """

    share: float
    shares: int
    honest: int

    @property
    def deviation(self) -> float:
        return self.share * math.sqrt(self.shares)

    @property
    def gaussian(self) -> float:
        return self.share * math.sqrt(self.honest)

    @property
    def drawers(self) -> int:
        return self.shares

    def draw(self, size: int, rng: NoiseRng) -> Ints:
        """Draw one share."""
        return rng.skellam(self.share**2, size)


def pure_laplace(sensitivity: Sensitivity, budget: Budget) -> tuple[Laplace, int]:
    """Return Laplace noise for the joint L1 sensitivity, and no shift, which integers do not need."""
    return Laplace(sensitivity.l1 / budget.epsilon * UP), 0


def wide_gaussian(sensitivity: Sensitivity, budget: Budget) -> tuple[Gaussian, int]:
    """Return Gaussian noise for the joint L2 sensitivity, and the shift that makes it wide.

    Central and Aggregated oracles share it, so that both release the same numbers.
    """
    sigma = sensitivity.l2 / budget.mu * UP
    shift = enough_bits(sigma)
    return Gaussian(sigma * 2.0**shift), shift


def enough_bits(deviation: float, target: float = 2.0**20) -> int:
    """Return the least shift that makes noise of this standard deviation at least ``target`` wide, in integers."""
    return max(0, ceil_log2(target / deviation))

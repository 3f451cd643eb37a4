"""PrivUnitG: a Gaussian vector whose component along u falls in a cap more often than it would. The least variance known."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.types import AnyArray, Floats, Ids, Ints
from cloister.plugins.oracles.local.coins import WORDS, threshold
from cloister.plugins.oracles.local.vector_normals import (
    STEP,
    column_sums,
    fractions,
    normals,
    received,
    sent,
    words_for,
)


@final
@attrs.frozen
class PrivUnit:
    """Send z = (g + (w - <g, u>) u) / m: g normal in R^D, D = d + 1, and w a normal variate that is >= gamma with probability p.

    Guarantee (Local; replace one row, or have none): the density of m z with respect to N(0, I) takes two values,
    p / cap where <m z, u> >= gamma and (1 - p) / (1 - cap) elsewhere, with cap = Phi(-gamma): eps-DP iff their ratio is at
    most e^eps. The coin is exact: p is a number of words over 2^64, and p (1 - c) / ((1 - p) c) <= ``odds`` in fractions
    for a rational c <= cap (the lower end of a floating-point Phi with 12 bits to spare). What rests on real arithmetic is
    that g and w have these laws: float32 normals, see ``vector_normals``, and the inverse of Phi. Rounding z to steps is
    post-processing. For a guarantee that does not rest on that take ``one-byte``, at under 1% more variance.

    Unbiased: E g = <E g, u> u = 0, so E z = E[w] u / m = u, with m = E w = phi(gamma) (p / cap - (1 - p) / (1 - cap)).
    Variance: E z z^T = (I - u u^T + E[w^2] u u^T) / m^2 with E w^2 = 1 + gamma m. m is largest where gamma = m, and there
    Cov z = I / m^2: 1 / m^2 is 25.2, 6.33, 1.62, 0.435 at eps = 0.5, 1, 2, 4, whatever D is.

    Args:
        dimension: d.
        gamma: a multiple of 2^-20 next to the fixed point (any gamma is private and unbiased; this one is best).
        coin: words (of 2^64) on which w is in the cap.

    Source: Asi, Feldman, Talwar 2022 (PrivUnitG); Bhowmick et al. 2018 (PrivUnit).
    """

    dimension: int
    gamma: float
    coin: int

    @classmethod
    def within(cls, odds: Fraction, dimension: int) -> PrivUnit:
        """The one of least variance whose densities differ by a factor of at most ``odds``."""
        gamma = _fixed_point(float(odds))
        cap = _below(_phi(-gamma))
        made = cls(dimension, gamma, threshold(odds * cap / (odds * cap + 1 - cap)))
        if not made.m > 0:
            raise InvalidInput("the budget of this question is too small for 'privunit': every report would be noise")
        return made

    @property
    def m(self) -> float:
        """E w."""
        p, cap = self.coin / WORDS, _phi(-self.gamma)
        density = math.exp(-(self.gamma**2) / 2) / math.sqrt(2 * math.pi)
        return density * (p / cap - (WORDS - self.coin) / WORDS / _phi(self.gamma))

    @property
    def each(self) -> int:
        return 2 + words_for(self.dimension + 1)

    @property
    def width(self) -> int:
        return self.dimension

    @property
    def dtype(self) -> str:
        return "u2"

    @property
    def scale(self) -> float:
        """Answers are steps of m z, whose coordinates have variance near 1."""
        return STEP / self.m

    @property
    def moment(self) -> float:
        return (1 + self.gamma * self.m / (self.dimension + 1)) / self.m**2

    def randomise(self, units: Floats, users: Ids, words: Ids, seed: PublicRng) -> AnyArray:
        g, u = normals(words[:, 2:], self.dimension + 1), units.astype(np.float32)
        inside, where = words[:, 0] < np.uint64(self.coin), fractions(words[:, 1])
        tail = _quantiles(where * np.where(inside, _phi(-self.gamma), _phi(self.gamma)))
        along = np.where(inside, -tail, tail).astype(np.float32) - column_sums(g * u)
        return sent((g + along * u)[: self.dimension])

    def possible(self, answers: AnyArray) -> bool:
        """No coordinate is below -16."""
        return bool((answers > 0).all())

    def estimates(self, answers: AnyArray, users: Ids, seed: PublicRng) -> Ints:
        return received(answers)


def _phi(x: float) -> float:
    """The normal distribution function."""
    return math.erfc(-x / math.sqrt(2)) / 2


def _quantiles(chances: Floats) -> Floats:
    """The inverse of Phi to 1e-15 (Wichura 1988, AS 241), as Python has it: encoding needs no SciPy."""
    from statistics import NormalDist

    return np.fromiter(map(NormalDist().inv_cdf, chances.tolist()), np.float64, len(chances))


def _below(probability: float) -> Fraction:
    """A rational number just below, rounded to 40 bits so that it is the same on every platform."""
    mantissa, exponent = math.frexp(probability)
    return Fraction(int(mantissa * 2**40) - 1, 2**40) * Fraction(2) ** exponent


def _fixed_point(odds: float) -> float:
    """The gamma that solves gamma = m(gamma) = phi(gamma) (odds - 1) / (odds Phi(-gamma) + Phi(gamma)), by bisection."""
    low, high = 0, 16 * 2**20
    while high - low > 1:
        gamma = (low + high) // 2 * 2.0**-20
        density = math.exp(-(gamma**2) / 2) / math.sqrt(2 * math.pi)
        rises = density * (odds - 1) / (odds * _phi(-gamma) + _phi(gamma)) > gamma
        low, high = ((low + high) // 2, high) if rises else (low, (low + high) // 2)
    return low * 2.0**-20

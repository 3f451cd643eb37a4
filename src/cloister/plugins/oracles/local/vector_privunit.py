"""PrivUnitG: a normal vector that falls in the cap around u more often than it would. The least variance known."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeVar, final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.types import AnyArray, Bools, Floats, Ids, Ints
from cloister.plugins.oracles.local.coins import WORDS
from cloister.plugins.oracles.local.vector_normals import (
    FARTHEST,
    STEP,
    astray,
    blocks,
    column_sums,
    normals,
    received,
    sent,
    words_for,
)
from cloister.plugins.oracles.local.vector_units import Words

LARGEST = 3.09
"""Most gamma: a thousand vectors are drawn for one that is kept. Larger ones are best above eps = 9.3."""

MOST = 2**17
"""Most numbers in a vector: ``astray`` is then a quarter of the least cap."""

TOGETHER = 8
"""Most vectors that are drawn at a go."""

TAIL = Fraction(1, 2**22)
"""Above e^-16 + 2^-38: the chance of a vector that is too long, and what floating point makes of Phi."""


@final
@attrs.frozen
class PrivUnit:
    """Send z = v / m: v a normal vector of R^D, D = d + 1, that is kept as it is if <v, u> >= gamma, else with probability t.

    How: draw v; if |v| <= R, and <v, u> >= gamma or a coin of probability t says so, keep it, else draw again.

    Guarantee (Local; replace one row, or have none; pure, no delta): whatever v is drawn from, and whatever floating point takes for
    <v, u> >= gamma, it is one finite law B for all rows, those with |v| <= R. A row's v has the law B(v) w(v) / A, w(v) being 1 or t
    and A = q + (1 - q) t, with q = q(u) the chance under B of what is taken for the cap. So what one row can send every row can, and
    the ratio of its chances is at most max A / (t min A). For all u, |q - Phi(-gamma)| <= 2 a + e^-16, where a = ``astray`` bounds the
    distance from a normal vector, to be paid for the cap and for |v| <= R, and e^-16 > P(|v| > R) (below). With c a rational number
    next to Phi(-gamma), c- and c+ = c -+ (2 a + ``TAIL``),

        t >= (c+ + (1 - c+) / odds) / (c- + (1 - c-) / odds) / odds    makes    max A / (t min A) <= odds:

    t >= 1 / odds, and max A / min A falls as t grows. The coin is exact: t is a number of words over 2^64, checked in fractions. Of
    the promise e^eps a share of about 1e-6 is lost (d = 100, eps = 1). Rounding z to steps is post-processing. How often she draws is
    geometric with chance A, independent of z, and the same for all rows up to that share: time tells nothing else.

    Longest: R^2 = (sqrt(D) + 4)^2 + 16. A normal vector is longer with a chance below e^-16 = 1.2e-7 (Laurent, Massart 2000, Lemma 1).
    The decoder refuses what is longer: no encoder sends it. One who lies sends at most R / m, R / sqrt(D) = 1.5 or 2.1 times (d =
    100 or 20) what an honest report has.

    Unbiased: E z = (1 - t) phi(gamma) / A * u / m = u, with m = (1 - t) phi(gamma) / A, but for at most R (2 a + e^-16) / phi(gamma) of
    |u|, which the condition |v| <= R and the discrete law may take: 1e-5, 4e-5 and 1e-3 at eps = 1, 4 and 10 (d = 100). Variance: E z z^T = (I + gamma m u u^T) / m^2. m is largest
    where gamma = m, and there Cov z = I / m^2: 1 / m^2 is 25.2, 6.33, 1.62, 0.435 at eps = 0.5, 1, 2, 4, whatever D is.

    Cost: 1 / A vectors a report: 1.7, 12 and 1000 at eps = 1, 4 and 10. Above that gamma stays at ``LARGEST``.

    Args:
        dimension: d.
        gamma: a multiple of 2^-20 next to the fixed point (any gamma is private and unbiased; this one is best).
        coin: words (of 2^64) on which a vector outside of the cap is kept.

    Source: Asi, Feldman, Talwar 2022 (PrivUnitG, drawn by its two parts: in floating point some rows then have tails that others
    cannot have); Bhowmick et al. 2018 (PrivUnit).
    """

    dimension: int
    gamma: float
    coin: int

    @classmethod
    def within(cls, odds: Fraction, dimension: int) -> PrivUnit:
        """The one of least variance whose chances differ by a factor of at most ``odds``."""
        if dimension > MOST:
            raise InvalidInput(f"'privunit' takes vectors of at most {MOST} numbers, not {dimension}")
        gamma = _fixed_point(float(odds))
        cap, off = _near(_phi(-gamma)), 2 * astray(dimension + 1) + TAIL
        more = _kept(cap + off, 1 / odds) / _kept(cap - off, 1 / odds)
        coin = math.ceil(WORDS * more / odds)
        if not coin < WORDS:
            raise InvalidInput("the budget of this question is too small for 'privunit': every report would be noise")
        return cls(dimension, gamma, coin)

    @property
    def accepted(self) -> float:
        """A: the chance that a vector is kept."""
        return _kept(_phi(-self.gamma), self.coin / WORDS)

    @property
    def m(self) -> float:
        """E <v, u>."""
        density = math.exp(-(self.gamma**2) / 2) / math.sqrt(2 * math.pi)
        return density * (WORDS - self.coin) / WORDS / self.accepted

    @property
    def together(self) -> int:
        """Vectors that are drawn at a go: a quarter of those that are expected to be needed."""
        return min(TOGETHER, math.ceil(0.25 / self.accepted))

    @property
    def each(self) -> int:
        return self.together * (1 + words_for(self.dimension + 1))

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

    @property
    def longest(self) -> float:
        """R."""
        return math.hypot(math.sqrt(self.dimension + 1) + 4, 4)

    def randomise(self, units: Floats, users: Ids, words: Words, seed: PublicRng) -> AnyArray:
        answers, left, go = np.empty((len(users), self.width), self.dtype), np.arange(len(users)), 0
        while len(left):
            drawn, kept = words(users[left], go), np.zeros(len(left), bool)
            for some in blocks(len(left), self.together * (self.dimension + 1)):
                answers[left[some]], kept[some] = self._first(units[:, left[some]], drawn[some])
            left, go = left[~kept], go + 1
        return answers

    def _first(self, units: Floats, words: Ids) -> tuple[AnyArray, Bools]:
        """The first vector of each user's go that she keeps, and whether there is one (n,)."""
        n, size = len(words), self.dimension + 1
        words = words.reshape(n * self.together, -1)
        v = normals(words[:, 1:], size).reshape(size, n, self.together)
        coins = (words[:, 0] < np.uint64(self.coin)).reshape(n, -1)
        inside = column_sums(v * units[:, :, None]) >= self.gamma
        kept = (inside | coins) & (column_sums(v * v) <= self.longest**2)
        return sent(v[: self.dimension, np.arange(n), kept.argmax(axis=1)]), np.asarray(kept.any(axis=1))

    def possible(self, answers: AnyArray) -> bool:
        """No coordinate is farther out than a normal variate, and no vector longer than R, both rounded."""
        steps = received(answers)
        longest = self.longest / STEP + math.sqrt(self.dimension)
        return bool((np.abs(steps) <= FARTHEST / STEP + 1).all() and ((steps**2).sum(axis=1) <= longest**2).all())

    def estimates(self, answers: AnyArray, users: Ids, seed: PublicRng) -> Ints:
        return received(answers)


N = TypeVar("N", float, Fraction)


def _kept(cap: N, coin: N) -> N:
    """The chance that a vector is kept."""
    return cap + (1 - cap) * coin


def _phi(x: float) -> float:
    """The normal distribution function."""
    return math.erfc(-x / math.sqrt(2)) / 2


def _near(probability: float) -> Fraction:
    """A rational number within 2^-39 of it, rounded to 40 bits so that it is the same on every platform."""
    return Fraction(int(probability * 2**40), 2**40)


def _fixed_point(odds: float) -> float:
    """The gamma that solves gamma = m(gamma) = phi(gamma) (odds - 1) / (odds Phi(-gamma) + Phi(gamma)), by bisection; at most ``LARGEST``."""
    low, high = 0, int(LARGEST * 2**20)
    while high - low > 1:
        gamma = (low + high) // 2 * 2.0**-20
        density = math.exp(-(gamma**2) / 2) / math.sqrt(2 * math.pi)
        rises = density * (odds - 1) / (odds * _phi(-gamma) + _phi(gamma)) > gamma
        low, high = ((low + high) // 2, high) if rises else (low, (low + high) // 2)
    return low * 2.0**-20

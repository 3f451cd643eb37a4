"""PrivUnit: a uniform vector of the sphere that falls in the cap around u more often than it would. The least variance
known."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar, final

import attrs
import numpy as np

from cloister.core.buckets import BundleArrays
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.reproducible_math import (
    ESTIMATED,
    cap_error,
    column_sums,
    few_bits,
    normals,
    quarter_sines,
    words_for,
)
from cloister.core.types import AnyArray, Bools, Floats, Ids
from cloister.plugins.oracles.local.randomised_response import WORDS
from cloister.plugins.oracles.local.vectors.unit_randomiser import STEP, DrawWords, OnSphere, blocks, sent

RAREST = 2.0**-10
"""The least chance of a cap: a thousand vectors are drawn for one that is kept. Smaller caps are best above eps = 9.4.
"""

MAX_DIMENSION = 2**17
"""Most numbers in a vector: ``cap_error`` is then an eighth of the least cap."""

TOGETHER = 8
"""Most vectors that are drawn at a go."""

ROUNDED = Fraction(1, 2**25)
"""More than floating point and ``_near`` make of the chance of a cap."""

NODES = 2**12
"""Nodes of an integral."""


@final
@attrs.frozen
class PrivUnit(OnSphere):
    """Send z = v / m: v uniform on the sphere of radius sqrt(D), D = d + 1, kept if <v, u> >= gamma, else with chance
    t.

    How: draw v; if <v, u> >= gamma, or a coin of probability t says so, keep it, else draw again.

    Guarantee (Local; replace one row, or have none; pure, no delta): whatever v is drawn from, and whatever floating
    point takes for <v, u> >= gamma, it is one finite law P for all rows. A row's v has the law P(v) w(v) / A, w(v)
    being 1 or t, and A = q + (1 - q) t, with q = q(u) the chance under P of what is taken for the cap. So what one row
    can send every row can, and the ratio of its chances is at most max A / (t min A). For all u, q is within a =
    ``cap_error`` of the cap's share of the sphere, which is the same for all u. With c a rational number next to that,
    c- and c+ = c -+ (a + ``ROUNDED``),

        t >= (c+ + (1 - c+) / odds) / (c- + (1 - c-) / odds) / odds    makes    max A / (t min A) <= odds:

    t >= 1 / odds, and max A / min A falls as t grows. The coin is exact: t is a number of words over 2^64, checked in
    fractions. Of the promise eps a share of 3e-7 is lost (d = 100, eps = 1). Rounding z to steps is post-processing.
    How often she draws is geometric with chance A, independent of z, and the same for all rows up to that share: time
    tells nothing else.

    All reports are of one length, and the decoder refuses longer ones: one who lies says no more than others do.

    Unbiased: by symmetry E z = u, with m = E <v, u> = (1 - t) f / A, f = sqrt(D) (1 - gamma^2 / D)^((D - 1) / 2) / ((D
    - 1) B) the mean of <v, u> in the cap times its share, B = sqrt(pi) Gamma((D - 1) / 2) / Gamma(D / 2); the discrete
      law may take 2 sqrt(D) a / f of
    |u|: 5e-6, 2e-5 and 6e-4 at eps = 1, 4 and 10 (d = 100). Variance: |z|^2 = D / m^2, 1 / m^2 on average over the D
    coordinates, and in no direction more than E<v, u>^2 = 1 + gamma m times that. m is largest where gamma = m: for
    large D, and within 1% from d = 100, 1 / m^2 is 25.2, 6.33, 1.62, 0.435 at eps = 0.5, 1, 2, 4.

    Cost: 1 / A vectors a report: 1.7, 12 and 1000 at eps = 1, 4 and 10; no more above that, where the cap stays as it
    is.

    Args:
        gamma: a multiple of 2^-20 next to the fixed point (any gamma is private and unbiased; this one is best).
        coin: words (of 2^64) on which a vector outside of the cap is kept.

    Source: Bhowmick et al. 2018 (PrivUnit); Asi, Feldman, Talwar 2022 (the best cap; PrivUnitG, whose vectors are
    normal). Both draw v by its two parts, along u and across: in floating point some rows then have tails that others
    cannot have.
    """

    gamma: float
    coin: int

    @classmethod
    def within(cls, odds: Fraction, dimension: int) -> PrivUnit:
        """The one of least variance whose chances differ by a factor of at most ``odds``."""
        if dimension > MAX_DIMENSION:
            raise InvalidInput(f"'privunit' takes vectors of at most {MAX_DIMENSION} numbers, not {dimension}")
        gamma = _fixed_point(float(odds), dimension + 1)
        cap, off = _near(_share(gamma, dimension + 1)), cap_error(dimension + 1) + ROUNDED
        more = _kept(cap + off, 1 / odds) / _kept(cap - off, 1 / odds)
        coin = math.ceil(WORDS * more / odds)
        if not coin < WORDS:
            raise InvalidInput("the budget of this question is too small for 'privunit': every report would be noise")
        return cls(dimension, gamma, coin)

    @property
    def accepted(self) -> float:
        """A: the chance that a vector is kept."""
        return _kept(_share(self.gamma, self.size), self.coin / WORDS)

    @property
    def m(self) -> float:
        """E <v, u>."""
        return few_bits((WORDS - self.coin) / WORDS * _mean(self.gamma, self.size) / self.accepted, ESTIMATED)

    @property
    def together(self) -> int:
        """Vectors that are drawn at a go: a quarter of those that are expected to be needed."""
        return min(TOGETHER, math.ceil(0.25 / self.accepted))

    @property
    def each(self) -> int:
        return self.together * (1 + words_for(self.size))

    @property
    def scale(self) -> float:
        """Answers are steps of v, whose coordinates have variance near 1."""
        return STEP / self.m

    @property
    def moment(self) -> float:
        return 1 / self.m**2

    def randomise(self, units: Floats, users: Ids, words: DrawWords, seed: PublicRng) -> AnyArray:
        answers, left, go = np.empty((len(users), self.width), self.dtype), np.arange(len(users)), 0
        while len(left):
            drawn, kept = words(users[left], go), np.zeros(len(left), bool)
            for some in blocks(len(left), self.together * self.size):
                answers[left[some]], kept[some] = self._first(units[:, left[some]], drawn[some])
            left, go = left[~kept], go + 1
        return answers

    def bundled(self, seed: PublicRng, arrays: BundleArrays) -> dict[str, Any]:
        own = {"gamma": self.gamma, "coin": str(self.coin), "together": self.together}
        return {"randomiser": "privunit", **own, "sines": arrays.add(quarter_sines())}

    def _first(self, units: Floats, words: Ids) -> tuple[AnyArray, Bools]:
        """The first vector of each user's go that she keeps, and whether there is one (n,)."""
        n, size = len(words), self.size
        words = words.reshape(n * self.together, -1)
        v = normals(words[:, 1:], size).reshape(size, n, self.together)
        coins = (words[:, 0] < np.uint64(self.coin)).reshape(n, -1)
        length = np.sqrt(column_sums(v * v) / size)
        kept = coins | (column_sums(v * units[:, :, None]) >= self.gamma * length)
        first = np.arange(n), kept.argmax(axis=1)
        return sent(v[: self.dimension, *first] / length[first]), np.asarray(kept.any(axis=1))


N = TypeVar("N", float, Fraction)


def _kept(cap: N, coin: N) -> N:
    """The chance that a vector is kept."""
    return cap + (1 - cap) * coin


def _circles(size: int) -> float:
    """B: the integral of cos^(D - 2) over a half turn."""
    return math.sqrt(math.pi) * math.exp(math.lgamma((size - 1) / 2) - math.lgamma(size / 2))


@lru_cache(256)
def _share(gamma: float, size: int) -> float:
    """The share of the sphere of radius sqrt(D) where a coordinate is at least gamma: the integral of cos^(D - 2) / B,
    by Simpson's rule."""
    start = math.asin(gamma / math.sqrt(size))
    end = min(math.pi / 2, start + 12 / math.sqrt(size))
    nodes = np.linspace(start, end, NODES + 1)
    heights = np.maximum(np.cos(nodes), 0.0) ** (size - 2)
    total = heights[0] + heights[-1] + 4 * heights[1::2].sum() + 2 * heights[2:NODES:2].sum()
    return float(total * (end - start) / (3 * NODES) / _circles(size))


def _mean(gamma: float, size: int) -> float:
    """f: the mean of a coordinate of the sphere where it is at least gamma, times the share of that."""
    rim = math.pow(1 - gamma**2 / size, (size - 1) / 2)
    return math.sqrt(size) * rim / ((size - 1) * _circles(size))


def _near(probability: float) -> Fraction:
    """A rational number within 2^-26 of it, rounded so that it is the same on every platform, whose last digits may
    differ."""
    return Fraction(int(probability * 2**26), 2**26)


def _fixed_point(odds: float, size: int) -> float:
    """The gamma that solves gamma = m(gamma) = f (odds - 1) / (odds c + 1 - c), c its share, by bisection; less if c
    were below ``RAREST``."""
    low, high = 0, int(min(16.0, math.sqrt(size)) * 2**20)
    while high - low > 1:
        gamma = (low + high) // 2 * 2.0**-20
        cap = _share(gamma, size)
        rises = _mean(gamma, size) * (odds - 1) / (odds * cap + 1 - cap) > gamma and cap > RAREST
        low, high = ((low + high) // 2, high) if rises else (low, (low + high) // 2)
    return low * 2.0**-20

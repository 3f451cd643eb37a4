"""PrivUnit: a uniform vector of the sphere, likelier in the cap around u. The lowest known variance."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar, final

import attrs
import numpy as np

from cloister.core.reproducible_math import (
    ESTIMATED,
    cap_error,
    column_sums,
    few_bits,
    normals,
    quarter_sines,
    words_for,
)
from cloister.plugin import AnyArray, Bools, BundleArrays, Floats, Ids, InvalidInput, PublicRng
from cloister.plugins.oracles.local.coins import WORDS
from cloister.plugins.oracles.local.vectors.unit_randomiser import STEP, DrawWords, OnSphere, blocks, sent

RAREST = 2.0**-10
"""Smallest probability of a cap: about 1000 draws per accepted vector. Above eps = 9.4 smaller caps would be better."""

MAX_DIMENSION = 2**17
"""Limit of numbers in a vector: ``cap_error`` is then an eighth of the smallest cap."""

TOGETHER = 8
"""Limit of vectors drawn per attempt."""

ROUNDED = Fraction(1, 2**25)
"""Bound on the error of floating point and ``_rational`` in the probability of a cap."""

NODES = 2**12
"""Nodes of Simpson's rule."""


@final
@attrs.frozen
class PrivUnit(OnSphere):
    """Randomiser z = v / m, v uniform on the sphere of radius sqrt(D), D = d + 1, by rejection.

    Draw v and accept it if <v, u> >= gamma, or else with probability t; repeat until one is accepted.

    Guarantee (Local; replace one row, or have none; pure, no delta): however v is drawn, and whatever floating point
    takes for <v, u> >= gamma, v has one finite law P for all rows. A row's v has the law P(v) w(v) / A, w(v) being 1 or
    t, and A = q + (1 - q) t, with q = q(u) the probability under P of what is taken for the cap. So what one row can
    send every row can, and the ratio of its probabilities is at most max A / (t min A). For all u, q is within a =
    ``cap_error`` of the cap's share of the sphere, which is one number for all u. With c a rational number near that,
    c- and c+ = c -+ (a + ``ROUNDED``),

        t >= (c+ + (1 - c+) / odds) / (c- + (1 - c-) / odds) / odds    makes    max A / (t min A) <= odds:

    t >= 1 / odds, and max A / min A falls as t grows. The coin is exact: t is a number of words over 2^64, checked in
    fractions. A share of 3e-7 of eps is lost (d = 100, eps = 1). Rounding z to steps is post-processing. The number of
    draws is geometric with probability A, independent of z, and the same for all rows up to that share: time reveals
    nothing else.

    All reports have the same length, and the decoder refuses longer ones: a malicious report adds no more than others.

    Unbiased: by symmetry E z = u, with m = E <v, u> = (1 - t) f / A, where f = sqrt(D) (1 - gamma^2 / D)^((D - 1) / 2)
    / ((D - 1) B) is the mean of <v, u> in the cap times its share, B = sqrt(pi) Gamma((D - 1) / 2) / Gamma(D / 2). The
    discrete law may take 2 sqrt(D) a / f of |u|: 5e-6, 2e-5 and 6e-4 at eps = 1, 4 and 10 (d = 100). Variance: |z|^2 =
    D / m^2, 1 / m^2 on average over the D coordinates, and in no direction more than E<v, u>^2 = 1 + gamma m times
    that. m is largest where gamma = m: for large D, and within 1% from d = 100, 1 / m^2 is 25.2, 6.33, 1.62, 0.435 at
    eps = 0.5, 1, 2, 4.

    Cost: 1 / A vectors a report: 1.7, 12 and 1000 at eps = 1, 4 and 10; no more above, where the cap does not shrink.

    Args:
        gamma: a multiple of 2^-20 next to the fixed point (any gamma is private and unbiased; this one is best).
        coin: words (of 2^64) on which a vector outside the cap is accepted.

    Source: Bhowmick et al. 2018 (PrivUnit); Asi, Feldman, Talwar 2022 (the best cap; PrivUnitG, whose vectors are
    normal). Both draw v by its parts along u and across it: in floating point some rows then have tails that others
    cannot have.
    """

    gamma: float
    coin: int

    @classmethod
    def within(cls, odds: Fraction, dimension: int) -> PrivUnit:
        """Return the one of least variance whose probabilities differ by a factor of at most ``odds``.

        Raises:
            InvalidInput: the vectors are too long, or the budget is too small.
        """
        if dimension > MAX_DIMENSION:
            raise InvalidInput(f"'privunit' takes vectors of at most {MAX_DIMENSION} numbers, not {dimension}")
        gamma = _fixed_point(float(odds), dimension + 1)
        cap, off = _rational(_cap_share(gamma, dimension + 1)), cap_error(dimension + 1) + ROUNDED
        ratio = _acceptance(cap + off, 1 / odds) / _acceptance(cap - off, 1 / odds)
        coin = math.ceil(WORDS * ratio / odds)
        if not coin < WORDS:
            raise InvalidInput("the budget of this question is too small for 'privunit': every report would be noise")
        return cls(dimension, gamma, coin)

    @property
    def accepted(self) -> float:
        """Probability A that a vector is accepted."""
        return _acceptance(_cap_share(self.gamma, self.size), self.coin / WORDS)

    @property
    def m(self) -> float:
        """Mean of <v, u>."""
        return few_bits((WORDS - self.coin) / WORDS * _mean(self.gamma, self.size) / self.accepted, ESTIMATED)

    @property
    def together(self) -> int:
        """Vectors drawn per attempt: a quarter of those that are needed on average."""
        return min(TOGETHER, math.ceil(0.25 / self.accepted))

    @property
    def secret_words(self) -> int:
        return self.together * (1 + words_for(self.size))

    @property
    def scale(self) -> float:
        return STEP / self.m  # answers are steps of v, whose coordinates have variance near 1

    @property
    def moment(self) -> float:
        return 1 / self.m**2

    def randomise(self, units: Floats, users: Ids, words: DrawWords, seed: PublicRng) -> AnyArray:
        answers, pending, attempt = np.empty((len(users), self.width), self.dtype), np.arange(len(users)), 0
        while len(pending):
            drawn, accepted = words(users[pending], attempt), np.zeros(len(pending), bool)
            for block in blocks(len(pending), self.together * self.size):
                answers[pending[block]], accepted[block] = self._first(units[:, pending[block]], drawn[block])
            pending, attempt = pending[~accepted], attempt + 1
        return answers

    def bundled(self, seed: PublicRng, arrays: BundleArrays) -> dict[str, Any]:
        parameters = {"gamma": self.gamma, "coin": str(self.coin), "together": self.together}
        return {"randomiser": "privunit", **parameters, "sines": arrays.add(quarter_sines())}

    def _first(self, units: Floats, words: Ids) -> tuple[AnyArray, Bools]:
        """Return the first accepted vector of each user's attempt, and True (n,) where there is one."""
        n, size = len(words), self.size
        words = words.reshape(n * self.together, -1)
        v = normals(words[:, 1:], size).reshape(size, n, self.together)
        coins = (words[:, 0] < np.uint64(self.coin)).reshape(n, -1)
        length = np.sqrt(column_sums(v * v) / size)
        accepted = coins | (column_sums(v * units[:, :, None]) >= self.gamma * length)
        first = np.arange(n), accepted.argmax(axis=1)
        return sent(v[: self.dimension, *first] / length[first]), np.asarray(accepted.any(axis=1))


N = TypeVar("N", float, Fraction)


def _acceptance(cap: N, coin: N) -> N:
    """Return the probability that a vector is accepted."""
    return cap + (1 - cap) * coin


def _circles(size: int) -> float:
    """Return B, the integral of cos^(D - 2) over a half turn."""
    return math.sqrt(math.pi) * math.exp(math.lgamma((size - 1) / 2) - math.lgamma(size / 2))


@lru_cache(256)
def _cap_share(gamma: float, size: int) -> float:
    """Return the share of the sphere of radius sqrt(D) where a coordinate is at least gamma.

    It is the integral of cos^(D - 2) / B, by Simpson's rule.
    """
    start = math.asin(gamma / math.sqrt(size))
    end = min(math.pi / 2, start + 12 / math.sqrt(size))
    nodes = np.linspace(start, end, NODES + 1)
    heights = np.maximum(np.cos(nodes), 0.0) ** (size - 2)
    total = heights[0] + heights[-1] + 4 * heights[1::2].sum() + 2 * heights[2:NODES:2].sum()
    return float(total * (end - start) / (3 * NODES) / _circles(size))


def _mean(gamma: float, size: int) -> float:
    """Return f, the mean of a coordinate where it is at least gamma, times the share of the sphere there."""
    rim = math.pow(1 - gamma**2 / size, (size - 1) / 2)
    return math.sqrt(size) * rim / ((size - 1) * _circles(size))


def _rational(probability: float) -> Fraction:
    """Return a rational number within 2^-26 of a probability, the same on platforms whose last digits differ."""
    return Fraction(int(probability * 2**26), 2**26)


def _fixed_point(odds: float, size: int) -> float:
    """Solve gamma = m(gamma) = f (odds - 1) / (odds c + 1 - c), c the cap's share, by bisection.

    Less than the solution if c would be below ``RAREST``.
    """
    low, high = 0, int(min(16.0, math.sqrt(size)) * 2**20)
    while high - low > 1:
        gamma = (low + high) // 2 * 2.0**-20
        cap = _cap_share(gamma, size)
        rises = _mean(gamma, size) * (odds - 1) / (odds * cap + 1 - cap) > gamma and cap > RAREST
        low, high = ((low + high) // 2, high) if rises else (low, (low + high) // 2)
    return low * 2.0**-20

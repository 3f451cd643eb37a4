"""Exact sampler of integer vectors whose law depends on their length alone: P(x) ~ e^(-|x| / s) over Z^d.

Algorithm. Rejection from d independent discrete Laplace integers of scale t >= s sqrt(d), whose joint probability is ~
e^(-(|x_1| + ... + |x_d|) / t). By Cauchy and Schwarz |x_1| + ... + |x_d| <= sqrt(d) |x|, so that

    y = |x| / s - (|x_1| + ... + |x_d|) / t >= 0,

and a candidate that is accepted with probability e^-y has probability ~ e^(-|x| / s). For wide noise S_d Gamma(d) / (2
sqrt(d))^d of the candidates are accepted, S_d = 2 pi^(d / 2) / Gamma(d / 2) being the sphere's surface: 0.79 in two
columns, 0.60 in three, 0.27 in six, 0.09 in ten, and hardly any in thirty.

Filter, as in ``exact_noise``: the coin is the first bits c of a real C, uniform in (0, 1), and heads if C <= e^-y. With
u = 2^-53 and d at most 16, numbers, squares, sums and the root are within 20 u, relatively, so that y is within 40 u
|x| / s; up to |x| / s = 2^8 that is below 2^-39, and e^-y is known within a factor of 1 +- (2^-39 + ``TRUSTED``),
inside 1 +- ``AROUND_EXP``. The rest is decided in integers: |x| as the root of an integer, between two fractions, with
as many bits of C as it takes. So the vectors are a function of the candidates and of C's bits alone.

Source: rejection, von Neumann 1951; candidates and coins as in ``exact_noise``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import final

import attrs
import numpy as np

from cloister.core.exact_coins import GUARD, Uniform, exp_bounds
from cloister.core.exact_noise import AROUND_EXP, AROUND_ZERO, WordSource
from cloister.core.types import Bools, Ids, Ints

FAR = 2.0**8
"""Value of |x| / s from which integers decide."""


@final
@attrs.frozen
class VectorLaw:
    """Law P(x) ~ e^(-|x| / s) over Z^d, and its sampler.

    Args:
        scale: s, as a float.
        width: d, up to 16.
        widened: as of ``exact_noise.Law``.
    """

    scale: float
    width: int
    widened: float = 1.0

    @property
    def around(self) -> float:
        """Scale t, rounded up."""
        return self.scale * math.sqrt(self.width) * (1 + 2.0**-40)

    def filtered(self, candidates: Ints, words: Ids) -> tuple[Bools, Bools]:
        """Return masks (n,) of the candidates (n, d) accepted with these coins (n,), and of the undecided ones."""
        sizes = np.abs(candidates.astype(np.float64))
        lengths = np.sqrt(np.square(sizes).sum(axis=1)) / self.scale
        chance = np.exp(-np.maximum(lengths - sizes.sum(axis=1) / self.around, 0.0))
        coin = words.astype(np.float64) * 2.0**-64
        narrow, zero = AROUND_EXP * self.widened, AROUND_ZERO * self.widened
        heads = coin <= chance * (1 - narrow) - zero
        decided = (heads | (coin >= chance * (1 + narrow) + zero)) & (lengths < FAR)
        return heads & decided, ~decided

    def exactly(self, candidate: list[int], coin: Uniform) -> bool:
        """Return True if a candidate is accepted, decided in integers and fractions alone."""
        square, s = sum(x * x for x in candidate), Fraction(self.scale)
        l1_norm = sum(map(abs, candidate)) / Fraction(self.around)
        while True:
            precision = coin.bits + GUARD
            bits = precision + max(0, s.denominator.bit_length())
            root = math.isqrt(square << 2 * bits)
            low = Fraction(root, 1 << bits) / s - l1_norm
            high = Fraction(root + (root * root != square << 2 * bits), 1 << bits) / s - l1_norm
            if (coin.number + 1) << GUARD <= exp_bounds(max(high, Fraction(0)), precision)[0]:
                return True
            if coin.number << GUARD >= exp_bounds(max(low, Fraction(0)), precision)[1]:
                return False
            coin.extend()

    def draw(self, size: int, laplace: Callable[[int, int], Ints], coins: Callable[[int], WordSource]) -> Ints:
        """Draw independent vectors (size, d).

        Args:
            size: number of vectors.
            laplace: takes an attempt (from 0) and a number; draws as many discrete Laplace integers of scale
                ``around``.
            coins: gives the words for the coins of an attempt.
        """
        out, have, attempt = np.empty((size, self.width), np.int64), 0, 0
        while have < size:
            batch_size = min(2**14, int((size - have) / self.accepted * 1.1) + 16)
            candidates, source = (
                laplace(attempt, batch_size * self.width).reshape(batch_size, self.width),
                coins(attempt),
            )
            words = source.words(batch_size)[:, 0]
            accepted, undecided = self.filtered(candidates, words)
            for i in np.flatnonzero(undecided).tolist():
                accepted[i] = self.exactly(candidates[i].tolist(), Uniform(int(words[i]), source.beyond(i, 0)))
            batch = candidates[accepted][: size - have]
            out[have : have + len(batch)] = batch
            have, attempt = have + len(batch), attempt + 1
        return out

    @property
    def accepted(self) -> float:
        """Approximate fraction of the candidates that is accepted."""
        d = self.width
        surface = math.log(2) + d / 2 * math.log(math.pi) - math.lgamma(d / 2)
        return math.exp(surface + math.lgamma(d) - d * math.log(2 * math.sqrt(d)))

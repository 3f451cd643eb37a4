"""Normal variates from secret words, and real vectors as small integers: what the real-valued randomisers share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import attrs
import numpy as np

from cloister.core.randomness import PublicRng
from cloister.core.types import AnyArray, Floats, Ids, Ints

STEP = 2.0**-11
"""Real answers are sent in these steps, 16 bits each, for coordinates of variance 1: rounding adds STEP^2 / 12 = 2e-8
to that."""

ZERO = 2**15
"""The 16-bit number that stands for 0. Sent numbers are 1 .. 2^16 - 1: coordinates within 16."""

BLOCK = 2**15
"""Variates that are made at once: they stay in a core's cache."""


def blocks(users: int, each: int) -> Iterator[slice]:
    """Users whose variates, so many each, are made at once."""
    step = max(1, BLOCK // each)
    return (slice(start, start + step) for start in range(0, users, step))


def words_for(dimension: int) -> int:
    """Words that so many normal variates take: two from each."""
    return (dimension + 1) // 2


def normals(words: Ids, dimension: int) -> Floats:
    """Words (n, m) to standard normal variates (dimension, n), two from a word (Box and Muller 1958).

    The high half h of a word gives a radius, sqrt(-2 ln U) with U = (h + 1/2) / 2^32, at most 6.76; the low half an
    angle, a multiple of 2 pi / 2^32. Radius, sine and cosine are right to 2^-40, relative and absolute (tested; NumPy's
    logarithm is right to 2^-50, and the rest is table, sums and products). ``astray`` says how near this comes to a
    normal vector.
    """
    columns = np.ascontiguousarray(words.T)
    radius = (columns >> np.uint64(32)).astype(np.float64)
    radius = np.sqrt(-2 * np.log((radius + 0.5) * 2.0**-32))
    cosine, sine = _turn(columns)
    return np.concatenate([radius * cosine, radius * sine])[:dimension]


def astray(dimension: int) -> Fraction:
    """How far the chance of a cap, <v, u> >= c |v|, can be from a normal vector's, for any unit vector u and c >= 0: (m
    + 1) / 2^29.

    Proof, with m words. Replace the pairs one after the other by exact ones of the same word: U uniform in its 2^-32,
    the angle uniform in its 2^-32 of a turn. Given the other pairs, the cap is a convex set of this one, since c |v| is
    convex in it: given the angle, an interval of radii; given the radius, an arc of angles (two, if only one variate of
    the pair is used). The 2^32 radii have equal chances, each in the middle of its own: an interval is right to half of
    one at either end, 2^-32 in all. An arc is right to one angle, 2^-32. What is computed is the pair of a radius off
    by a factor of 1 +- 2^-39 and an angle off by 2^-39, a 2^-7 of a step: the ends of an interval move by at most 2^-38
    of the chance, those of an arc by 2^-6 of an angle. In all below 2^-30 a pair: half of what is taken. The one more
    pays for rounding <v, u> and |v|, 2^-40 of |v|.
    """
    return Fraction(words_for(dimension) + 1, 2**29)


def _turn(words: Ids) -> tuple[Floats, Floats]:
    """Cosine and sine of the angle in the low halves: the lowest 12 bits by a table, the other 20 by the first terms of
    a series.

    Those 20 are an angle of at most 2^-9.3, so that what the series leave out is below 2^-52.
    """
    cosines, sines = _circle()
    place = (words & np.uint64(len(cosines) - 1)).astype(np.intp)
    rest = ((words >> np.uint64(12)) & np.uint64(2**20 - 1)).astype(np.float64) * (math.pi * 2.0**-31)
    square = rest * rest
    cosine, sine = 1 - square * (0.5 - square / 24), rest * (1 - square / 6)
    c, s = cosines[place], sines[place]
    return c * cosine - s * sine, s * cosine + c * sine


@cache
def _circle() -> tuple[Floats, Floats]:
    """Cosines and sines of 2^12 angles."""
    angles = [math.pi * i / 2**11 for i in range(2**12)]
    return np.array([math.cos(angle) for angle in angles]), np.array([math.sin(angle) for angle in angles])


def column_sums(values: AnyArray) -> AnyArray:
    """Sums of the columns of (m, n), in an order that depends on m alone: a user's is the same in any batch."""
    while len(values) > 1:
        half, odd = len(values) // 2, len(values) % 2
        last, values = values[-1], values[:half] + values[half : 2 * half]
        if odd:
            values[0] += last
    return np.asarray(values[0])


def sent(vectors: AnyArray) -> AnyArray:
    """Columns (d, n) of real numbers to answers (n, d), uint16."""
    steps = np.clip(np.rint(vectors * vectors.dtype.type(1 / STEP)), 1 - ZERO, ZERO - 1).astype(np.int32)
    return np.ascontiguousarray((steps + ZERO).astype(np.uint16).T)


def received(answers: AnyArray) -> Ints:
    """Answers (n, d) back to steps."""
    return answers.astype(np.int64) - ZERO


@attrs.frozen
class OnSphere(ABC):
    """Sends the first d coordinates of vectors of length sqrt(D) of R^D, D = d + 1, rounded: none is longer.

    Args:
        dimension: d.
    """

    dimension: int

    dtype = "u2"

    @property
    def size(self) -> int:
        """D."""
        return self.dimension + 1

    @property
    def width(self) -> int:
        return self.dimension

    @property
    def longest(self) -> float:
        return self._reach * self.scale

    @property
    def usual(self) -> float:
        """Any vector of that length can be sent."""
        return self.longest

    @property
    @abstractmethod
    def scale(self) -> float:
        """What a step is worth, in bounds."""

    @property
    def _reach(self) -> float:
        """No answer is longer, in steps: rounding adds at most one to every coordinate."""
        return math.sqrt(self.size) / STEP + math.sqrt(self.dimension)

    def possible(self, answers: AnyArray) -> bool:
        return bool((answers > 0).all() and ((received(answers) ** 2).sum(axis=1) <= self._reach**2).all())

    def estimates(self, answers: AnyArray, users: Ids, seed: PublicRng) -> Ints:
        return received(answers)

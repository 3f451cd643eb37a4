"""Standard normal variates from 64-bit words: the same bits on every machine and in every language."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np

from cloister.core.types import Floats, Ids

MIDDLE = 0x3FE6A09E667F3BCD
"""The bits of the double next to sqrt(1/2)."""

LN4 = 1.3862943611198906
"""The double next to 2 ln 2."""

SERIES = tuple(4 / (2 * k + 1) for k in range(8))
"""The doubles next to 4, 4/3, 4/5, ..., 4/15."""

QUARTER, FIXED = 2**10, 256
"""Angles in a quarter of the table; bits in which it is computed."""


def words_for(dimension: int) -> int:
    """Words that so many normal variates take: two from each."""
    return (dimension + 1) // 2


def normals(words: Ids, dimension: int) -> Floats:
    """Words (n, m) to standard normal variates (dimension, n), two from a word (Box and Muller 1958): of all words the
    first, radius * cosine, then of all the second, radius * sine.

    The high half h of a word gives a radius, sqrt(-2 ln U) with U = (h + 1/2) / 2^32, at most 6.76; the low half an
    angle, a multiple of 2 pi / 2^32. Radius, sine and cosine are right to 2^-40, relative and absolute (tested), and
    the same bits on every machine and in every language: they are table, sums, products, quotients and square roots,
    each rounded once, in the order that is written here. ``astray`` says how near this comes to a normal vector.
    """
    columns = np.ascontiguousarray(words.T)
    radius = np.sqrt(twice_log((columns >> np.uint64(32)).astype(np.float64) + 0.5))
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


def twice_log(x: Floats) -> Floats:
    """-2 ln(x / 2^32) for numbers x in [1/2, 2^32), relatively right to 2^-44.

    x = m 2^e with ``MIDDLE`` <= m < 2 ``MIDDLE``, so that m = 1 is inside and nothing cancels near U = 1. With s = (m -
    1) / (m + 1), ln m = 2 artanh s = 2 s (1 + z / 3 + z^2 / 5 + ...), z = s^2 <= 0.0295: eight terms, the last first
    (Horner). What they leave out is below z^8 / 17 < 2^-44.
    """
    bits = x.view(np.int64)
    power = (bits - MIDDLE) >> 52
    above = (32 - power).astype(np.float64)
    m = (bits - (power << 52)).view(np.float64)
    s = m - 1.0
    m += 1.0
    s /= m
    z = np.multiply(s, s, out=m)
    series = z * SERIES[-1]
    for term in SERIES[-2:0:-1]:
        series += term
        series *= z
    series += SERIES[0]
    series *= s
    above *= LN4
    above -= series
    return above


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
    """Cosines and sines of the 2^12 angles 2 pi i / 2^12: four times a quarter."""
    quarter = quarter_sines()
    half = np.concatenate([quarter, quarter[-2:0:-1]])
    sines = np.concatenate([half, -half])
    return np.roll(sines, -QUARTER), sines


@cache
def quarter_sines() -> Floats:
    """sin(2 pi i / 2^12) for i = 0 .. 2^10, correctly rounded: computed in integers, without pi.

    Cosines of halved angles, cos(t / 2)^2 = (1 + cos t) / 2, from a right angle down to the first; then its multiples,
    by rotation, in ``FIXED`` bits. What rounding down adds up to is below 2^-220, and no value is so near to the middle
    between two doubles (tested).
    """
    one = 1 << FIXED
    cosine = 0
    for _ in range(QUARTER.bit_length() - 1):
        cosine = math.isqrt((one + cosine) << (FIXED - 1))
    sine = math.isqrt((one << FIXED) - cosine**2)
    x, y, found = one, 0, [0.0]
    for _ in range(QUARTER):
        x, y = (x * cosine - y * sine) >> FIXED, (x * sine + y * cosine) >> FIXED
        found.append(y / one)
    sines = np.array(found)
    sines.flags.writeable = False
    return sines

"""Arithmetic with the same bits on every machine, for whatever enters a digest, a lattice or a file's hash.

IEEE 754 fixes the rounding of + - * / and the square root. Processors and libraries differ in the order in which they
take a sum (``np.sum``, ``@``, ``norm``, ``einsum``, ``qr``: each kernel has its own) and in the last bit of exp, log,
pow and their like. Here

* sums of arrays go by halves, in an order that depends on their length alone;
* exp, log and roots of arrays are series of + - * /, of single numbers ``Decimal``'s, which its specification rounds;
* products of matrices are sums of columns, or BLAS's where partial sums are integers below 2^53 (``exact_product``).

A figure that needs more (an integral, a special function) is computed by any library, and then keeps few of its digits:
``few_bits`` to the nearest, ``fewer_bits`` downward, for budgets. Two machines, whose figures differ by a relative
2^-46 at most, then disagree with a probability of 2^-46 times 2^``BITS``: less than one figure in ten million, and none
whose exact value has few digits.

Normal variates are made of 64-bit words in the same way, and have the same bits in every language.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import cache

import numpy as np

from cloister.core.lattice import EXACT
from cloister.core.types import AnyArray, Floats, Ids

MIDDLE = 0x3FE6A09E667F3BCD
"""Bits of the double next to sqrt(1/2)."""

LN4 = 1.3862943611198906
"""Double next to 2 ln 2."""

SERIES = tuple(4 / (2 * k + 1) for k in range(8))
"""Doubles next to 4, 4/3, 4/5, ..., 4/15."""

QUARTER, FIXED = 2**10, 256
"""Angles in a quarter of the table of sines, and bits in which it is computed."""


def words_for(dimension: int) -> int:
    """Return the number of words that so many normal variates take: each word gives two."""
    return (dimension + 1) // 2


def normals(words: Ids, dimension: int) -> Floats:
    """Return standard normal variates (dimension, n) from words (n, m), two from a word (Box and Muller 1958).

    First come the variates radius * cosine of all words, then radius * sine. The high half h of a word gives a radius,
    sqrt(-2 ln U) with U = (h + 1/2) / 2^32, at most 6.76; the low half an angle, a multiple of 2 pi / 2^32. Radius,
    sine and cosine are right to 2^-40, relative and absolute (tested), and the same bits on every machine and in every
    language: a table, sums, products, quotients and square roots, each rounded once, in the order of the code.
    ``cap_error`` bounds the distance from a normal vector.
    """
    columns = np.ascontiguousarray(words.T)
    radius = np.sqrt(twice_log((columns >> np.uint64(32)).astype(np.float64) + 0.5))
    cosine, sine = _turn(columns)
    return np.concatenate([radius * cosine, radius * sine])[:dimension]


def cap_error(dimension: int) -> Fraction:
    """Return a bound on how far the probability of any cap is from a normal vector's: (m + 1) / 2^29.

    A cap is <v, u> >= c |v|, for a unit vector u and c >= 0.

    Proof, with m words. Replace the pairs one after the other by exact ones of the same word: U uniform in its 2^-32,
    the angle uniform in its 2^-32 of a turn. Given the other pairs, the cap is a convex set of this one, since c |v| is
    convex in it: given the angle, an interval of radii; given the radius, an arc of angles (two, if only one variate of
    the pair is used). The 2^32 radii have equal probabilities, each in the middle of its own: an interval is right to
    half of one at either end, 2^-32 in all. An arc is right to one angle, 2^-32. The computed pair has a radius off by
    a factor of 1 +- 2^-39 and an angle off by 2^-39, a 2^-7 of a step: the ends of an interval move by at most 2^-38 of
    the probability, those of an arc by 2^-6 of an angle. In all below 2^-30 a pair: half of the bound's 2^-29. The
    bound's one more pays for rounding <v, u> and |v|, 2^-40 of |v|.
    """
    return Fraction(words_for(dimension) + 1, 2**29)


def twice_log(x: Floats) -> Floats:
    """Return -2 ln(x / 2^32) for numbers x in [1/2, 2^32), relatively right to 2^-44.

    x = m 2^e with ``MIDDLE`` <= m < 2 ``MIDDLE``, so that m = 1 is inside and nothing cancels near U = 1. With s = (m -
    1) / (m + 1), ln m = 2 artanh s = 2 s (1 + z / 3 + z^2 / 5 + ...), z = s^2 <= 0.0295: eight terms, the last first
    (Horner). The remainder is below z^8 / 17 < 2^-44.
    """
    bits = x.view(np.int64)
    power = (bits - MIDDLE) >> 52
    result = (32 - power).astype(np.float64)
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
    result *= LN4
    result -= series
    return result


def _turn(words: Ids) -> tuple[Floats, Floats]:
    """Return cosine and sine of the angle in the low halves: 12 bits by a table, the other 20 by a series.

    Those 20 are an angle of at most 2^-9.3, so that the remainder of the series is below 2^-52.
    """
    cosines, sines = _circle()
    place = (words & np.uint64(len(cosines) - 1)).astype(np.intp)
    remainder = ((words >> np.uint64(12)) & np.uint64(2**20 - 1)).astype(np.float64) * (math.pi * 2.0**-31)
    square = remainder * remainder
    cosine, sine = 1 - square * (0.5 - square / 24), remainder * (1 - square / 6)
    c, s = cosines[place], sines[place]
    return c * cosine - s * sine, s * cosine + c * sine


@cache
def _circle() -> tuple[Floats, Floats]:
    """Return cosines and sines of the 2^12 angles 2 pi i / 2^12: four times a quarter."""
    quarter = quarter_sines()
    half = np.concatenate([quarter, quarter[-2:0:-1]])
    sines = np.concatenate([half, -half])
    return np.roll(sines, -QUARTER), sines


@cache
def quarter_sines() -> Floats:
    """Return sin(2 pi i / 2^12) for i = 0 .. 2^10, correctly rounded: computed in integers, without pi.

    Cosines of halved angles, cos(t / 2)^2 = (1 + cos t) / 2, from a right angle down to the first; then its multiples,
    by rotation, in ``FIXED`` bits. The errors of rounding down add up to less than 2^-220, and no value is so near to
    the middle between two doubles (tested).
    """
    one = 1 << FIXED
    cosine = 0
    for _ in range(QUARTER.bit_length() - 1):
        cosine = math.isqrt((one + cosine) << (FIXED - 1))
    sine = math.isqrt((one << FIXED) - cosine**2)
    x, y, values = one, 0, [0.0]
    for _ in range(QUARTER):
        x, y = (x * cosine - y * sine) >> FIXED, (x * sine + y * cosine) >> FIXED
        values.append(y / one)
    sines = np.array(values)
    sines.flags.writeable = False
    return sines


BITS = 20
"""Bits kept of a figure whose last ones differ between machines."""

ESTIMATED = 30
"""Bits kept of a factor on the reports, once all are in, from which published answers follow."""

DIGITS = Context(prec=40, rounding=ROUND_HALF_EVEN, Emin=-999999, Emax=999999)

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""ln 2 in two parts: the first has 33 bits, so that its products with exponents are exact."""

INVERSES = tuple(1 / math.factorial(n) for n in range(14))
"""Inverses of factorials: exp to 2^-55 for |x| <= ln 2 / 2."""

ROWS = 64
"""Rows of a product that are summed at once: they stay in a core's cache."""

NORMALS = 2**16
"""Variates that are drawn at once."""


def column_sums(values: AnyArray) -> AnyArray:
    """Return the sums of the columns of (m, n), in an order that depends on m alone: the same in any batch."""
    if not len(values):
        return np.zeros(values.shape[1:], values.dtype)
    while len(values) > 1:
        half, odd = len(values) // 2, len(values) % 2
        last, values = values[-1], values[:half] + values[half : 2 * half]
        if odd:
            values[0] += last
    return np.asarray(values[0])


def row_sums(values: AnyArray) -> AnyArray:
    """Return the sums of the rows of (n, m)."""
    return column_sums(values.T)


def total(values: AnyArray) -> float:
    """Return the sum of all numbers of an array."""
    return float(column_sums(np.ravel(values)[:, None])[0])


def lengths(vectors: Floats) -> Floats:
    """Return the Euclidean norms (n,) of vectors (n, d)."""
    return np.asarray(np.sqrt(row_sums(vectors * vectors)))


def product(a: Floats, b: Floats) -> Floats:
    """Return a (n, m) times b (m, p), each sum over m taken by halves."""
    result = np.empty((len(a), b.shape[1]))
    for start in range(0, len(a), ROWS):
        result[start : start + ROWS] = column_sums(a[start : start + ROWS].T[:, :, None] * b[:, None, :])
    return result


def exact_product(a: Floats, b: Floats) -> Floats:
    """Return a (n, m) times b (m, p), of integers with partial sums below 2^53: BLAS is exact in any order."""
    assert not a.size or not b.size or a.shape[1] * _largest(a) * _largest(b) <= EXACT
    return np.asarray(a @ b)


def _largest(values: Floats) -> float:
    return max(float(values.max()), -float(values.min()))


def orthonormal(vectors: Floats) -> Floats:
    """Return orthonormal vectors (m, d) of the same span, m <= d, by the modified Gram-Schmidt process.

    For normal vectors the error of rounding is far below 2^-30.
    """
    basis = vectors.copy()
    for j in range(len(basis)):
        basis[j] /= math.sqrt(float(column_sums(basis[j] * basis[j])))
        basis[j + 1 :] -= row_sums(basis[j + 1 :] * basis[j])[:, None] * basis[j]
    return basis


def standard_normals(g: np.random.Generator, *shape: int) -> Floats:
    """Draw normal variates of this shape from the generator's raw words, as its own use the platform's logarithm."""
    raw, size = g.bit_generator, math.prod(shape)
    variates = np.empty(size)
    for start in range(0, size, NORMALS):
        batch = min(NORMALS, size - start)
        words = np.asarray(raw.random_raw((batch + 1) // 2), np.uint64)
        variates[start : start + batch] = normals(words[:, None], 2).T.ravel()[:batch]
    return variates.reshape(shape)


def uniforms(g: np.random.Generator, *shape: int) -> Floats:
    """Draw uniform numbers (k + 1/2) / 2^32 in (0, 1), of this shape."""
    words = np.asarray(g.bit_generator.random_raw(math.prod(shape)), np.uint64)
    return ((words >> np.uint64(32)).astype(np.float64) + 0.5).reshape(shape) * 2.0**-32


def roots(x: Floats, n: int) -> Floats:
    """Return the n-th roots of ``uniforms``, to a relative 2^-40."""
    return powers(x, 1 / n)


def powers(x: Floats, exponent: float) -> Floats:
    """Return x^exponent for numbers x >= 0 and an exponent > 0, to a relative 2^-40."""
    logs = twice_log(np.where(x > 0, x, 1.0) * 2.0**32)
    return np.where(x > 0, exps(logs * (-0.5 * exponent)), 0.0)


def exps(x: Floats) -> Floats:
    """Return e^x for numbers between -700 and 700, to a relative 2^-50."""
    power = np.rint(x * (1 / math.log(2)))
    remainder = (x - power * LN2_HIGH) - power * LN2_LOW
    series = np.full_like(remainder, INVERSES[-1])
    for term in INVERSES[-2::-1]:
        series = series * remainder + term
    return np.asarray(np.ldexp(series, power.astype(np.int64)))


def exp(x: float) -> float:
    """Return e^x, rounded to the nearest float."""
    return float(DIGITS.exp(Decimal(x)))


def log(x: float) -> float:
    """Return ln x, rounded to the nearest float."""
    return float(DIGITS.ln(Decimal(x)))


def power(x: float, exponent: float) -> float:
    """Return x^exponent of a positive x, rounded to the nearest float."""
    return float(DIGITS.exp(DIGITS.multiply(DIGITS.ln(Decimal(x)), Decimal(exponent))))


def root(x: float, n: int) -> float:
    """Return the n-th root of x >= 0, rounded to the nearest float."""
    if n == 2 or not 0 < x < math.inf:
        return math.sqrt(x)
    return float(DIGITS.exp(DIGITS.divide(DIGITS.ln(Decimal(x)), Decimal(n))))


def ceil_log2(x: float) -> int:
    """Return the least integer n with 2^n >= x > 0."""
    fraction, exponent = math.frexp(x)
    return exponent - 1 if fraction == 0.5 else exponent


def geometric_deviation(scale: float) -> float:
    """Return sqrt(2 p) / (1 - p) for p = exp(-1 / scale): the deviation of integers with P(x) proportional to p^|x|."""
    p = DIGITS.exp(DIGITS.divide(Decimal(-1), Decimal(scale)))
    return float(DIGITS.divide(DIGITS.sqrt(2 * p), 1 - p))


def figure(x: float) -> float:
    """Return a figure for people, to four digits."""
    return float(f"{x:.4g}")


def few_bits(x: float, bits: int = BITS) -> float:
    """Return the nearest float of so many bits, for a figure whose last ones differ between machines."""
    fraction, exponent = math.frexp(x)
    return math.ldexp(round(math.ldexp(fraction, bits)), exponent - bits) if math.isfinite(x) else x


def fewer_bits(x: float, bits: int = BITS) -> float:
    """Return a float of so many bits that is at most x, and above x less a relative 2^(1 - bits)."""
    fraction, exponent = math.frexp(x)
    return math.ldexp(math.floor(math.ldexp(fraction, bits)), exponent - bits) if math.isfinite(x) else x


def more_bits(x: float, bits: int = BITS) -> float:
    """Return a float of so many bits that is at least x, for promises, which may be too large but never too small."""
    return -fewer_bits(-x, bits)


def more_bits_within(x: float, cap: float, bits: int = BITS) -> float:
    """Return ``more_bits``, but at most ``cap``, unless x is above it."""
    return max(x, min(cap, more_bits(x, bits)))

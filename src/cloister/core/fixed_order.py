"""Arithmetic that gives the same bits on every machine: for all that enters a digest, a lattice or a file's hash.

IEEE 754 rounds + - * / and the square root of two numbers in one way. What differs between processors, and between
libraries, is the order in which a sum is taken (``np.sum``, ``@``, ``norm``, ``einsum``, ``qr``: it is that of the
kernel which was chosen for this processor) and the last bit of exp, log, pow and their like. Here

* sums of arrays go by halves, in an order that depends on their length alone;
* exp, log and roots of arrays are series of + - * /, of single numbers ``Decimal``'s, which its specification rounds;
* products of matrices are sums of columns, or BLAS's where partial sums are integers below 2^53 (``exact_product``).

A figure that takes more than that (an integral, a special function) is computed as it may, and then keeps few of its
digits: ``few_bits`` to the nearest, ``fewer_bits`` downward, for budgets. Two machines, whose figures differ by a
relative 2^-46 at most, then disagree with a chance of 2^-46 times 2^``BITS``: less than one figure in ten million, and
none whose exact value has few digits.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal

import numpy as np

from cloister.core.lattice import EXACT
from cloister.core.normals import normals, twice_log
from cloister.core.types import AnyArray, Floats

BITS = 20
"""Bits that a figure keeps which no fixed order gives."""

ESTIMATED = 30
"""Bits of a figure that reports are multiplied by, once all are in: published answers follow from it."""

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
    """Sums of the columns of (m, n), in an order that depends on m alone: a user's is the same in any batch."""
    if not len(values):
        return np.zeros(values.shape[1:], values.dtype)
    while len(values) > 1:
        half, odd = len(values) // 2, len(values) % 2
        last, values = values[-1], values[:half] + values[half : 2 * half]
        if odd:
            values[0] += last
    return np.asarray(values[0])


def row_sums(values: AnyArray) -> AnyArray:
    """Sums of the rows of (n, m)."""
    return column_sums(values.T)


def total(values: AnyArray) -> float:
    """Sum of all numbers of an array."""
    return float(column_sums(np.ravel(values)[:, None])[0])


def running(values: Floats) -> Floats:
    """Sums of the first, the first two, ... of (m,): one after the other, as ``np.cumsum`` adds on every machine."""
    return np.asarray(np.cumsum(values))


def lengths(vectors: Floats) -> Floats:
    """Euclidean norms (n,) of vectors (n, d)."""
    return np.asarray(np.sqrt(row_sums(vectors * vectors)))


def product(a: Floats, b: Floats) -> Floats:
    """a (n, m) times b (m, p): for each number of the result the sum over m by halves."""
    found = np.empty((len(a), b.shape[1]))
    for start in range(0, len(a), ROWS):
        found[start : start + ROWS] = column_sums(a[start : start + ROWS].T[:, :, None] * b[:, None, :])
    return found


def exact_product(a: Floats, b: Floats) -> Floats:
    """a (n, m) times b (m, p), of integers so small that every partial sum is below 2^53: BLAS is exact in any
    order."""
    assert not a.size or not b.size or a.shape[1] * _largest(a) * _largest(b) <= EXACT
    return np.asarray(a @ b)


def _largest(values: Floats) -> float:
    return max(float(values.max()), -float(values.min()))


def orthonormal(vectors: Floats) -> Floats:
    """Orthonormal vectors (m, d) of the same span, m <= d: each is taken off all that follow it (Gram and Schmidt,
    modified: of normal vectors what rounding leaves is far below 2^-30)."""
    found = vectors.copy()
    for j in range(len(found)):
        found[j] /= math.sqrt(float(column_sums(found[j] * found[j])))
        found[j + 1 :] -= row_sums(found[j + 1 :] * found[j])[:, None] * found[j]
    return found


def standard_normals(g: np.random.Generator, *shape: int) -> Floats:
    """Normal variates of this shape from the generator's raw words: its own ``standard_normal`` takes logarithms."""
    raw, many = g.bit_generator, math.prod(shape)
    found = np.empty(many)
    for start in range(0, many, NORMALS):
        some = min(NORMALS, many - start)
        words = np.asarray(raw.random_raw((some + 1) // 2), np.uint64)
        found[start : start + some] = normals(words[:, None], 2).T.ravel()[:some]
    return found.reshape(shape)


def uniforms(g: np.random.Generator, *shape: int) -> Floats:
    """Uniform numbers (k + 1/2) / 2^32 in (0, 1), of this shape."""
    words = np.asarray(g.bit_generator.random_raw(math.prod(shape)), np.uint64)
    return ((words >> np.uint64(32)).astype(np.float64) + 0.5).reshape(shape) * 2.0**-32


def roots(x: Floats, n: int) -> Floats:
    """The n-th roots of ``uniforms``, to a relative 2^-40."""
    return powers(x, 1 / n)


def powers(x: Floats, exponent: float) -> Floats:
    """x^exponent of numbers of at least 0, to a relative 2^-40; exponent > 0."""
    logs = twice_log(np.where(x > 0, x, 1.0) * 2.0**32)
    return np.where(x > 0, exps(logs * (-0.5 * exponent)), 0.0)


def exps(x: Floats) -> Floats:
    """e^x of numbers between -700 and 700, to a relative 2^-50."""
    power = np.rint(x * (1 / math.log(2)))
    rest = (x - power * LN2_HIGH) - power * LN2_LOW
    series = np.full_like(rest, INVERSES[-1])
    for term in INVERSES[-2::-1]:
        series = series * rest + term
    return np.asarray(np.ldexp(series, power.astype(np.int64)))


def exp(x: float) -> float:
    """e^x, rounded to the nearest float."""
    return float(DIGITS.exp(Decimal(x)))


def log(x: float) -> float:
    """ln x, rounded to the nearest float."""
    return float(DIGITS.ln(Decimal(x)))


def power(x: float, exponent: float) -> float:
    """x^exponent of a positive x, rounded to the nearest float."""
    return float(DIGITS.exp(DIGITS.multiply(DIGITS.ln(Decimal(x)), Decimal(exponent))))


def root(x: float, n: int) -> float:
    """The n-th root of x >= 0, rounded to the nearest float."""
    if n == 2 or not 0 < x < math.inf:
        return math.sqrt(x)
    return float(DIGITS.exp(DIGITS.divide(DIGITS.ln(Decimal(x)), Decimal(n))))


def above(x: float) -> int:
    """The least integer n with 2^n >= x > 0."""
    fraction, exponent = math.frexp(x)
    return exponent - 1 if fraction == 0.5 else exponent


def geometric_deviation(scale: float) -> float:
    """The standard deviation of integers with P(x) proportional to p^|x|, p = exp(-1 / scale): sqrt(2 p) / (1 - p)."""
    p = DIGITS.exp(DIGITS.divide(Decimal(-1), Decimal(scale)))
    return float(DIGITS.divide(DIGITS.sqrt(2 * p), 1 - p))


def figure(x: float) -> float:
    """A figure for people, to four digits."""
    return float(f"{x:.4g}")


def few_bits(x: float, bits: int = BITS) -> float:
    """The nearest float of so many bits: of a figure whose last ones differ between machines."""
    fraction, exponent = math.frexp(x)
    return math.ldexp(round(math.ldexp(fraction, bits)), exponent - bits) if math.isfinite(x) else x


def fewer_bits(x: float, bits: int = BITS) -> float:
    """A float of so many bits that is at most x, and above x less a relative 2^(1 - bits)."""
    fraction, exponent = math.frexp(x)
    return math.ldexp(math.floor(math.ldexp(fraction, bits)), exponent - bits) if math.isfinite(x) else x


def more_bits(x: float, bits: int = BITS) -> float:
    """A float of so many bits that is at least x: for what is promised, which may be too large and never too small."""
    return -fewer_bits(-x, bits)


def more_bits_within(x: float, most: float, bits: int = BITS) -> float:
    """The same, but not above ``most``, unless x is."""
    return max(x, min(most, more_bits(x, bits)))

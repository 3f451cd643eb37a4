"""Section "Discrete Gaussian integers": exact, from candidates of three words each."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

from tests.reference_client.words import Words


def gaussians(sigma: float, count: int, words: Words) -> list[int]:
    out: list[int] = []
    while len(out) < count:
        found = _candidate(sigma, words)
        if found is not None:
            out.append(found)
    return out


def _candidate(sigma: float, words: Words) -> int | None:
    a, b, c = words.many(3)
    s, t = Fraction(sigma), math.floor(sigma) + 1
    j = max(0, t.bit_length() - 1 - 8)
    low = b % 2**j
    y = (_steps(a, Fraction(2**j, t), words) << j) + low
    minus = b >> 63 == 1
    if minus and y == 0:
        return None
    x = Fraction(low, t) + (y - s * s / t) ** 2 / (2 * s * s)
    return (-y if minus else y) if _heads(c, x, words) else None


def _steps(a: int, step: Fraction, words: Words) -> int:
    """The largest k such that a uniform number that begins with the word a is at most e^(-k step)."""
    number, bits = a, 64
    while True:
        k = [_floor_log(n, bits, step) for n in (number + 1, max(number, 1))]
        if k[0] == k[1] and number:
            return k[0]
        number, bits = number << 64 | words.next(), bits + 64


def _floor_log(number: int, bits: int, step: Fraction) -> int:
    """floor(-ln(number / 2^bits) / step)."""
    context = Context(prec=60 + bits // 2)
    log = context.subtract(context.multiply(bits, context.ln(2)), context.ln(number))
    return max(0, math.floor(Fraction(log) / step))


def _heads(c: int, x: Fraction, words: Words) -> bool:
    """Whether a uniform number that begins with the word c is at most e^-x."""
    number, bits = c, 64
    while True:
        context = Context(prec=60 + bits // 2, Emin=-(10**6))
        chance = Fraction(context.exp(context.divide(Decimal(-x.numerator), Decimal(x.denominator)))) * 2**bits
        if number + 1 <= chance:
            return True
        if number >= chance:
            return False
        number, bits = number << 64 | words.next(), bits + 64

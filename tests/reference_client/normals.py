"""Sections "Normals" and "Discrete Gaussian integers": noise from words; integers exactly."""

from __future__ import annotations

import math
import struct
from decimal import Context, Decimal
from fractions import Fraction

from tests.reference_client.words import Words

MIDDLE = 0x3FE6A09E667F3BCD
LN4 = 1.3862943611198906
SERIES = [4.0 / k for k in (1, 3, 5, 7, 9, 11, 13, 15)]
RADIAN = math.pi * 2.0**-31


def words_for(count: int) -> int:
    """Words that so many variates take."""
    return (count + 1) // 2


def normals(words: list[int], count: int, sines: list[float]) -> list[float]:
    """All cosines first, then all sines. Args: sines (of a quarter, from the bundle)."""
    radii = [math.sqrt(_twice_log((w >> 32) + 0.5)) for w in words]
    turns = [_turn(w, sines) for w in words]
    first = [r * c for r, (c, _) in zip(radii, turns, strict=True)]
    return (first + [r * s for r, (_, s) in zip(radii, turns, strict=True)])[:count]


def _twice_log(x: float) -> float:
    (bits,) = struct.unpack("<q", struct.pack("<d", x))
    power = (bits - MIDDLE) >> 52
    m: float
    (m,) = struct.unpack("<d", struct.pack("<q", bits - (power << 52)))
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = z * SERIES[7]
    for term in SERIES[6:0:-1]:
        series = (series + term) * z
    series = (series + SERIES[0]) * s
    return (32 - power) * LN4 - series


def _turn(word: int, sines: list[float]) -> tuple[float, float]:
    rest = float((word >> 12) % 2**20) * RADIAN
    square = rest * rest
    cosine, sine = 1.0 - square * (0.5 - square / 24.0), rest * (1.0 - square / 6.0)
    c, s = _sine(word % 4096 + 1024, sines), _sine(word % 4096, sines)
    return c * cosine - s * sine, s * cosine + c * sine


def _sine(i: int, sines: list[float]) -> float:
    """sin(2 pi i / 4096)."""
    i %= 4096
    if i >= 2048:
        return -_sine(i - 2048, sines)
    return sines[i if i <= 1024 else 2048 - i]


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

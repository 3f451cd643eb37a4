"""Coins of probability e^-x, thrown exactly in integers, where floating point cannot decide.

A uniform number is known to as many bits as the comparison needs, and e^-x as an interval of any width: both are
refined until they are apart.

Source: uniform numbers that are extended when needed: von Neumann 1951; Devroye 1986, chapter XV.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import final

GUARD = 24
"""Bits beyond the uniform's to which e^-x is computed: 1 in 2^24 comparisons needs more of the uniform."""


@final
class Uniform:
    """Uniform real number in [0, 1), of which ``bits`` are known: it lies in [number, number + 1] / 2^bits.

    Args:
        word: its first 64 bits.
        next_word: draws the next 64 bits.
    """

    def __init__(self, word: int, next_word: Callable[[], int]) -> None:
        self.number, self.bits, self._next_word = word, 64, next_word

    def extend(self) -> None:
        """Draw another word of it."""
        self.number, self.bits = self.number << 64 | self._next_word(), self.bits + 64

    def below_exp(self, x: Fraction) -> bool:
        """Return True if it is at most e^-x, exactly, for x >= 0: with probability e^-x.

        It ends: e^-x is rational for x = 0 only (Lindemann), where one comparison decides. Otherwise it is still
        undecided after each word with a probability below 2^(1 - bits).
        """
        while True:
            precision = self.bits + GUARD
            low, high = exp_bounds(x, precision)
            if (self.number + 1) << GUARD <= low:
                return True
            if self.number << GUARD >= high:
                return False
            self.extend()


def exp_bounds(x: Fraction, precision: int) -> tuple[int, int]:
    """Return integers (low, high) with low <= 2^precision e^-x <= high and high - low at most 2, for rational x >= 0.

    e^-x = (e^-f)^(2^r) with f = x / 2^r at most 1/2, in fixed point with q bits. The series of e^-f alternates and
    falls. Terms T_k = floor(T_(k-1) f / k) are at most 2 too small each (an error is halved, then at most 1 is added),
    so that the sum of the N terms before T_N = 0 is within 2 N of its exact value, and that within the next term, below
    3, of e^-f. Rounding f down to q bits changes e^-f by at most 1. Squares are rounded outwards, and double a relative
    error each: q has r bits for that, and the others for the few units above.
    """
    if x == 0:
        return 1 << precision, 1 << precision
    if x >= precision:
        return 0, 1  # e^-x < 2^-x
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 2)
    q = precision + 2 * halvings + 2 * precision.bit_length() + 16
    f = (x.numerator << q) // (x.denominator << halvings)
    term, terms, total = 1 << q, 0, 0
    while term:
        total += -term if terms & 1 else term
        terms += 1
        term = (term * f >> q) // terms
    low, high = total - 2 * terms - 4, total + 2 * terms + 4
    for _ in range(halvings):
        low, high = low * low >> q, -(-high * high >> q)
    shift = q - precision
    return low >> shift, -(-high >> shift)

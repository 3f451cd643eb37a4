"""Exact coins from 64-bit words.

A probability is an integer number of words over 2^64, rounded to the side that protects more. The effect of rounding is
therefore known exactly, and thresholds are chosen so that no two inputs give an output probabilities whose ratio, in
fractions, is above e^eps.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np

from cloister.plugin import Budget, Ids, Ints, InvalidInput

WORDS = 2**64
"""Number of 64-bit words."""

ENOUGH = 40.0
"""Largest epsilon used per answer: odds of e^40 to 1 are close to the most extreme coin of 64 bits."""

DIGITS = Context(prec=60, rounding=ROUND_HALF_EVEN, Emin=-999, Emax=999)


def odds(budget: Budget, parts: int = 1) -> Fraction:
    """Return a rational number at most e^(eps / parts), and above (1 - 1e-49) of it, the same on every platform.

    Args:
        budget: pure, or Gaussian, of whose rho at most eps^2 / 2 is used.
        parts: number of answers that share it.

    Raises:
        InvalidInput: the budget is infinite, or too small for a coin of 64 bits.
    """
    epsilon = budget.epsilon
    if not math.isfinite(epsilon):
        raise InvalidInput("a local oracle randomises every answer: give it a finite epsilon")
    if budget.measure != "pure":
        epsilon *= 1 - 2.0**-50  # it is a square root, which may have been rounded up
    share = DIGITS.divide(Decimal(min(epsilon, ENOUGH * parts)), Decimal(parts))
    if share < Decimal("1e-9"):
        raise InvalidInput(f"epsilon {epsilon:g} over {parts} answers is too small: every report would be noise")
    # Decimal.exp is rounded correctly by its specification (half a unit of the 60th digit), where math.exp is right to
    # its last bit on most platforms only. So taking 1e-50 off is certain to be below.
    return Fraction(DIGITS.exp(share)) * (1 - Fraction(1, 10**50))


def multiply_shift(words: Ids, m: int) -> Ints:
    """Return floor(word * m / 2^64) (n,), integers below m, 1 <= m < 2^32.

    Integer r comes from ``words_per_integer(m)[r]`` words, which is 2^64 / m rounded down or up: a relative error of at
    most m / 2^64.
    """
    factor, half = np.uint64(m), np.uint64(32)
    low = ((words & np.uint64(0xFFFFFFFF)) * factor) >> half
    return (((words >> half) * factor + low) >> half).astype(np.int64)


def words_per_integer(m: int) -> tuple[int, ...]:
    """Count the words that ``multiply_shift`` turns into each integer below m, for small m."""
    starts = [-(-r * WORDS // m) for r in range(m + 1)]
    return tuple(high - low for low, high in pairwise(starts))


def coin_words(chance: Fraction) -> int:
    """Return the largest number of words whose coin has at most this probability.

    Raises:
        InvalidInput: that number is 0.
    """
    words = int(chance * WORDS)
    if words < 1:
        raise InvalidInput("the budget of this question is too small for a coin of 64 bits: increase it")
    return min(words, WORDS - 1)


def truthful_words(odds: Fraction, inside: Fraction) -> int:
    """Return the number of words (of 2^64) on which a person may tell the truth, rounded down.

    The mechanism: with probability t the output is drawn from a law that her bucket decides, else from a law u that all
    persons share. If the first is at most ``u / inside`` everywhere, an output z has a probability between (1 - t) u(z)
    and (1 - t) u(z) + t u(z) / inside, whatever the input; for a person without a row it is u(z), in between. So every
    ratio is at most 1 + t / ((1 - t) inside), which is at most ``odds`` iff t <= c / (1 + c), c = (odds - 1) inside.
    """
    c = (odds - 1) * inside
    return coin_words(c / (1 + c))

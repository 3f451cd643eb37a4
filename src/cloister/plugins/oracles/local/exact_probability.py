"""Exact coins from 64-bit words, rounded to the side that protects more.

A probability is an integer number of words over 2^64. Whatever rounding does to it is therefore known exactly, and
thresholds are chosen so that no two inputs give an output chances whose ratio, in fractions, is above e^eps.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np

from cloister.core.budget import Budget
from cloister.core.errors import InvalidInput
from cloister.core.types import Ids, Ints

WORDS = 2**64
"""How many words there are."""

ENOUGH = 40.0
"""More epsilon than this per answer is not used: e^40 to 1 is nearly every coin that 64 bits can throw."""

DIGITS = Context(prec=60, rounding=ROUND_HALF_EVEN, Emin=-999, Emax=999)


def odds(budget: Budget, parts: int = 1) -> Fraction:
    """A rational number at most e^(eps / parts), and above (1 - 1e-49) of it, the same on every platform.

    Why not ``math.exp``: it is right up to its last bit on most platforms only. ``Decimal.exp`` is rounded correctly by
    its specification (half a unit of the 60th digit), so that taking 1e-50 off is certain to be below.

    Args:
        budget: pure, or rho of which eps^2 / 2 is at most used.
        parts: how many answers share it.

    Raises:
        InvalidInput: the budget is not pure, infinite, or too small for a coin of 64 bits.
    """
    epsilon = budget.epsilon
    if not math.isfinite(epsilon):
        raise InvalidInput("a local oracle needs a finite epsilon: every answer is randomised")
    if budget.measure != "pure":
        epsilon *= 1 - 2.0**-50  # a square root is rounded, up at times
    share = DIGITS.divide(Decimal(min(epsilon, ENOUGH * parts)), Decimal(parts))
    if share < Decimal("1e-9"):
        raise InvalidInput(f"epsilon {epsilon:g} over {parts} answers is too little: every report would be noise")
    return Fraction(DIGITS.exp(share)) * (1 - Fraction(1, 10**50))


def below(words: Ids, m: int) -> Ints:
    """floor(word * m / 2^64) (n,): an integer below m, 1 <= m < 2^32, by multiply-shift.

    Integer r comes from ``hits(m)[r]`` words, which is 2^64 / m rounded down or up: a relative error of at most m /
    2^64.
    """
    factor, half = np.uint64(m), np.uint64(32)
    low = ((words & np.uint64(0xFFFFFFFF)) * factor) >> half
    return (((words >> half) * factor + low) >> half).astype(np.int64)


def hits(m: int) -> tuple[int, ...]:
    """How many of the 2^64 words ``below`` turns into each integer below m (small m: all of them are listed)."""
    starts = [-(-r * WORDS // m) for r in range(m + 1)]
    return tuple(high - low for low, high in pairwise(starts))


def threshold(chance: Fraction) -> int:
    """The most words that make a coin of at most this probability.

    Raises:
        InvalidInput: not even one word does.
    """
    words = int(chance * WORDS)
    if words < 1:
        raise InvalidInput("the budget of this question is too small: a coin of 64 bits cannot tell its answers apart")
    return min(words, WORDS - 1)


def truthful_words(odds: Fraction, inside: Fraction) -> int:
    """Words (of 2^64) on which a person tells the truth, where otherwise she answers as if she had no row at all.

    The mechanism: with probability t the output is drawn from a law that her bucket decides, else from the law u that
    every person shares. If the first is at most ``u / inside`` everywhere, an output z has chances between (1 - t) u(z)
    and (1 - t) u(z) + t u(z) / inside, whatever the input; a person without a row has u(z), in between. So every ratio
    is at most 1 + t / ((1 - t) inside), which is at most ``odds`` iff t <= c / (1 + c), c = (odds - 1) inside. Rounded
    down.
    """
    c = (odds - 1) * inside
    return threshold(c / (1 + c))

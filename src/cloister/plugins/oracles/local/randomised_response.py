"""k-ary randomised response, on exact coins.

Answers that are sets of buckets: one bit for each, packed into bytes, bucket 0 in the lowest bit.

Exact coins from 64-bit words, rounded to the side that protects more.

A probability is an integer number of words over 2^64. Whatever rounding does to it is therefore known exactly, and
thresholds are chosen so that no two inputs give an output chances whose ratio, in fractions, is above e^eps.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, final

import attrs
import numpy as np

from cloister.core.budget import Budget
from cloister.core.errors import InvalidInput
from cloister.core.types import AnyArray, Bools, Ids, Ints

BLOCK = 2**22
"""Bits that are unpacked at once."""

TILE = 32
"""Users whom a compiled kernel takes together."""


def packed(sets: Bools) -> AnyArray:
    """Sets (n, m) to bytes (n, ceil(m / 8))."""
    return np.packbits(sets, axis=1, bitorder="little")


def unpacked(answers: AnyArray, size: int) -> AnyArray:
    """Bytes back to bits (n, size), 0 or 1."""
    return np.unpackbits(answers, axis=1, bitorder="little", count=size)


def filled(answers: AnyArray, size: int) -> bool:
    """Whether any bit beyond ``size`` is set."""
    return bool(size % 8 and (answers[:, -1] >> np.uint8(size % 8)).any())


def members(answers: AnyArray, size: int) -> Ints:
    """How many of the sets each element is in (size,)."""
    out, step = np.zeros(size, np.int64), max(1, BLOCK // size)
    for start in range(0, len(answers), step):
        out += unpacked(answers[start : start + step], size).sum(axis=0, dtype=np.int64)
    return out


def sizes(answers: AnyArray) -> Ints:
    """How many elements each of the sets has (n,)."""
    return np.asarray(np.bitwise_count(answers).sum(axis=1, dtype=np.int64))


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


@final
@attrs.frozen
class Response:
    """Send your symbol with some probability, else a uniform one of all ``symbols``.

    Guarantee (Local; replace one row, or have none): eps-DP, where ``odds`` <= e^eps. With t = keep / 2^64 and u_y the
    exact chance of a uniform symbol (floor or ceil of 2^64 / k words), y has chance (1 - t) u_y + t [y = x] from input
    x, and u_y from a person in no bucket. This is ``truthful_words`` with inside = min u_y: the
    multiply-shift's unevenness is inside the bound, not beside it. In the limit it is the usual law: e^eps / (e^eps + k
    - 1) against 1 / (e^eps + k - 1).

    Args:
        symbols: k >= 2, below 2^32.
        keep: words (of 2^64) on which the true symbol is sent.

    Source: Warner 1965; Kairouz, Bonawitz, Ramage 2016.
    """

    symbols: int
    keep: int

    @classmethod
    def within(cls, odds: Fraction, symbols: int) -> Response:
        """The most truthful response whose chances differ by a factor of at most ``odds``."""
        return cls(symbols, truthful_words(odds, Fraction(WORDS // symbols, WORDS)))

    @property
    def truth(self) -> float:
        """t: by which the true symbol is likelier than if it were another one."""
        return self.keep / WORDS

    @property
    def bundled(self) -> dict[str, Any]:
        """For devices that run no Python."""
        return {"symbols": self.symbols, "keep": str(self.keep)}

    def randomise(self, values: Ints, words: Ids) -> Ints:
        """Symbols (n,), -1 for none, and words (n, 2) to sent symbols (n,)."""
        true = (words[:, 0] < np.uint64(self.keep)) & (values >= 0)
        return np.where(true, values, below(words[:, 1], self.symbols))

    def table(self) -> list[list[Fraction]]:
        """Exact chances of every symbol, for each input and, last, for a person in no bucket. For small k."""
        t, uniform = Fraction(self.keep, WORDS), [Fraction(count, WORDS) for count in hits(self.symbols)]
        rows = [[(1 - t) * u + (t if y == x else 0) for y, u in enumerate(uniform)] for x in range(self.symbols)]
        return [*rows, uniform]

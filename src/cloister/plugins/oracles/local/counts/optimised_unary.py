"""Optimised unary encoding: one bit per bucket and user, for small spaces.

Guarantee (Local; replace one row, or have none; pure, no delta): a user sets the bit of her bucket with probability
1/2, exactly, and every other bit with probability q >= 1 / (e^eps + 1), an integer number of 64-bit words rounded up.
Moving from one bucket to another changes two bits; the largest ratio is (1/2 / q) ((1 - q) / (1/2)) = (1 - q) / q <=
e^eps. A user in no bucket sets every bit with probability q; moving from there changes one bit, by (1/2) / q or
(1 - q) / (1/2), which are smaller. For several levels see ``reports``.

A set of more than ``max_bits`` bits is sent as the empty set. That is post-processing, of probability below e^-32 =
1.3e-14; times 1 / (1/2 - q) this is the bias of a count, per person. The decoder refuses larger sets, so that a
malicious user supports at most max_bits / K of the buckets, half of 256 at eps = 1, not all of them at once.

Unbiased: (S_v - n q) / (1/2 - q), where S_v reports have bit v. Variance with n users: n 4 e^eps / (e^eps - 1)^2, plus
n_v for a bucket with n_v of them. A report has K bits and takes K secret words.

Source: Wang, Blocki, Li, Jha 2017, section 4.3.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from cloister.plugin import AnyArray, Floats, Ids, Ints, Proportion, PublicRng, ReportLaw, component
from cloister.plugins.oracles.local.coins import WORDS
from cloister.plugins.oracles.local.counts.channel import CUT, ROUNDED, LocalCounts, ResponseProbabilities
from cloister.plugins.oracles.local.packed_sets import has_padding_bits, packed, set_counts, set_sizes

MAX_BUCKETS = 2**12
"""Limit of buckets per level: a report has a bit, and takes a secret word, for each."""

SELDOM = 32
"""Minus the logarithm of a bound on the probability of a set that is too large to be sent."""


@component
class OptimisedUnary(LocalCounts):
    """Counts from one randomised bit per bucket and user."""

    mechanism, max_buckets = "optimised-unary", MAX_BUCKETS
    instead = "'optimised-local-hashing', which is as accurate, or 'hadamard-response'"

    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Unary:
        return Unary(size, -int(-WORDS // (odds + 1)))


@final
@attrs.frozen
class Unary:
    """Mechanism with a randomised bit per bucket; a report supports the buckets whose bits it sets.

    Args:
        size: number of buckets of this level.
        flip: words (of 2^64) on which a bit of another bucket is set.
    """

    size: int
    flip: int

    dtype = "u1"

    @property
    def chances(self) -> ResponseProbabilities:
        return ResponseProbabilities(1 / 2, self.flip / WORDS)

    @property
    def max_bits(self) -> int:
        """Limit of set bits: her own, and of the others K q + s by Hoeffding's or Bernstein's inequality."""
        mean, spread = self.size * self.chances.q, self.size * self.chances.q * (1 - self.chances.q)
        hoeffding = math.sqrt(SELDOM * self.size / 2)
        bernstein = SELDOM / 3 + math.sqrt((SELDOM / 3) ** 2 + 2 * SELDOM * spread)
        return min(self.size, math.ceil(1 + mean + min(hoeffding, bernstein)))

    @property
    def at_once(self) -> int:
        return self.max_bits

    @property
    def secret_words(self) -> int:
        return self.size

    @property
    def width(self) -> int:
        return -(-self.size // 8)

    def randomise(self, ids: Ints, users: Ids, words: Ids) -> AnyArray:
        bits = words < np.uint64(self.flip)
        inside = np.flatnonzero(ids >= 0)
        bits[inside, ids[inside]] = words[inside, ids[inside]] < np.uint64(WORDS // 2)
        bits[bits.sum(axis=1) > self.max_bits] = False
        return packed(bits)

    def bundled(self) -> dict[str, Any]:
        return {"randomiser": "unary", "size": self.size, "flip": str(self.flip), "most": self.max_bits}

    def possible(self, answers: AnyArray) -> bool:
        return not has_padding_bits(answers, self.size) and bool((set_sizes(answers) <= self.max_bits).all())

    def counted(self, answers: AnyArray) -> Ints:
        """Count the reports with each number of bits (max_bits + 1,)."""
        return np.asarray(np.bincount(set_sizes(answers), minlength=self.max_bits + 1), np.int64)

    def laws(self, counted: Ints, reports: int) -> tuple[ReportLaw, ...]:
        """Return the law of the number of set bits, which lies between those of a person in no bucket and in one.

        It is a sum of K coins of probability q for the first, of K - 1 of them and one of 1/2 >= q for the second: n
        bits or more have a probability between the two. (Sets that are too large are sent as the empty set.)
        """
        nobody, all_but_one = at_least(self.size, self.chances.q), at_least(self.size - 1, self.chances.q)
        somebody = (all_but_one + np.append(1.0, all_but_one[:-1])) / 2
        low, high = np.maximum(nobody * (1 - ROUNDED) - CUT, 0.0), np.clip(somebody * (1 + ROUNDED), 1e-290, 1.0)
        at_least_n = np.cumsum(counted[::-1])[::-1]
        proportions = (
            Proportion(f"{n} buckets or more at once", int(at_least_n[n]), reports, float(low[n]), float(high[n]))
            for n in range(1, self.max_bits + 1)
        )
        return (ReportLaw(tuple(proportions), self.max_bits),)

    def tally(self, users: Ids, answers: AnyArray) -> Ints:
        return set_counts(answers, self.size)

    def supports(self, total: Ints, reports: int) -> Ints:
        return total


def at_least(trials: int, chance: float) -> Floats:
    """Return the probabilities that n or more of ``trials`` coins come up, for n = 0 .. trials + 1 (trials + 2,).

    Relative error at most 2^-32, except below 1e-290.
    """
    n = np.arange(trials + 1)
    logs = np.array([math.lgamma(m + 1) for m in range(trials + 1)])
    chances = np.exp(logs[-1] - logs - logs[::-1] + n * math.log(chance) + n[::-1] * math.log1p(-chance))
    return np.append(np.cumsum(chances[::-1])[::-1], 0.0)

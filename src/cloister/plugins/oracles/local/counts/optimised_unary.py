"""Optimised unary encoding: one bit per bucket and user, for small spaces.

Guarantee (Local; replace one row, or have none; pure, no delta): a user sets the bit of her bucket with chance 1/2,
exactly, and every other bit with chance q >= 1 / (e^eps + 1), an integer number of 64-bit words rounded up. Moving from
one bucket to another changes two bits; the likeliest change has the ratio (1/2 / q) ((1 - q) / (1/2)) = (1 - q) / q <=
e^eps. A user in no bucket sets every bit with chance q; moving from there changes one bit, by (1/2) / q or (1 - q) /
(1/2), which are smaller. Over several levels see ``reports``.

How many bits are set is limited: a set of more than ``most`` is sent as the empty set. That is post-processing; its
chance is below e^-32 = 1.3e-14, by which, times 1 / (1/2 - q), it moves a count, per person. The decoder refuses larger
sets: one who lies then supports most/K of the buckets, half of 256 at eps = 1, not all of them at once.

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

from cloister.core.randomness import PublicRng
from cloister.core.registry.components import component
from cloister.core.reports import Proportion, ReportLaw
from cloister.core.types import AnyArray, Floats, Ids, Ints
from cloister.plugins.oracles.local.counts.channel import CUT, ROUNDED, LocalCounts, ResponseProbabilities
from cloister.plugins.oracles.local.randomised_response import WORDS, filled, members, packed, sizes

MAX_BUCKETS = 2**12
"""Buckets per level: a report has a bit for each, and takes a secret word for each."""

SELDOM = 32
"""Minus the logarithm of the chance (at most) of a set that is too large to be sent."""


@component
class OptimisedUnary(LocalCounts):
    """Counts from one randomised bit per bucket and user."""

    mechanism, most = "optimised-unary", MAX_BUCKETS
    instead = "'optimised-local-hashing', which is as accurate, or 'hadamard-response'"

    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Unary:
        return Unary(size, -int(-WORDS // (odds + 1)))


@final
@attrs.frozen
class Unary:
    """Bits, one per bucket. A report supports the buckets whose bit it has set.

    Args:
        size: buckets of this level.
        flip: words (of 2^64) on which a bit of another bucket is set.
    """

    size: int
    flip: int

    dtype = "u1"

    @property
    def chances(self) -> ResponseProbabilities:
        return ResponseProbabilities(1 / 2, self.flip / WORDS)

    @property
    def most(self) -> int:
        """Bits that are set at most, her own and of the others K q + s: by Hoeffding's and by Bernstein's
        inequality."""
        mean, spread = self.size * self.chances.other, self.size * self.chances.other * (1 - self.chances.other)
        hoeffding = math.sqrt(SELDOM * self.size / 2)
        bernstein = SELDOM / 3 + math.sqrt((SELDOM / 3) ** 2 + 2 * SELDOM * spread)
        return min(self.size, math.ceil(1 + mean + min(hoeffding, bernstein)))

    @property
    def at_once(self) -> int:
        return self.most

    @property
    def each(self) -> int:
        return self.size

    @property
    def width(self) -> int:
        return -(-self.size // 8)

    def randomise(self, ids: Ints, users: Ids, words: Ids) -> AnyArray:
        bits = words < np.uint64(self.flip)
        own = np.flatnonzero(ids >= 0)
        bits[own, ids[own]] = words[own, ids[own]] < np.uint64(WORDS // 2)
        bits[bits.sum(axis=1) > self.most] = False
        return packed(bits)

    def bundled(self) -> dict[str, Any]:
        return {"randomiser": "unary", "size": self.size, "flip": str(self.flip), "most": self.most}

    def possible(self, answers: AnyArray) -> bool:
        return not filled(answers, self.size) and bool((sizes(answers) <= self.most).all())

    def counted(self, answers: AnyArray) -> Ints:
        """How many reports have each number of bits (most + 1,)."""
        return np.asarray(np.bincount(sizes(answers), minlength=self.most + 1), np.int64)

    def laws(self, counted: Ints, reports: int) -> tuple[ReportLaw, ...]:
        """How many bits are set does not tell which. Of a person in no bucket it is a sum of K coins of chance q, of
        any other one of K - 1 and of one of chance 1/2 >= q: so many bits or more are as likely as of the one to as of
        the other. (Sets that are too large are sent as the empty set.)"""
        nobody, others = at_least(self.size, self.chances.other), at_least(self.size - 1, self.chances.other)
        somebody = (others + np.append(1.0, others[:-1])) / 2
        least, most = np.maximum(nobody * (1 - ROUNDED) - CUT, 0.0), np.clip(somebody * (1 + ROUNDED), 1e-290, 1.0)
        found = np.cumsum(counted[::-1])[::-1]
        proportions = (
            Proportion(f"{n} buckets or more at once", int(found[n]), reports, float(least[n]), float(most[n]))
            for n in range(1, self.most + 1)
        )
        return (ReportLaw(tuple(proportions), self.most),)

    def tally(self, users: Ids, answers: AnyArray) -> Ints:
        return members(answers, self.size)

    def supports(self, total: Ints, reports: int) -> Ints:
        return total


def at_least(trials: int, chance: float) -> Floats:
    """Chances that 0, 1, ..., trials + 1 of so many coins or more come up (trials + 2,): relatively right to 2^-32, but
    for those below 1e-290."""
    n = np.arange(trials + 1)
    logs = np.array([math.lgamma(m + 1) for m in range(trials + 1)])
    each = np.exp(logs[-1] - logs - logs[::-1] + n * math.log(chance) + n[::-1] * math.log1p(-chance))
    return np.append(np.cumsum(each[::-1])[::-1], 0.0)

"""Subset selection: a user sends a random set of buckets that is likelier to hold her own.

Its noise is the lowest of all for small spaces, at any eps, up to a constant.

Guarantee (Local; replace one row, or have none; pure, no delta): there are M = K + 1 symbols, the last for 'in no
bucket'. A set of k = round(M / (e^eps + 1)) symbols (at least 1) is sent with one of two probabilities, of ratio e^eps:
the larger if her symbol is in it.

Exactness: draw a set S, the symbols of the k smallest of M secret words, and rotate it around the circle of symbols:
with probability t so that a uniform element of S comes to lie on her symbol x, else by a uniform r. For any S, however
it is drawn, #{j : S - s_j + x = Z} = #{r : S + r = Z} [x in Z], so a set Z has the probabilities

    sum_r [S + r = Z] c_r      and      sum_j [S + x - s_j = Z] c'_j <= [x in Z] sum_r [S + r = Z] max c',

where c_r and c'_j, about 1/M and 1/k, are integer numbers of 64-bit words: ``truthful_words`` with
inside = min c / max c'. Neither ties among the words nor the unevenness of multiply-shift add anything.

Unbiased: (S_v - n q) / (p - q), where S_v sets hold v, p = t + (1 - t) k / M, q = t (k - 1) / (M - 1) + (1 - t) k / M
(``counts.channel`` has the variance; ties change q by less than M^2 / 2^64). For several levels see ``reports``. A
report has M bits.

Source: Ye, Barg 2018; Wang et al. 2016.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from cloister.plugin import AnyArray, Ids, Ints, PublicRng, component
from cloister.plugins.oracles.local.coins import WORDS, multiply_shift, truthful_words, words_per_integer
from cloister.plugins.oracles.local.counts.channel import LocalCounts, ResponseProbabilities
from cloister.plugins.oracles.local.packed_sets import has_padding_bits, packed, set_counts, set_sizes
from cloister.plugins.oracles.local.question import WithoutReportLaws

MAX_BUCKETS = 2**12
"""Limit of buckets per level: a report has a bit, and takes a secret word, for each."""


@component
class SubsetSelection(LocalCounts):
    """Counts from a random set of buckets per user."""

    mechanism, max_buckets = "subset-selection", MAX_BUCKETS
    instead = "'optimised-local-hashing', which is nearly as accurate, or 'hadamard-response'"

    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Subset:
        m = size + 1
        k = max(1, math.floor(m / (odds + 1) + Fraction(1, 2)))
        return Subset(size, k, truthful_words(odds, Fraction(min(words_per_integer(m)), max(words_per_integer(k)))))


@final
@attrs.frozen
class Subset(WithoutReportLaws):
    """Random set of ``chosen`` out of ``size`` + 1 symbols; a report supports the buckets in it.

    Args:
        size: K, number of buckets of this level.
        chosen: k, 1 <= k <= K.
        keep: words (of 2^64) on which the set is made to hold the user's symbol.
    """

    size: int
    chosen: int
    keep: int

    dtype = "u1"

    @property
    def chances(self) -> ResponseProbabilities:
        t, k, m = self.keep / WORDS, self.chosen, self.size + 1
        blind = (1 - t) * k / m
        return ResponseProbabilities(t + blind, t * (k - 1) / (m - 1) + blind)

    @property
    def at_once(self) -> int:
        return self.chosen

    @property
    def secret_words(self) -> int:
        return self.size + 1 + 3

    @property
    def width(self) -> int:
        return -(-(self.size + 1) // 8)

    def randomise(self, ids: Ints, users: Ids, words: Ids) -> AnyArray:
        m, k, people = self.size + 1, self.chosen, np.arange(len(ids))
        chosen = smallest(words[:, :m], k)
        pivot = chosen[people, multiply_shift(words[:, m], k)]
        to_own = np.where(ids >= 0, ids, self.size) - pivot
        turn = np.where(words[:, m + 1] < np.uint64(self.keep), to_own, multiply_shift(words[:, m + 2], m))
        sets = np.zeros((len(ids), m), bool)
        sets[people[:, None], (chosen + turn[:, None]) % m] = True
        return packed(sets)

    def bundled(self) -> dict[str, Any]:
        return {"randomiser": "subset", "size": self.size, "chosen": self.chosen, "keep": str(self.keep)}

    def possible(self, answers: AnyArray) -> bool:
        return not has_padding_bits(answers, self.size + 1) and bool((set_sizes(answers) == self.chosen).all())

    def tally(self, users: Ids, answers: AnyArray) -> Ints:
        return set_counts(answers, self.size + 1)

    def supports(self, total: Ints, reports: int) -> Ints:
        return total


def smallest(words: Ids, k: int) -> Ints:
    """Return the positions (n, k), ascending, of the k smallest of each row's words (n, m), the first of equal ones."""
    edge = np.partition(words, k - 1, axis=1)[:, k - 1, None]
    inside = words <= edge
    if np.count_nonzero(inside) > k * len(words):
        below_edge = words < edge
        ties = k - below_edge.sum(axis=1, keepdims=True)
        inside = below_edge | (inside & (np.cumsum(inside & ~below_edge, axis=1) <= ties))
    return np.nonzero(inside)[1].reshape(len(words), k)

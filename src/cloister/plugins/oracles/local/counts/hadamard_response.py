"""Hadamard response: one bit per user, every bucket decoded by one fast Walsh-Hadamard transform, for millions of buckets.

Guarantee (Local; replace one row, or have none; pure, no delta): a user has a public random row J of the Hadamard matrix of
size K (the number of buckets, filled up to a power of two); she sends its sign at her bucket, H(J, b) = (-1)^|J & b|, flipped
with chance 1 / (e^eps + 1): ``Response`` on two symbols, eps-DP. A user in no bucket sends a uniform bit. Over several levels
see ``levels``.

Unbiased: E_J[H(J, v) H(J, b)] = [v = b], so (e^eps + 1) / (e^eps - 1) * sum_i y_i H(J_i, v) has mean n_v. Variance with n
users: n ((e^eps + 1) / (e^eps - 1))^2 - n_v (4.68 n at eps = 1); with T levels sharing users T n (...)^2 - n_v. That is
n more than local hashing has, whatever eps is: the price of one bit and a fast transform. Decoding costs n + K log K, in exact
integers.

Source: Bassily, Nissim, Stemmer, Thakurta 2017 (Hashtogram's inner oracle); Acharya, Sun, Zhang 2019.
"""

from __future__ import annotations

from fractions import Fraction
from typing import final

import attrs
import numpy as np

from cloister.core.randomness import PublicRng
from cloister.core.registry.components import component
from cloister.core.types import AnyArray, Ids, Ints
from cloister.plugins.oracles.local.counts.opening import LocalCounts
from cloister.plugins.oracles.local.counts.support import Chances
from cloister.plugins.oracles.local.randomised_response import Response

MOST = 2**24


@component
class HadamardResponse(LocalCounts):
    """Counts from one randomised entry of the Hadamard matrix per user."""

    mechanism, most = "hadamard-response", MOST
    instead = "'explicit-histogram', which is asked bucket by bucket"

    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Signed:
        return Signed(size, seed, Response.within(odds, 2))


@final
@attrs.frozen
class Signed:
    """A sign of a random row of the Hadamard matrix. A report supports the buckets where her row has the sign that she sent.

    Args:
        size: buckets of this level.
        seed: public, of the users' rows.
        response: on signs: 0 is +, 1 is -.
    """

    size: int
    seed: PublicRng
    response: Response

    @property
    def bits(self) -> int:
        """log2 K."""
        return (self.size - 1).bit_length()

    @property
    def chances(self) -> Chances:
        return Chances((1 + self.response.truth) / 2, 1 / 2)

    @property
    def each(self) -> int:
        return 2

    @property
    def width(self) -> int:
        return 1

    @property
    def dtype(self) -> str:
        return "u1"

    def rows(self, users: Ids) -> Ints:
        """Each user's public row J (n,)."""
        top = self.seed.of_users(users) >> np.uint64(40)
        return (top & np.uint64(2**self.bits - 1)).astype(np.int64)

    def randomise(self, ids: Ints, users: Ids, words: Ids) -> AnyArray:
        signs = odd(self.rows(users) & ids)
        return self.response.randomise(np.where(ids >= 0, signs, -1), words).astype(self.dtype)[:, None]

    def possible(self, answers: AnyArray) -> bool:
        return bool((answers < 2).all())

    def tally(self, users: Ids, answers: AnyArray) -> Ints:
        """Signs that were sent, added up per row of the matrix (K,)."""
        rows, size = self.rows(users), 2**self.bits
        minus = np.bincount(rows[answers[:, 0] == 1], minlength=size)
        return np.asarray(np.bincount(rows, minlength=size) - 2 * minus, np.int64)

    def supports(self, total: Ints, reports: int) -> Ints:
        return np.asarray((reports + transformed(total)[: self.size]) >> 1, np.int64)


def odd(values: Ints) -> Ints:
    """1 where an odd number of the lowest 32 bits are set, else 0."""
    for shift in (16, 8, 4, 2, 1):
        values = values ^ (values >> shift)
    return values & 1


def transformed(values: Ints) -> Ints:
    """The Walsh-Hadamard transform of 2^m integers, exactly: out[v] = sum_j (-1)^|j & v| values[j]."""
    out = values.copy()
    half = 1
    while half < len(out):
        pairs = out.reshape(-1, 2, half)
        difference = pairs[:, 0] - pairs[:, 1]
        pairs[:, 0] += pairs[:, 1]
        pairs[:, 1] = difference
        half *= 2
    return out

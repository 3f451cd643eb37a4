"""Hadamard response: one bit per user, and one fast Walsh-Hadamard transform that decodes millions of buckets.

Guarantee (Local; replace one row, or have none; pure, no delta): a user has a public random row J of the Hadamard
matrix of size K (the number of buckets, rounded up to a power of two). She sends its sign at her bucket, H(J, b) =
(-1)^|J & b|, flipped with probability 1 / (e^eps + 1): ``Response`` on two symbols, eps-DP. A user in no bucket sends a
uniform bit. For several levels see ``reports``.

Unbiased: E_J[H(J, v) H(J, b)] = [v = b], so (e^eps + 1) / (e^eps - 1) * sum_i y_i H(J_i, v) has mean n_v. Variance with
n users: n ((e^eps + 1) / (e^eps - 1))^2 - n_v (4.68 n at eps = 1); with T levels sharing users T n (...)^2 - n_v. That
is n more than local hashing has, whatever eps is: the price of one bit and a fast transform. Decoding costs
n + K log K, in exact integers.

Source: Bassily, Nissim, Stemmer, Thakurta 2017 (Hashtogram's inner oracle); Acharya, Sun, Zhang 2019.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from cloister.plugin import AnyArray, Ids, Ints, PublicRng, component, hex_key
from cloister.plugins.oracles.local.counts.channel import LocalCounts, OneResponse, ResponseProbabilities
from cloister.plugins.oracles.local.hadamard_transform import parity, transform
from cloister.plugins.oracles.local.randomised_response import Response

MAX_BUCKETS = 2**24


@component
class HadamardResponse(LocalCounts):
    """Counts from one randomised entry of the Hadamard matrix per user."""

    mechanism, max_buckets = "hadamard-response", MAX_BUCKETS
    instead = "'explicit-histogram', which is looked up bucket by bucket"

    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Signed:
        return Signed(size, seed, Response.within(odds, 2))


@final
@attrs.frozen
class Signed(OneResponse):
    """Randomised sign of a random row of the Hadamard matrix, which supports the buckets where the row has that sign.

    Args:
        size: number of buckets of this level.
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
    def chances(self) -> ResponseProbabilities:
        return ResponseProbabilities((1 + self.response.truth) / 2, 1 / 2)

    def rows(self, users: Ids) -> Ints:
        """Return each user's public row J (n,)."""
        top = self.seed.of_users(users) >> np.uint64(40)
        return (top & np.uint64(2**self.bits - 1)).astype(np.int64)

    def symbols(self, ids: Ints, users: Ids) -> Ints:
        return np.where(ids >= 0, parity((self.rows(users) & ids).astype(np.uint64)).astype(np.int64), -1)

    def bundled(self) -> dict[str, Any]:
        row = {"size": self.size, "bits": self.bits, "row": hex_key(self.seed)}
        return {"randomiser": "signed", **row, **self.response.bundled}

    def tally(self, users: Ids, answers: AnyArray) -> Ints:
        """Add up the sent signs per row of the matrix (K,)."""
        rows, size = self.rows(users), 2**self.bits
        minus = np.bincount(rows[answers[:, 0] == 1], minlength=size)
        return np.asarray(np.bincount(rows, minlength=size) - 2 * minus, np.int64)

    def supports(self, total: Ints, reports: int) -> Ints:
        return np.asarray((reports + transform(total)[: self.size]) >> 1, np.int64)

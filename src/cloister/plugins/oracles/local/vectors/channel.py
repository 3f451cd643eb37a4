"""The server's half of a local vector-sum question: all buckets at once by one transform, or each as it is asked
for."""

from __future__ import annotations

from typing import final

import attrs
import numpy as np

from cloister.core.randomness import NoiseRng
from cloister.core.types import AnyArray, Ids, Ints
from cloister.plugins.oracles.local.channel import Keeping, Tallying
from cloister.plugins.oracles.local.fast import ran
from cloister.plugins.oracles.local.hadamard_transform import parity, transform
from cloister.plugins.oracles.local.reports import Kept, Tallies
from cloister.plugins.oracles.local.vectors.answers import VectorAnswers
from cloister.plugins.oracles.table import LookupTable

LOOKED = 2**8
"""Buckets that are answered in one pass over kept reports."""


@final
@attrs.frozen
class HadamardVectorChannel(Tallying[VectorAnswers]):
    """Estimates are added up per row of a Hadamard matrix, then transformed: cost n d + K log K d for all K buckets.

    Only the lowest log2 K bits of a user's word J meet a bucket id, K being the number of buckets filled up to a power
    of two. So W_J = sum of z_i over the users with that J in these bits, and S_v = sum_J (-1)^|J & v| W_J: exact
    integers, (K, d) a level whatever n is. At most 2^31 users times D^2 <= 2^24 per number stay below 2^63.
    """

    def tally(self, users: Ids, answers: AnyArray, level: int) -> Ints:
        """W (K, d). Users in the order of their J, so that a block of them adds to few rows."""
        rows = filled(self.asked.sizes[level])
        cells = self.asked.words(users, level) & np.uint64(rows - 1)
        order = np.argsort(cells.astype(np.min_scalar_type(rows - 1)), kind="stable")  # linear, if 16 bits are enough
        totals = np.zeros((rows, self.asked.dimension), np.int64)
        for some in self.asked.blocks(order, level):
            estimates, of_some = self.asked.estimates(users[some], answers[some], level), cells[some].astype(np.int64)
            if not ran("add", len(some), estimates, of_some, totals):
                first = np.flatnonzero(np.diff(of_some, prepend=-1))
                totals[of_some[first]] += np.add.reduceat(estimates, first, axis=0)
        return totals.ravel()

    def decode(self, summary: Tallies, rng: NoiseRng) -> LookupTable:
        found = [transform(total.reshape(-1, self.asked.dimension)) for total in summary.totals]
        return self.asked.table(summary.reports, lambda ids, level: found[level][ids] * self.asked.value)


@final
@attrs.frozen
class ExplicitVectorChannel(Keeping[VectorAnswers]):
    """Reports are kept, and looked through for the buckets that are asked for: cost n d per bucket, ids of any size.

    Chang et al. 2021, Algorithms 7 and 8: Z_(v, i) is s_i(v) with all 64 bits of the word J. For ids below 2^63 the
    signs of one user are pairwise independent over buckets, those of two users independent: all that Lemma 28 needs.
    """

    def decode(self, summary: Kept, rng: NoiseRng) -> LookupTable:
        parts = self.parts(summary)
        reports = [len(users) for users, _ in parts]
        return self.asked.table(reports, lambda ids, level: self._total(ids, *parts[level], level) * self.asked.value)

    def _total(self, ids: Ints, users: Ids, answers: AnyArray, level: int) -> Ints:
        """Sums (m, d) of what users say of buckets (m,). Products of a block are below 2^53: exact in any order."""
        out = np.zeros((len(ids), self.asked.dimension), np.int64)
        for some in self.asked.blocks(np.arange(len(users) if len(ids) else 0), level):
            estimates = self.asked.estimates(users[some], answers[some], level).astype(np.float64)
            words = self.asked.words(users[some], level)
            for start in range(0, len(ids), LOOKED):
                asked = ids[start : start + LOOKED].astype(np.uint64)
                signs = 1.0 - 2.0 * parity(asked[:, None] & words)
                out[start : start + LOOKED] += (signs @ estimates).astype(np.int64)
        return out


def filled(size: int) -> int:
    """The next power of two."""
    return 1 << (size - 1).bit_length()

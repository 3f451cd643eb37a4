"""The server's half of a local vector-sum question: all buckets at once by one transform, or each as it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, final

import attrs
import numpy as np

from cloister.core.buckets import Placed
from cloister.core.budget import Event
from cloister.core.randomness import NoiseRng
from cloister.core.types import AnyArray, Floats, Ids, Ints
from cloister.plugins.oracles.local.fast import ran
from cloister.plugins.oracles.local.reports import Kept, Reports, Tallies, turnout
from cloister.plugins.oracles.local.vectors.answers import VectorAnswers
from cloister.plugins.oracles.local.vectors.hadamard_transform import parity, transform

LOOKED = 2**8
"""Buckets that are answered in one pass over kept reports."""


@final
class VectorTable:
    """Sums in the caller's units. ``standard_error`` is that of a bucket whose rows are few among those who reported.

    Args:
        asked: the question.
        reports: how many answered each level.
        total: ids (m,) of a level to exact integers (m, d).
    """

    def __init__(self, asked: VectorAnswers, reports: Sequence[int], total: Callable[[Ints, int], Ints]) -> None:
        self._value, self._total = asked.value, total
        self._error = asked.error * turnout(reports, asked.rows, asked.sharing.factor)

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return np.asarray(self._total(ids, level) * self._value, np.float64)

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), self._error)

    def __reduce__(self) -> NoReturn:
        raise TypeError("tables do not travel: keep what at() gave")


@final
@attrs.frozen
class HadamardVectorChannel:
    """Estimates are added up per row of a Hadamard matrix, then transformed: cost n d + K log K d for all K buckets.

    Only the lowest log2 K bits of a user's word J meet a bucket id, K being the number of buckets filled up to a power of
    two. So W_J = sum of z_i over the users with that J in these bits, and S_v = sum_J (-1)^|J & v| W_J: exact integers,
    (K, d) a level whatever n is. At most 2^31 users times D^2 <= 2^24 per number stay below 2^63.

    Args:
        asked: the users' half.
    """

    asked: VectorAnswers

    @property
    def events(self) -> tuple[Event, ...]:
        return self.asked.events

    def encode(self, items: Placed, users: Ids, rng: NoiseRng) -> Reports:
        return self.asked.encode(items, users, rng)

    def absorb(self, report: Reports) -> Tallies:
        self.asked.checked(report)
        parts = [self.asked.of_level(report, level) for level in range(len(self.asked.sizes))]
        totals = tuple(self._added(*part, level).ravel() for level, part in enumerate(parts))
        return Tallies(totals, tuple(len(users) for users, _ in parts))

    def answered(self, summary: Tallies) -> tuple[int, ...]:
        return self.asked.sharing.divided(summary.reports)

    def _added(self, users: Ids, answers: AnyArray, level: int) -> Ints:
        """W (K, d). Users in the order of their J, so that a block of them adds to few rows."""
        rows = filled(self.asked.sizes[level])
        cells = self.asked.words(users, level) & np.uint64(rows - 1)
        order = np.argsort(cells.astype(np.min_scalar_type(rows - 1)), kind="stable")  # linear, if 16 bits are enough
        totals = np.zeros((rows, self.asked.dimension), np.int64)
        for some in self.asked.blocks(order):
            estimates, of_some = self.asked.estimates(users[some], answers[some], level), cells[some].astype(np.int64)
            if not ran("add", len(some), estimates, of_some, totals):
                low, high = of_some[0], of_some[-1] + 1
                totals[low:high] += _sums(of_some - low, estimates, int(high - low))
        return totals

    def decode(self, summary: Tallies, rng: NoiseRng) -> VectorTable:
        found = [transform(total.reshape(-1, self.asked.dimension)) for total in summary.totals]
        return VectorTable(self.asked, summary.reports, lambda ids, level: found[level][ids])


@final
@attrs.frozen
class ExplicitVectorChannel:
    """Reports are kept, and looked through for the buckets that are asked for: cost n d per bucket, ids of any size.

    Chang et al. 2021, Algorithms 7 and 8: Z_(v, i) is s_i(v) with all 64 bits of the word J. For ids below 2^63 the signs of
    one user are pairwise independent over buckets, those of two users independent: all that Lemma 28 needs.

    Args:
        asked: the users' half.
    """

    asked: VectorAnswers

    @property
    def events(self) -> tuple[Event, ...]:
        return self.asked.events

    def encode(self, items: Placed, users: Ids, rng: NoiseRng) -> Reports:
        return self.asked.encode(items, users, rng)

    def absorb(self, report: Reports) -> Kept:
        return Kept((self.asked.checked(report),))

    def answered(self, summary: Kept) -> tuple[int, ...]:
        return self.asked.sharing.counted(piece.users for piece in summary.pieces)

    def decode(self, summary: Kept, rng: NoiseRng) -> VectorTable:
        def total(ids: Ints, level: int) -> Ints:
            out = np.zeros((len(ids), self.asked.dimension), np.int64)
            for piece in summary.pieces if len(ids) else ():
                self._look(out, ids, *self.asked.of_level(piece, level), level)
            return out

        levels = range(len(self.asked.sizes))
        answering = self.asked.sharing.answering
        reports = [sum(len(answering(piece.users, level)) for piece in summary.pieces) for level in levels]
        return VectorTable(self.asked, reports, total)

    def _look(self, out: Ints, ids: Ints, users: Ids, answers: AnyArray, level: int) -> None:
        """Add what these users say to the sums (m, d). Products of a block are below 2^53: exact in any order."""
        for some in self.asked.blocks(np.arange(len(users))):
            estimates = self.asked.estimates(users[some], answers[some], level).astype(np.float64)
            words = self.asked.words(users[some], level)
            for start in range(0, len(ids), LOOKED):
                asked = ids[start : start + LOOKED].astype(np.uint64)
                signs = 1.0 - 2.0 * parity(asked[:, None] & words)
                out[start : start + LOOKED] += (signs @ estimates).astype(np.int64)


def filled(size: int) -> int:
    """The next power of two."""
    return 1 << (size - 1).bit_length()


def _sums(cells: Ints, values: Ints, size: int) -> Ints:
    """Exact sums (size, d) of the values (n, d) per cell (n,)."""
    from scipy.sparse import csc_matrix

    n = len(cells)
    which: Any = csc_matrix((np.ones(n, np.int64), cells, np.arange(n + 1)), shape=(size, n))
    total: Ints = which @ values
    return total

"""Exact totals of occupied buckets, as lists that merge: ids ascending, each with its count or its sum."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Self, final

import attrs
import numpy as np

from cloister.core.lattice import CAP
from cloister.core.types import Ints

PIECES = 8
"""Number of lists that a summary keeps side by side before merging some: adding many at once is cheaper than in pairs,
and takes more memory (hst-means on a million rows: 56 MB over the data with 4, 62 with 16, 76 with 128)."""

BITS = 31
"""Bits of an id that fits into one number with its count, which is at most ``CAP`` = 2^31."""

NUMBERS = 2**24
"""Limit on the numbers in all of these lists but the longest: 128 MB."""


@final
@attrs.frozen(eq=False)
class LevelTotals:
    """Totals of one level: ids (m,), ascending, with counts (m,) or sums (m, dimension)."""

    ids: Ints = attrs.field(repr=False)
    values: Ints = attrs.field(repr=False)

    def running(self) -> Ints:
        """Return the totals (m + 1, ...) of the first 0, 1, ... m buckets; differences are exact even if they wrap."""
        start = np.zeros((1, *self.values.shape[1:]), np.int64)
        return np.concatenate([start, np.cumsum(self.values, axis=0, dtype=np.int64)])


@final
@attrs.frozen(eq=False)
class SparseTotals:
    """Report: the totals of all levels, one after the other.

    Args:
        starts: (levels + 1,) start of each level in the lists, and the end of the last.
        ids: bucket ids (m,), ascending within a level.
        values: counts (m,) or sums (m, dimension).
    """

    starts: Ints = attrs.field(repr=False)
    ids: Ints = attrs.field(repr=False)
    values: Ints = attrs.field(repr=False)

    @classmethod
    def of(cls, levels: Sequence[LevelTotals]) -> Self:
        starts = np.cumsum([0, *(len(tally.ids) for tally in levels)])
        if len(levels) == 1:
            return cls(starts, levels[0].ids, levels[0].values)
        return cls(starts, np.concatenate([t.ids for t in levels]), np.concatenate([t.values for t in levels]))

    @property
    def levels(self) -> tuple[LevelTotals, ...]:
        return tuple(LevelTotals(self.ids[a:b], self.values[a:b]) for a, b in pairwise(self.starts.tolist()))

    def possible(self, sizes: tuple[int, ...], value_shape: tuple[int, ...]) -> bool:
        """Return True if an encoder may have sent it, for levels of these sizes and values of this shape."""
        starts, ids, values = self.starts, self.ids, self.values
        if not all(isinstance(a, np.ndarray) and a.dtype == np.int64 for a in (starts, ids, values)):
            return False
        if starts.shape != (len(sizes) + 1,) or ids.ndim != 1 or values.shape != (len(ids), *value_shape):
            return False
        if starts[0] != 0 or starts[-1] != len(ids) or (np.diff(starts) < 0).any():
            return False
        if not value_shape and not ((values >= 1) & (values <= CAP)).all():
            return False
        return all(_within(tally.ids, size) for tally, size in zip(self.levels, sizes, strict=True))


@final
@attrs.frozen(eq=False)
class SparsePieces:
    """Merged reports, several lists side by side: only their sum matters."""

    pieces: tuple[SparseTotals, ...] = attrs.field(repr=False)

    def merge(self, other: SparsePieces) -> SparsePieces:
        pieces = self.pieces + other.pieces
        numbers = [piece.values.size for piece in pieces]
        small = len(pieces) <= PIECES and sum(numbers) - max(numbers) <= NUMBERS
        return SparsePieces(pieces if small else _fewer(pieces))

    def total(self) -> SparseTotals:
        """Return their sum, in one list."""
        return self.pieces[0] if len(self.pieces) == 1 else _together(self.pieces)


def count_ids(ids: Ints) -> LevelTotals:
    """Count the ids (n,) equal to each id; ids of -1 are left out."""
    ordered = np.sort(ids)
    ordered = ordered[np.searchsorted(ordered, 0) :]
    first = _firsts(ordered)
    return LevelTotals(ordered[first], np.diff(first, append=len(ordered)))


def sum_by_id(ids: Ints, values: Ints) -> LevelTotals:
    """Return exact totals of the values (n, ...) per id (n,); ids of -1 are left out."""
    order = np.argsort(ids, kind="stable")
    order = order[np.searchsorted(ids[order], 0) :]
    ordered = ids[order]
    first = _firsts(ordered)
    if values.ndim == 1:
        return LevelTotals(ordered[first], np.add.reduceat(values[order], first) if len(first) else values[:0])
    return LevelTotals(ordered[first], _segments(values, order, first))


def _segments(values: Ints, order: Ints, first: Ints) -> Ints:
    """Return exact sums (m, d) of the values (n, d), taken in this order, over segments that start at ``first``."""
    from scipy.sparse import csr_matrix

    ends = np.append(first, len(order))
    which: Any = csr_matrix((np.ones(len(order), np.int64), order, ends), shape=(len(first), len(values)))
    total: Ints = which @ values
    return total


def _firsts(ordered: Ints) -> Ints:
    """Return where each distinct id begins in a sorted list (n,)."""
    begins = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return np.flatnonzero(begins)


def _within(ids: Ints, size: int) -> bool:
    """Return True if these are distinct bucket ids below size, ascending."""
    return not len(ids) or bool(ids[0] >= 0 and ids[-1] < size and (ids[1:] > ids[:-1]).all())


def _together(pieces: Iterable[SparseTotals]) -> SparseTotals:
    """Return the sum of lists, level by level."""
    levels = zip(*(piece.levels for piece in pieces), strict=True)
    return SparseTotals.of([_joined(lists) for lists in levels])


def _joined(lists: Sequence[LevelTotals]) -> LevelTotals:
    """Return the sum of lists of one level."""
    if lists[0].values.ndim > 1 or max((int(t.ids[-1]) for t in lists if len(t.ids)), default=0) >= 2**BITS:
        return sum_by_id(np.concatenate([t.ids for t in lists]), np.concatenate([t.values for t in lists]))
    # small ids and their counts are sorted as one number each, which takes half of the memory
    packed = np.concatenate([t.ids << np.int64(63 - BITS) | t.values for t in lists])
    packed.sort()
    ids = packed >> np.int64(63 - BITS)
    first = _firsts(ids)
    packed &= (1 << (63 - BITS)) - 1
    return LevelTotals(ids[first], np.add.reduceat(packed, first) if len(first) else packed)


def _fewer(pieces: Sequence[SparseTotals]) -> tuple[SparseTotals, ...]:
    """Merge the small lists, and each list at most twice as long as all smaller ones together (log-structured merge).

    The others grow threefold each, so they are few, and a row is added again only when its list grows by half.
    """
    ordered = sorted(pieces, key=lambda piece: len(piece.ids))
    cumulative = np.cumsum([0, *(len(piece.ids) for piece in ordered)])
    joined = 1 + max(i for i, piece in enumerate(ordered) if i == 0 or len(piece.ids) <= 2 * cumulative[i])
    return (_together(ordered[:joined]), *ordered[joined:]) if joined > 1 else tuple(ordered)

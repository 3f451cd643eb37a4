"""Totals of occupied buckets only, noised when looked up: for trees of any depth and up to 2^62 buckets per level.

A report lists the buckets that its rows are in, ascending, with their exact totals. Summaries keep such lists side by
side and merge them now and then, so that absorbing a chunk of rows costs its own length, not that of all occupied
buckets. Of a nested space only the deepest level is listed: a bucket of level l is an interval of deepest ids, and its
total is the difference of two running totals, one at each end.

Guarantee. If every bucket of the space, occupied or not, had its noise from the beginning, the whole table would be the
additive mechanism, whose budget pays for one change per level. The released values are those looked up, and each
lookup depends on public coins and earlier answers alone: post-processing, so that a bucket's noise need only be drawn
at its first lookup. It is drawn in the same way whatever the bucket holds, independently, and remembered: a second
lookup gives the same value. (Releasing a value only above a threshold is a function of the bucket's own total and
noise, and changes none of this.)

A resumed run answers recorded looks from its record. The live table behind it, new in that process, draws noise for all
buckets looked up beyond the record; its draws for recorded buckets among them are discarded unseen
(``core.session.RecordedTable``). As noises of different buckets are independent, all released values of both processes
together have exactly one noise each, as if one process had drawn them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Self, final

import attrs
import numpy as np

from cloister.core.buckets import BucketedVectors, Space
from cloister.core.budget import Budget
from cloister.core.errors import InvalidInput, Refused
from cloister.core.lattice import CAP, Bound
from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats, Ids, Ints
from cloister.noise.channel import AdditiveChannel, TensorChannel, Threshold, UnpicklableTable
from cloister.noise.distributions import Noise

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


DENSE = 2**17
"""Limit on the numbers of a table kept as a tensor. Beyond, adding tensors chunk by chunk and drawing all their noise
costs more than a tensor saves."""

LARGEST = 2**62
"""Limit on the buckets of a level: ids and the borders between them stay below 2^63."""


@final
class LazyTable(UnpicklableTable):
    """Table that draws a bucket's noise when it is first looked up, and remembers it."""

    def __init__(self, channel: SparseChannel, levels: tuple[LevelTotals, ...], rng: NoiseRng) -> None:
        self._channel, self._rng, self._draws = channel, rng, 0
        self._levels = tuple((tally.ids, tally.running()) for tally in levels)
        self._drawn: dict[int, tuple[Ints, Floats]] = {}

    def at(self, ids: Ints, level: int = 0) -> Floats:
        unique_ids, back = np.unique(ids, return_inverse=True)
        drawn_ids, values = self._drawn.get(level) or (unique_ids[:0], np.empty((0, *self._channel.value_shape)))
        fresh = unique_ids[~_contained(unique_ids, drawn_ids)]
        if len(fresh):
            drawn = self._channel.noised(self._exact(fresh, level), self._rng.child("look", self._draws))
            self._draws += 1
            order = np.argsort(np.concatenate([drawn_ids, fresh]), kind="stable")
            drawn_ids, values = np.concatenate([drawn_ids, fresh])[order], np.concatenate([values, drawn])[order]
            self._drawn[level] = drawn_ids, values
        return values[np.searchsorted(drawn_ids, unique_ids)[back]]

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), self._channel.deviation)

    def occupied(self, level: int = 0) -> Ints:
        """Return the buckets (m,) of one level that are released as more than 0, ascending.

        With a threshold, a bucket without rows is released as 0, so that the list follows from the released table.
        Without one, every bucket has noise, and the list of those that hold rows would be an exact figure.

        Raises:
            Refused: there is no threshold, or levels are nested and rows are listed on the deepest alone.
        """
        if self._channel.threshold is None or self._channel.space.nested:
            return super().occupied(level)
        ids, _ = self._levels[level]
        return np.asarray(ids[self.at(ids, level) != 0], np.int64)

    def _exact(self, ids: Ints, level: int) -> Ints:
        """Return totals of buckets (m,) before any noise."""
        space = self._channel.space
        down = min(space.levels - 1 - level, 62) if space.nested else 0
        occupied, running = self._levels[0 if space.nested else level]
        ends = (np.searchsorted(occupied, borders << np.int64(down)) for borders in (ids, ids + 1))
        first, last = ends
        return running[last] - running[first]


@final
@attrs.frozen
class SparseChannel(AdditiveChannel):
    """Both halves of a question on any number of buckets, with noise drawn at the look.

    Of a nested space the encoder reads the deepest ids alone, so that a row changes one total per level whatever other
    ids it is given: the guarantee does not rest on the bucketing's promise.
    """

    def __attrs_post_init__(self) -> None:
        if max(self.space.sizes) > LARGEST:
            raise InvalidInput(
                f"'{self.mechanism}' takes at most 2^62 buckets per level: {max(self.space.sizes)} are too many"
            )
        super().__attrs_post_init__()

    def encode(self, items: Ints | BucketedVectors, users: Ids, rng: NoiseRng) -> SparseTotals:
        buckets = items.buckets if isinstance(items, BucketedVectors) else items
        columns = buckets[:, -len(self.counted) :].T
        if isinstance(items, BucketedVectors):
            return SparseTotals.of([sum_by_id(ids, items.values) for ids in columns])
        return SparseTotals.of([count_ids(ids) for ids in columns])

    def absorb(self, report: SparseTotals) -> SparsePieces:
        if not report.possible(self.counted, self.value_shape):
            raise Refused(f"a report of '{self.mechanism}' lists ids or totals that no encoder sends")
        return SparsePieces((report,))

    def totalled(self, levels: Sequence[tuple[Ints, Ints]], rows: int) -> SparsePieces:
        return self.absorb(SparseTotals.of([LevelTotals(ids, values) for ids, values in levels]))

    def decode(self, summary: SparsePieces, rng: NoiseRng) -> LazyTable:
        return LazyTable(self, summary.total().levels, rng)


def additive_channel(
    mechanism: str,
    budget: Budget,
    space: Space,
    bound: Bound | None,
    law: Noise | None,
    shift: int,
    unit: float,
    threshold: Threshold | None = None,
) -> TensorChannel | SparseChannel:
    """Return the channel of an additive mechanism: a tensor if that is small, otherwise sparse."""
    numbers = sum(space.sizes) * (bound.dimension if bound else 1)
    kind = TensorChannel if numbers <= DENSE else SparseChannel
    return kind(mechanism, budget, space, bound, law, shift, unit, threshold)


def _contained(ids: Ints, sorted_ids: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return a mask (m,) of the ids that are in a sorted list."""
    if not len(sorted_ids):
        return np.zeros(len(ids), bool)
    return np.asarray(sorted_ids[np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)] == ids)

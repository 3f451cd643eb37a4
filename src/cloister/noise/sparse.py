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

from collections.abc import Sequence
from typing import final

import attrs
import numpy as np

from cloister.core.buckets import BucketedVectors, Space
from cloister.core.budget import Budget
from cloister.core.errors import InvalidInput, Refused
from cloister.core.lattice import Bound
from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats, Ids, Ints
from cloister.noise.channel import AdditiveChannel, TensorChannel, Threshold, UnpicklableTable
from cloister.noise.distributions import Noise
from cloister.noise.sparse_totals import LevelTotals, SparsePieces, SparseTotals, count_ids, sum_by_id

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

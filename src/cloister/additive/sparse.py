"""Totals of occupied buckets only, noised when looked up: for trees of any depth and up to 2^62 buckets per level.

A report lists the buckets that its rows are in, ascending, with their exact totals. Summaries keep such lists side by
side and add them up now and then, so that absorbing a chunk of rows costs its own length, not that of all occupied
buckets. Of a nested space only the deepest level is listed: a bucket of level l is an interval of deepest ids, and its
total is the difference of two running totals, one at each end.

Guarantee. Had every bucket of the space, occupied or not, its noise from the beginning, the whole table would be the
additive mechanism, whose budget pays for one change per level. What is released of it is what was asked for, and what
is asked next depends on nothing but public coins and answers: post-processing, so that noise need only be drawn for a
bucket when it is first asked for. It is drawn in the same way whatever the bucket holds, independently, and remembered:
asked again, the bucket answers the same. (Releasing a value only above a threshold is a function of the bucket's own
total and noise, and changes none of this.)

A run that resumes answers recorded looks from its record. The live table behind it, new in that process, draws noise
for all buckets asked for beyond the record; its draws for recorded buckets among them are discarded unseen
(``core.session.RecordedTable``). As noises of different buckets are independent, all released values of both processes
together have exactly one noise each, as if one process had drawn them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn, final

import attrs
import numpy as np

from cloister.additive.channel import AdditiveChannel, Threshold
from cloister.additive.dense import TensorChannel
from cloister.additive.noise import Noise
from cloister.additive.sparse_totals import LevelTotals, SparsePieces, SparseTotals, added, counted
from cloister.core.buckets import BucketedVectors, Space
from cloister.core.budget import Budget
from cloister.core.errors import InvalidInput, Refused
from cloister.core.lattice import Bound
from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats, Ids, Ints

DENSE = 2**17
"""Most numbers in a table kept as a tensor. Beyond, adding tensors chunk by chunk and drawing all their noise would
cost more than a tensor saves."""

LARGEST = 2**62
"""Most buckets on a level: ids and the borders between them stay below 2^63."""


@final
class LazyTable:
    """A table that draws a bucket's noise when it is first looked up, and remembers it."""

    def __init__(self, channel: SparseChannel, levels: tuple[LevelTotals, ...], rng: NoiseRng) -> None:
        self._channel, self._rng, self._draws = channel, rng, 0
        self._levels = tuple((tally.ids, tally.running()) for tally in levels)
        self._known: dict[int, tuple[Ints, Floats]] = {}

    def at(self, ids: Ints, level: int = 0) -> Floats:
        asked, back = np.unique(ids, return_inverse=True)
        known, values = self._known.get(level) or (asked[:0], np.empty((0, *self._channel.one)))
        fresh = asked[~_are_in(asked, known)]
        if len(fresh):
            drawn = self._channel.noised(self._exact(fresh, level), self._rng.child("look", self._draws))
            self._draws += 1
            order = np.argsort(np.concatenate([known, fresh]), kind="stable")
            known, values = np.concatenate([known, fresh])[order], np.concatenate([values, drawn])[order]
            self._known[level] = known, values
        return values[np.searchsorted(known, asked)[back]]

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), self._channel.deviation)

    def _exact(self, ids: Ints, level: int) -> Ints:
        """Totals of buckets (m,) before any noise."""
        space = self._channel.space
        down = min(space.levels - 1 - level, 62) if space.nested else 0
        occupied, running = self._levels[0 if space.nested else level]
        ends = (np.searchsorted(occupied, borders << np.int64(down)) for borders in (ids, ids + 1))
        first, last = ends
        return running[last] - running[first]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a table is never pickled: keep the values that at() returned")


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
            return SparseTotals.of([added(ids, items.values) for ids in columns])
        return SparseTotals.of([counted(ids) for ids in columns])

    def absorb(self, report: SparseTotals) -> SparsePieces:
        if not report.possible(self.counted, self.one):
            raise Refused(f"a report of '{self.mechanism}' lists ids or totals that no encoder sends")
        return SparsePieces((report,))

    def totalled(self, levels: Sequence[tuple[Ints, Ints]], rows: int) -> SparsePieces:
        return self.absorb(SparseTotals.of([LevelTotals(ids, values) for ids, values in levels]))

    def decode(self, summary: SparsePieces, rng: NoiseRng) -> LazyTable:
        return LazyTable(self, summary.total().levels, rng)


def additive_channel(
    mechanism: str, budget: Budget, space: Space, bound: Bound | None, law: Noise | None, shift: int, unit: float,
    threshold: Threshold | None = None,
) -> TensorChannel | SparseChannel:  # fmt: skip
    """The channel of an additive mechanism: a tensor if that is small, otherwise sparse."""
    numbers = sum(space.sizes) * (bound.dimension if bound else 1)
    kind = TensorChannel if numbers <= DENSE else SparseChannel
    return kind(mechanism, budget, space, bound, law, shift, unit, threshold)


def _are_in(ids: Ints, known: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which of the ids (m,) are among the known ones, ascending."""
    if not len(known):
        return np.zeros(len(ids), bool)
    return np.asarray(known[np.minimum(np.searchsorted(known, ids), len(known) - 1)] == ids)

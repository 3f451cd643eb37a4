"""Totals as integer tensors: a number per bucket, for spaces small enough to list.

Reports are exact int64 totals, one level after the other; of a nested space only the deepest level, whose neighbours
add up to the other levels after the merge. The noise is drawn for the whole table at once, on every level.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NoReturn, final

import attrs
import numpy as np

from cloister.core.buckets import BucketedVectors, Space
from cloister.core.errors import InvalidInput, Refused
from cloister.core.randomness import NoiseRng
from cloister.core.types import AnyArray, Floats, Ids, Ints
from cloister.noise.channel import AdditiveChannel

MAX_NUMBERS = 2**26
"""Most numbers in one table: larger spaces need a channel that draws noise lazily (``sparse``)."""


@final
@attrs.frozen(eq=False)
class Totals:
    """Merged reports: exact int64 totals, flat."""

    vector: Ints = attrs.field(repr=False)

    def merge(self, other: Totals) -> Totals:
        return Totals(self.vector + other.vector)


@final
class Noised:
    """A table of values that all contain their noise already."""

    def __init__(self, values: Floats, space: Space, deviation: float) -> None:
        self._values, self._deviation = values, deviation
        self._starts = np.concatenate([[0], np.cumsum(space.sizes)])

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return np.asarray(self._values[self._starts[level] + ids], np.float64)

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), self._deviation)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a table is never pickled: keep the values that at() returned")


@final
@attrs.frozen
class TensorChannel(AdditiveChannel):
    """Both halves of a question on enumerable buckets, with noise drawn once, after the merge.

    Of a nested space the encoder reads the deepest ids alone, so that a row changes one total per level whatever other
    ids it is given: the guarantee does not rest on the bucketing's promise.
    """

    def __attrs_post_init__(self) -> None:
        numbers = sum(self.space.sizes) * self.width
        if numbers > MAX_NUMBERS:
            raise InvalidInput(
                f"'{self.mechanism}' keeps a number per bucket: {sum(self.space.sizes)} buckets of {self.width} "
                f"numbers are more than {MAX_NUMBERS}"
            )
        super().__attrs_post_init__()

    def encode(self, items: Ints | BucketedVectors, users: Ids, rng: NoiseRng) -> Totals:
        buckets = items.buckets if isinstance(items, BucketedVectors) else items
        columns, levels = buckets[:, -len(self.counted) :], list[Ints]()
        for ids, size in zip(columns.T, self.counted, strict=True):
            if isinstance(items, BucketedVectors):
                levels.append(totals_of(ids, items.values, size).ravel())
            else:
                levels.append(_counted(ids, size))
        return Totals(np.concatenate(levels) if len(levels) > 1 else levels[0])

    def absorb(self, report: Totals) -> Totals:
        self.refuse_other(report.vector, np.int64, sum(self.counted) * self.width)
        return report

    def totalled(self, levels: Sequence[tuple[Ints, Ints]], rows: int) -> Totals:
        found = list[Ints]()
        for (ids, values), size in zip(levels, self.counted, strict=True):
            if len(ids) and not (ids.min() >= 0 and ids.max() < size):
                raise Refused(f"totals for '{self.mechanism}' are of buckets that there are not")
            level = np.zeros((size, *self.one), np.int64)
            level[ids] = values
            found.append(level.ravel())
        return self.absorb(Totals(np.concatenate(found)))

    def refuse_other(self, vector: AnyArray, kind: type[np.generic], size: int) -> None:
        """Raises: Refused unless a report has this many numbers of this kind."""
        if vector.dtype != kind or vector.shape != (size,):
            raise Refused(
                f"a report of '{self.mechanism}' has shape {vector.shape} and type {vector.dtype}, not {(size,)} and "
                f"{np.dtype(kind)}: no encoder sends that"
            )

    def decode(self, summary: Totals, rng: NoiseRng) -> Noised:
        return Noised(self.noised(self.every(summary), rng), self.space, self.deviation)

    def every(self, totals: Totals) -> Ints:
        """Totals of all levels, one per released number: (buckets,) or (buckets, dimension)."""
        found = totals.vector.reshape(-1, *self.one)
        return _expanded(found, self.space.levels) if self.space.nested else found

    def scaled(self, totals: Totals) -> Ints:
        """Totals of all levels, flat, shifted to the integers that noise is drawn in."""
        return self.every(totals).ravel() << np.int64(self.shift)

    def table(self, noised: Ints) -> Noised:
        """A table of noised integers, given flat, in the caller's units."""
        return Noised(self.in_units(noised).reshape(-1, *self.one), self.space, self.deviation)


def _counted(ids: Ints, size: int) -> Ints:
    """How many of the ids (n,) equal each of 0 .. size - 1; ids of -1 are left out."""
    if len(ids) and ids.min() >= 0:
        return np.bincount(ids, minlength=size).astype(np.int64, copy=False)
    return np.bincount(ids + 1, minlength=size + 1)[1:].astype(np.int64, copy=False)


def totals_of(ids: Ints, values: Ints, size: int) -> Ints:
    """Exact sums (size, d) of the values (n, d) per id; ids of -1 are left out."""
    from scipy.sparse import csc_matrix

    if size == 1 and not ids.any():  # all in the one bucket
        return np.asarray(values.sum(axis=0, keepdims=True), np.int64)
    ones, starts = _each(len(ids))
    which: Any = csc_matrix((ones, (ids + 1).astype(np.int32), starts), shape=(size + 1, len(ids)))
    total: Ints = which @ values
    return total[1:]


@lru_cache(maxsize=4)
def _each(n: int) -> tuple[Ints, AnyArray]:
    """One in each of n columns: numbers, and where columns start. 32-bit positions are taken as they are; others are
    looked through first."""
    return np.ones(n, np.int64), np.arange(n + 1, dtype=np.int32)


def _expanded(deepest: Ints, levels: int) -> Ints:
    """All levels of a nested table, coarse ones first, from totals (size, ...) of the deepest: parents are pairs."""
    found = [deepest]
    while len(found) < levels:
        last = found[-1]
        if len(last) % 2:
            last = np.concatenate([last, np.zeros_like(last[:1])])
        found.append(last[0::2] + last[1::2])
    return np.concatenate(found[::-1])

"""Channels of exact totals per bucket under additive integer noise: the common base, and the dense one.

Totals are multiplied by a public power of two (``shift``) before the noise and divided by it after, so that Gaussian
noise is wide enough in integers for the discrete law to stand in for the real one (see
``cloister.accounting.composition``).

In the dense channel, totals are integer tensors: a number per bucket. Reports are exact int64 totals, one level after
the other; of a nested space only the deepest level, whose neighbours add up to the other levels after the merge. The
noise is drawn for the whole table at once, on every level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NoReturn, final

import attrs
import numpy as np

from cloister.core.buckets import BucketedVectors, Space
from cloister.core.budget import Budget, Event
from cloister.core.errors import InvalidInput, Refused
from cloister.core.lattice import CAP, Bound
from cloister.core.randomness import NoiseRng
from cloister.core.types import AnyArray, Floats, Ids, Ints
from cloister.noise.distributions import Noise, Sensitivity


@final
@attrs.frozen
class Threshold:
    """Bound ``above``, in rows, that an occupied bucket's noised count must exceed; it costs ``delta``."""

    above: int
    delta: float


@attrs.frozen
class AdditiveChannel:
    """Opened question answered by totals under noise.

    Args:
        mechanism, budget: declared to the accountant.
        space: the buckets.
        bound: norm bound of the vectors; None for counts.
        law: law of the noise, in shifted integers; None for no noise (not private).
        shift: bits that totals are scaled up by before the noise.
        unit: value of one lattice step in the caller's units (1 for counts).
        threshold: empty buckets, and values that do not exceed it, are released as 0; None for no threshold.

    Raises:
        InvalidInput: totals of ``CAP`` rows under their noise might not fit into 64 bits.
    """

    mechanism: str
    budget: Budget
    space: Space
    bound: Bound | None
    law: Noise | None
    shift: int
    unit: float
    threshold: Threshold | None = None

    def __attrs_post_init__(self) -> None:
        largest = CAP * (self.bound.l2 if self.bound else 1) * 2**self.shift
        tail = 0.0 if self.law is None else 64 * self.law.deviation
        if largest + tail >= 2.0**62:
            raise InvalidInput(
                f"'{self.mechanism}' could overflow 64 bits with {CAP} rows: give this question a larger budget or a "
                "smaller bound"
            )

    @property
    def width(self) -> int:
        """Numbers per bucket."""
        return self.bound.dimension if self.bound else 1

    @property
    def value_shape(self) -> tuple[int, ...]:
        """Shape of one bucket's value: a count, or a vector."""
        return (self.bound.dimension,) if self.bound else ()

    @property
    def counted(self) -> tuple[int, ...]:
        """Sizes of the levels that rows are counted on: if nested, only the deepest, which determines the others."""
        return self.space.sizes[-1:] if self.space.nested else self.space.sizes

    @property
    def events(self) -> tuple[Event, ...]:
        touched, sigma = Sensitivity.of(self.space, self.bound).l0, math.inf if self.law is None else self.law.gaussian
        delta = 0.0 if self.threshold is None else self.threshold.delta
        pure = self.law is not None and self.law.pure and self.budget.measure == "zcdp"
        spent = self.budget.epsilon if pure else math.inf
        return (Event(self.mechanism, self.budget, touched, sigma, delta, pure=spent),)

    @property
    def deviation(self) -> float:
        """Standard deviation of each released number, in its own unit."""
        return 0.0 if self.law is None else self.law.deviation * self.unit * 2.0**-self.shift

    def noised(self, totals: Ints, rng: NoiseRng) -> Floats:
        """Return exact totals, of any shape, each number with noise of its own, in the caller's units."""
        shifted = totals << np.int64(self.shift)
        if self.law is not None:
            shifted = shifted + self.law.draw(totals.size, rng).reshape(totals.shape)
        if self.threshold is not None:
            shifted = np.where((totals > 0) & (shifted > self.threshold.above << self.shift), shifted, 0)
        return self.in_units(shifted)

    def in_units(self, noised: Ints) -> Floats:
        """Return noised integers, post-processed, in the caller's units."""
        released = noised if self.law is None else self.law.post_processed(noised)
        values: Floats = released.astype(np.float64) * (self.unit * 2.0**-self.shift)
        return values


MAX_NUMBERS = 2**26
"""Limit on the numbers in one table: larger spaces need a channel that draws noise lazily (``sparse``)."""


@final
@attrs.frozen(eq=False)
class Totals:
    """Report or merged reports: exact int64 totals, flat."""

    vector: Ints = attrs.field(repr=False)

    def merge(self, other: Totals) -> Totals:
        return Totals(self.vector + other.vector)


class UnpicklableTable:
    """Table that stays in its process: it cannot be pickled."""

    def __reduce__(self) -> NoReturn:
        raise TypeError("tables cannot be pickled: keep the values that at() returned")

    def occupied(self, level: int = 0) -> Ints:
        """Return the buckets (m,) of one level that are released as more than 0, ascending.

        Raises:
            Refused: the list would reveal more than the released values, or is not kept.
        """
        raise Refused("occupied buckets can be listed only for counts with a threshold, on flat levels of many buckets")


@final
class LookupTable(UnpicklableTable):
    """Answers that are looked up without a draw, with equal noise deviation in all buckets of a level.

    Args:
        look: takes ids (m,) and a level; returns values (m,) or (m, dimension) in the caller's units.
        errors: standard deviation of the noise in a value, by level.
    """

    def __init__(self, look: Callable[[Ints, int], AnyArray], errors: Sequence[float]) -> None:
        self._look, self._errors = look, errors

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return np.asarray(self._look(ids, level), np.float64)

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), self._errors[level])


def lookup_table(values: Floats, space: Space, deviation: float) -> LookupTable:
    """Return a table of values of all levels' buckets, one level after the other, with one deviation."""
    starts = np.cumsum([0, *space.sizes])
    return LookupTable(lambda ids, level: values[starts[level] + ids], (deviation,) * space.levels)


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
        vectors = list[Ints]()
        for (ids, values), size in zip(levels, self.counted, strict=True):
            if len(ids) and not (ids.min() >= 0 and ids.max() < size):
                raise Refused(f"totals for '{self.mechanism}' name buckets that do not exist")
            level = np.zeros((size, *self.value_shape), np.int64)
            level[ids] = values
            vectors.append(level.ravel())
        return self.absorb(Totals(np.concatenate(vectors)))

    def refuse_other(self, vector: AnyArray, kind: type[np.generic], size: int) -> None:
        """Refuse a report, by Refused, unless it has this many numbers of this kind."""
        if vector.dtype != kind or vector.shape != (size,):
            raise Refused(
                f"a report of '{self.mechanism}' has shape {vector.shape} and type {vector.dtype}, not {(size,)} and "
                f"{np.dtype(kind)}: no encoder sends that"
            )

    def decode(self, summary: Totals, rng: NoiseRng) -> LookupTable:
        return lookup_table(self.noised(self.all_levels(summary), rng), self.space, self.deviation)

    def all_levels(self, totals: Totals) -> Ints:
        """Return the totals of all levels, one per released number: (buckets,) or (buckets, dimension)."""
        sums = totals.vector.reshape(-1, *self.value_shape)
        return _expanded(sums, self.space.levels) if self.space.nested else sums

    def scaled(self, totals: Totals) -> Ints:
        """Return the totals of all levels, flat, shifted to the integers that noise is drawn in."""
        return self.all_levels(totals).ravel() << np.int64(self.shift)

    def table(self, noised: Ints) -> LookupTable:
        """Return a table of flat noised integers, in the caller's units."""
        return lookup_table(self.in_units(noised).reshape(-1, *self.value_shape), self.space, self.deviation)


def _counted(ids: Ints, size: int) -> Ints:
    """Count the ids (n,) equal to each of 0 .. size - 1; ids of -1 are left out."""
    if len(ids) and ids.min() >= 0:
        return np.bincount(ids, minlength=size).astype(np.int64, copy=False)
    return np.bincount(ids + 1, minlength=size + 1)[1:].astype(np.int64, copy=False)


def totals_of(ids: Ints, values: Ints, size: int) -> Ints:
    """Return exact sums (size, d) of the values (n, d) per id; ids of -1 are left out."""
    from scipy.sparse import csc_matrix

    if size == 1 and not ids.any():  # all in the one bucket
        return np.asarray(values.sum(axis=0, keepdims=True), np.int64)
    ones, starts = _one_per_column(len(ids))
    which: Any = csc_matrix((ones, (ids + 1).astype(np.int32), starts), shape=(size + 1, len(ids)))
    total: Ints = which @ values
    return total[1:]


@lru_cache(maxsize=4)
def _one_per_column(n: int) -> tuple[Ints, AnyArray]:
    """Return the entries and the column starts of a sparse matrix with a 1 in each of n columns."""
    return np.ones(n, np.int64), np.arange(n + 1, dtype=np.int32)  # SciPy scans positions unless they have 32 bits


def _expanded(deepest: Ints, levels: int) -> Ints:
    """Return all levels of a nested table, coarse ones first, from totals (size, ...) of the deepest."""
    tables = [deepest]
    while len(tables) < levels:
        last = tables[-1]
        if len(last) % 2:
            last = np.concatenate([last, np.zeros_like(last[:1])])
        tables.append(last[0::2] + last[1::2])
    return np.concatenate(tables[::-1])

"""Frames: lattices for rows that are first shifted, scaled or reduced by public or released figures.

A frame is a function of each row alone, and elementwise: the same in any batch and on every machine (laws 5 and 9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, final

import attrs
import numpy as np

from cloister.core.buckets import BundleArrays, describe_part
from cloister.core.domains import Box, Domain, Lattice
from cloister.core.types import AnyArray, Floats, Ints

OCTAVES = 64
"""Octaves on either side of 1 in a column of unknown range: magnitudes from 2^-64 to 2^64, 5e-20 to 2e19."""

STEPS = 256
"""Grades of an octave: equal steps, the first eight bits of a float's mantissa."""

GRADES = 2 * OCTAVES * STEPS
"""Number of grades of positive numbers; negative ones have as many."""

GROUP = 0.04
"""Fraction of the rows; no group that is larger has its middle outside a frame that is looked for. The smallest share
of the budget that can promise this is taken; if none can, the largest, and what it can promise is stated."""

UNKNOWN = (-(2.0**OCTAVES), 2.0**OCTAVES)
"""Bounds that stand for an unknown range."""


def unknown_columns(domain: Domain) -> tuple[int, ...]:
    """Return the columns of a domain whose range is unknown."""
    if not isinstance(domain, Box):
        return ()
    return tuple(j for j, ends in enumerate(zip(domain.lower, domain.upper, strict=True)) if ends == UNKNOWN)


def cube(dimension: int) -> Box:
    """Return the domain that every frame leads to, whatever was released: [-1, 1] in each column."""
    return Box((-1.0,) * dimension, (1.0,) * dimension)


@final
@attrs.frozen
class Reframed:
    """Lattice of the cube for rows (row - ``offset``) / ``scale``, column by column.

    Args:
        offset, scale: d numbers each, finite, in the caller's units; scales are positive.
    """

    offset: tuple[float, ...]
    scale: tuple[float, ...]

    @classmethod
    def of(cls, intervals: Floats, units: Floats) -> Reframed:
        """Return the frame around the middles of intervals (d, 2), with these units (d,)."""
        middles = intervals[:, 0] / 2 + intervals[:, 1] / 2
        return cls(tuple(middles.tolist()), tuple(units.tolist()))

    @property
    def dimension(self) -> int:
        return len(self.offset)

    def snap(self, rows: AnyArray) -> Ints:
        domain = cube(self.dimension)
        with np.errstate(over="ignore"):  # the cube clips infinities
            inside = np.asarray(rows, np.float64) - np.array(self.offset)
            inside /= np.array(self.scale)
            inside *= 1 / domain.unit  # a power of two: nothing is rounded
        # the cube's middle is 0, and rounding keeps the order of points: it is enough to clip them once, at the end
        return domain.rounded(inside)

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        inner = cube(self.dimension).bundled(arrays)
        return {"kind": "reframed", "offset": self.offset, "scale": self.scale, "then": inner}

    def real(self, points: Floats) -> Floats:
        """Return points (..., d) of the cube in the caller's units."""
        values: Floats = np.array(self.offset) + points * np.array(self.scale)
        return values


@final
@attrs.frozen
class DropColumns:
    """Lattice of the rows' first columns, which drops the others.

    Args:
        first: lattice of the first columns.
        others: number of dropped columns.
    """

    digest_tag: ClassVar = "cloister.Without"

    first: Lattice
    others: int

    @property
    def dimension(self) -> int:
        return self.first.dimension + self.others

    def snap(self, rows: AnyArray) -> Ints:
        return self.first.snap(rows[:, : self.first.dimension])

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {"kind": "without", "beside": self.others, "first": describe_part(self.first, arrays)}


@final
@attrs.frozen
class KeepIntegers:
    """Lattice of the rows' first columns, beside whole numbers that are kept as they are.

    Args:
        first: lattice of the first columns.
        others: number of columns with whole numbers, which follow.
        most: largest whole number, below 2^31: they are clipped to 0 .. ``most``.
    """

    digest_tag: ClassVar = "cloister.WithWholes"

    first: Lattice
    others: int
    most: int

    @property
    def dimension(self) -> int:
        return self.first.dimension + self.others

    def snap(self, rows: AnyArray) -> Ints:
        d = self.first.dimension
        integers = np.clip(np.rint(rows[:, d:]), 0, self.most).astype(np.int64)
        return np.hstack([self.first.snap(rows[:, :d]), integers])


@final
@attrs.frozen
class SignLogScale:
    """Lattice whose coordinate in some columns is a number's grade: its sign, octave and step of the octave.

    Args:
        others: lattice of the other columns.
        columns: the graded columns.
    """

    digest_tag: ClassVar = "cloister.Graded"

    others: Lattice
    columns: tuple[int, ...]

    @property
    def dimension(self) -> int:
        return self.others.dimension

    def snap(self, rows: AnyArray) -> Ints:
        points, columns = self.others.snap(rows), list(self.columns)
        points[:, columns] = grades(np.asarray(rows[:, columns], np.float64))
        return points

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {"kind": "graded", "columns": self.columns, "others": describe_part(self.others, arrays)}


def grades(values: Floats) -> Ints:
    """Return integers from -GRADES to GRADES - 1 in the order of the values; -0.0 counts as 0."""
    bits = np.ascontiguousarray(np.abs(values)).view(np.int64) >> 44
    size = np.clip(bits - ((1023 - OCTAVES) * STEPS), 0, GRADES - 1)
    return np.asarray(np.where(values < 0, -1 - size, size), np.int64)


def grade_starts(grade: Sequence[int] | Ints) -> Floats:
    """Return the least value of each grade (m,); for GRADES, the upper end of all."""
    ordinals = np.asarray(grade, np.int64)
    bits = (np.abs(ordinals) + (1023 - OCTAVES) * STEPS) << 44
    return np.asarray(np.where(ordinals == 0, 0.0, np.sign(ordinals) * bits.view(np.float64)), np.float64)

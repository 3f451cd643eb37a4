"""Labels of most rows by matrix products, and which ones those are: ``labelling`` leaves the others to its formula.

A library of matrix products adds in an order of its own, on every machine another. So nothing is taken from one but
what its error cannot change. With lines s_j(x) = <x, a_j> + o_j, the formula's middle m put into o_j, and

    B = sum_d (|x_d| + |m_d|) max_j |a_jd| + max_j o_j,

u the rounding of the numbers that are multiplied:

* rounding x, a and o, d products and d sums in any order are off by at most (d + 4) u B (1 + 2^-10), m in o_j by
  (d + 2) 2^-53 B, and the formula's own s_j by (d + 3) 2^-53 B: (4 d + 16) u B is more than all of it;
* the index j takes the place of the last bits of s_j, so that one minimum gives both: 2 u B times 2^bits at most;
* numbers too small for their type, and cells that the formula takes for 0, are off by ``tiny`` in all.

Where no other s_j is within twice the sum of these, the formula's least is the same one. A bound that is too small
would give labels that differ between machines; one that is too large costs time only.
"""

from __future__ import annotations

from typing import Any, Self, final

import attrs
import numpy as np

from cloister.core.types import AnyArray, Floats, Ints

CELLS = 2**17
"""Products that are held at once: they stay in a core's second-level cache."""

FARTHEST = 2.0**6
"""Limit: where the middle is this many times as far away as centres are from it, single precision sees too little."""


@final
@attrs.frozen(eq=False)
class Lines:
    """Factors of rows (n, d). Args: slopes (k, d), offsets (k,), steepest (d,), largest |slope| by column;
    most and moved, the parts of B that no row changes: offsets, and the middle's."""

    slopes: Floats
    offsets: Floats
    steepest: Floats
    most: float
    moved: float

    @classmethod
    def of(cls, middle: Floats, slopes: Floats, offsets: Floats) -> Self:
        """From the formula's numbers."""
        steepest = np.abs(slopes).max(axis=0)
        moved = float((np.abs(middle) * steepest).sum())
        return cls(slopes, offsets - (middle * slopes).sum(axis=1), steepest, float(offsets.max()), moved)


@final
@attrs.frozen(eq=False)
class Precision:
    """A type of numbers. Args: real, integer (NumPy's), u (rounding), limit (cells of smaller size are multiplied)."""

    real: Any
    integer: Any
    u: float
    limit: float

    def suits(self, lines: Lines) -> bool:
        """Whether products of this type are worth their time, and neither overflow nor vanish."""
        if self.real is np.float64:
            return True
        size = max(lines.most, lines.moved, float(lines.steepest.max()))
        indices = 4.0 * len(lines.offsets) * self.u
        return (
            1 / self.limit < lines.most <= size < self.limit
            and lines.moved < FARTHEST * lines.most
            and indices < 2.0**-12
        )

    def tiny(self, lines: Lines) -> float:
        """Most that numbers which vanish add to an error."""
        if self.real is np.float64:
            return 2.0**-499 * float(lines.steepest.sum())
        return 2.0**-100 * (len(lines.steepest) + 1)


SINGLE, DOUBLE = Precision(np.float32, np.int32, 2.0**-24, 2.0**40), Precision(np.float64, np.int64, 2.0**-53, 2.0**499)


@final
@attrs.frozen(eq=False)
class Screen:
    """Lines in one type of numbers. Args: kind, lines (k, d + 1), slopes and offset, steepest (d,), apart (the largest
    sum of errors over B, twice), least_apart (what is added to it), enough (so much of it costs few rows)."""

    kind: Precision
    lines: AnyArray
    steepest: AnyArray
    apart: float
    least_apart: float
    enough: float

    @classmethod
    def of(cls, lines: Lines, kind: Precision) -> Self:
        k, d = lines.slopes.shape
        error = (4 * d + 16) * kind.u + 4 * kind.u * 2 ** (k - 1).bit_length()
        return cls(
            kind,
            np.column_stack([lines.slopes, lines.offsets]).astype(kind.real),
            lines.steepest.astype(kind.real),
            2 * error,
            2 * (error * (lines.most + lines.moved) + kind.tiny(lines)),
            lines.most * 2.0**-10,
        )

    def least(self, rows: AnyArray) -> tuple[Ints, Ints]:
        """Which line is the least at each row (n, d), and where (m,) that is not sure."""
        k, unclear = len(self.lines), [np.empty(0, np.int64)]
        step = max(1, min(len(rows), max(16, CELLS // (k + self.lines.shape[1]))))
        work, found = _Work.of(self, step), np.empty(len(rows), np.int64)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(rows), step):
                some = rows[start : start + step]
                memory = work if len(some) == step else work.first(len(some))
                left = self._least(some, memory, found[start : start + step])
                unclear.append(left + start)
        return found, np.concatenate(unclear)

    def _least(self, rows: AnyArray, work: _Work, out: Ints) -> Ints:
        table, large = work.table, None
        x = work.columns[:-1]
        np.copyto(x, rows.T, casting="unsafe")
        largest = max(float(x.max()), -float(x.min()))
        if not largest < self.kind.limit:
            large = ~(np.abs(x) < self.kind.limit).all(axis=0)  # or NaN
            x[:, large] = 0
            largest = self.kind.limit
        product(self.lines, work.columns, table)
        low = (1 << (len(table) - 1).bit_length()) - 1
        bits = table.view(self.kind.integer)
        bits &= ~low
        bits |= work.indices
        least = table.min(axis=0)
        np.bitwise_and(least.view(self.kind.integer), low, out=out)
        np.less_equal(table, least + self._apart(x, largest), out=work.near)
        if large is None and np.count_nonzero(work.near) == len(rows):
            return np.empty(0, np.int64)
        work.near[out, np.arange(len(rows))] = False
        others = work.near.any(axis=0)
        return np.flatnonzero(others if large is None else others | large)

    def _apart(self, x: AnyArray, largest: float) -> Any:
        """Twice the errors of rows x (d, n) with cells of at most this size: one number, where that is small enough."""
        bound = self.apart * largest * float(self.steepest.sum(dtype=np.float64))
        if bound <= self.enough:
            return self.kind.real(bound + self.least_apart)
        bounds = self.steepest @ np.abs(x)
        bounds *= self.apart
        bounds += self.least_apart
        return bounds


@final
@attrs.frozen(eq=False)
class _Work:
    """Memory for the rows of one block: columns (d + 1, n), the last of ones, table, near and indices (k, n).

    NumPy puts whole tables together several times faster than a column and each column of a table.
    """

    columns: AnyArray
    table: AnyArray
    near: AnyArray
    indices: AnyArray

    @classmethod
    def of(cls, screen: Screen, n: int) -> Self:
        (k, wide), real, integer = screen.lines.shape, screen.kind.real, screen.kind.integer
        return cls(
            np.ones((wide, n), real),
            np.empty((k, n), real),
            np.empty((k, n), bool),
            np.repeat(np.arange(k, dtype=integer)[:, None], n, axis=1),
        )

    def first(self, n: int) -> Self:
        """For fewer rows."""
        return type(self)(*(table[:, :n] for table in (self.columns, self.table, self.near, self.indices)))


def product(lines: AnyArray, columns: AnyArray, out: AnyArray) -> None:
    """Lines (k, d + 1) at rows, given by columns (d + 1, n) of which the last is of ones, into a table (k, n)."""
    np.matmul(lines, columns, out=out)

"""Labels: the nearest of k public centres to a row of numbers, by one formula, wherever it is computed.

``cloister predict``, the estimators and the view that ``predict --sql`` writes give a row the same label, to the last
bit of its cells. That needs more than the nearest centre of real numbers: floating-point sums depend on the order in
which they are added, and libraries of matrix products differ between machines. So the formula fixes it:

* x_d is a cell as a double, 0 if it is smaller than 2^-500, and at most 2^500 in size;
* y_d = x_d - m_d, with m_d the centres' mean, rounded to a multiple of a power of two of the size of their spread: of
  whole numbers everything is exact, and a tie is one;
* s_j = (y_1 a_j1 + y_2 a_j2) + (y_3 a_j3 + y_4 a_j4) + ... + o_j: the products and o_j are added in pairs, the sums in
  pairs, and so on; one that is left over stays as it is. In exact arithmetic s_j is the squared distance, in the run's
  units, less what is the same for all centres;
* the label is the lowest j with the least s_j.

Every step is one operation of IEEE 754, which has one result on every machine.

Most labels are found by matrix products (``Screen``), and only those that are not sure by the formula. Nothing is
taken from a product but what its error cannot change. With lines s_j(x) = <x, a_j> + o_j, the formula's middle m put
into o_j, and

    B = sum_d (|x_d| + |m_d|) max_j |a_jd| + max_j o_j,

u the rounding of the numbers that are multiplied:

* rounding x, a and o, d products and d sums in any order are off by at most (d + 4) u B (1 + 2^-10), m in o_j by (d +
  2) 2^-53 B, and the formula's own s_j by (d + 3) 2^-53 B: (4 d + 16) u B is more than all of it;
* the index j takes the place of the last bits of s_j, so that one minimum gives both: 2 u B times 2^bits at most;
* numbers too small for their type, and cells that the formula takes for 0, are off by ``tiny`` in all.

Where no other s_j is within twice the sum of these, the formula's least is the same one. A bound that is too small
would give labels that differ between machines; one that is too large only costs time.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Self, final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.types import AnyArray, Floats, Ints

SMALL, LARGE = 2.0**-500, 2.0**500
"""Cells of smaller size are 0, and of larger size LARGE: no product overflows or underflows."""

FLAT, STEEP = 2.0**-400, 2.0**400
"""Slopes of smaller size are 0; larger ones are refused."""

TINY = 2.0**-900
"""Squares of smaller size are 0, so that the bits of scores are far from the smallest doubles."""

BLOCK = 2**17
"""Products of the formula that are in memory at once."""

FEW = 64
"""Number of rows below which the formula is as fast as a matrix product."""


@final
@attrs.frozen(eq=False)
class Labelling:
    """Public numbers of the formula. Args: middle (d,), slopes (k, d), offsets (k,)."""

    middle: Floats
    slopes: Floats
    offsets: Floats
    _first: Ints = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        _, first = np.unique(np.column_stack([self.slopes, self.offsets]), axis=0, return_index=True)
        object.__setattr__(self, "_first", np.sort(first))

    @classmethod
    def of(cls, centers: Floats, units: Floats | None = None) -> Self:
        """Return the formula for centres (k, d) in units (d,) of distances. Raises: InvalidInput: beyond 2^400."""
        units = np.ones(centers.shape[1]) if units is None else units
        middle = _without_small(_rounded_mean(centers), SMALL)
        with np.errstate(all="ignore"):
            c = (centers - middle) / units
            slopes, squares = _without_small(-2 * c / units, FLAT), _without_small(np.square(c), TINY)
        offsets = np.array([math.fsum(row) if np.isfinite(row).all() else math.inf for row in squares])
        if not (np.abs(middle).max() <= LARGE and np.abs(slopes).max() <= STEEP and offsets.max() <= LARGE**1.5):
            raise InvalidInput(
                "centres, or the units of their columns, are too large or too small to compare rows with"
            )
        return cls(middle, slopes, offsets)

    def scores(self, rows: Floats) -> Floats:
        """Return s_j (n, k) of rows (n, d) of finite numbers."""
        y = np.clip(_without_small(rows, SMALL), -LARGE, LARGE) - self.middle
        terms = [y[:, d, None] * self.slopes[:, d] for d in range(y.shape[1])]
        terms.append(np.broadcast_to(self.offsets, terms[0].shape))
        while len(terms) > 1:
            pairs = [terms[i] + terms[i + 1] for i in range(0, len(terms) - 1, 2)]
            terms = pairs + (terms[-1:] if len(terms) % 2 else [])
        return terms[0]

    def labels(self, rows: AnyArray, offset: int = 0) -> Ints:
        """Return the labels (n,) of rows (n, d): by matrix products where those are sure, else by the formula.

        Args:
            rows: of real numbers.
            offset: number of rows before these.

        Raises:
            InvalidInput: a number is not finite.
        """
        nearest, unsure = self._screened(rows)
        step = max(1, BLOCK // self.slopes.size)
        for start in range(0, len(unsure), step):
            block = unsure[start : start + step]
            cells = rows[block].astype(np.float64)
            finite = np.isfinite(cells).all(axis=1)
            if not finite.all():
                bad = offset + int(block[np.argmin(finite)])
                raise InvalidInput(f"rows must be finite: row {bad} holds NaN or infinity")
            nearest[block] = self.scores(cells).argmin(axis=1)
        return nearest

    def _screened(self, rows: AnyArray) -> tuple[Ints, Ints]:
        """Return labels (n,), and the positions of rows whose labels are not sure."""
        labels, unsure = np.empty(len(rows), np.int64), np.arange(len(rows))
        for screen in self._screens:
            if len(unsure) == len(rows):
                labels, unsure = screen.least(rows)
            elif len(unsure) > FEW:
                labels[unsure], unclear = screen.least(rows[unsure])
                unsure = unsure[unclear]
        return (labels if len(self._first) == len(self.offsets) else self._first[labels]), unsure

    @cached_property
    def _screens(self) -> tuple[Screen, ...]:
        """Screens from the fastest to the finest. Of equal centres only the first takes part."""
        lines = Lines.of(self.middle, self.slopes[self._first], self.offsets[self._first])
        return tuple(Screen.of(lines, kind) for kind in (SINGLE, DOUBLE) if kind.suits(lines))


def _rounded_mean(centers: Floats) -> Floats:
    """Return the mean (d,) of centres, rounded to a power of two that is at most the farthest one's distance to it."""
    mean = np.array([math.fsum(column) for column in centers.T]) / len(centers)
    away = np.abs(centers - mean).max(axis=0)
    grid = np.exp2(np.floor(np.log2(np.where(away > 0, away, 1.0))))
    return np.where(away > 0, np.rint(mean / grid) * grid, mean)


def _without_small(values: Floats, smallest: float) -> Floats:
    return np.where(np.abs(values) < smallest, 0.0, values)


CELLS = 2**17
"""Products that are in memory at once: they stay in a core's second-level cache."""

FARTHEST = 2.0**6
"""Limit of the distance of the middle, over that of the centres from it: beyond, single precision is too coarse."""


@final
@attrs.frozen(eq=False)
class Lines:
    """Factors of rows (n, d).

    Args:
        slopes: (k, d).
        offsets: (k,).
        steepest: (d,), the largest |slope| of each column.
        most: largest offset, a part of B that no row changes.
        moved: the middle's part of B.
    """

    slopes: Floats
    offsets: Floats
    steepest: Floats
    most: float
    moved: float

    @classmethod
    def of(cls, middle: Floats, slopes: Floats, offsets: Floats) -> Self:
        """Return the lines of the formula's numbers."""
        steepest = np.abs(slopes).max(axis=0)
        moved = float((np.abs(middle) * steepest).sum())
        return cls(slopes, offsets - (middle * slopes).sum(axis=1), steepest, float(offsets.max()), moved)


@final
@attrs.frozen(eq=False)
class Precision:
    """A type of numbers.

    Args:
        real: NumPy's type.
        integer: NumPy's integer type of the same size.
        u: rounding.
        limit: cells of smaller size are multiplied.
    """

    real: Any
    integer: Any
    u: float
    limit: float

    def suits(self, lines: Lines) -> bool:
        """Return True if products of this type save time, and neither overflow nor vanish."""
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
        """Return the most that numbers which vanish add to an error."""
        if self.real is np.float64:
            return 2.0**-499 * float(lines.steepest.sum())
        return 2.0**-100 * (len(lines.steepest) + 1)


SINGLE, DOUBLE = Precision(np.float32, np.int32, 2.0**-24, 2.0**40), Precision(np.float64, np.int64, 2.0**-53, 2.0**499)


@final
@attrs.frozen(eq=False)
class Screen:
    """Lines in one type of numbers.

    Args:
        kind: the type.
        lines: (k, d + 1), slopes and offset.
        steepest: (d,).
        apart: twice the largest sum of errors, over B.
        least_apart: added to it.
        enough: up to such a sum of errors one bound for a whole block costs few rows.
    """

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
        """Return the smallest line of each row (n, d), and the positions (m,) where that is not sure."""
        k, unclear = len(self.lines), [np.empty(0, np.int64)]
        step = max(1, min(len(rows), max(16, CELLS // (k + self.lines.shape[1]))))
        work, labels = _Work.of(self, step), np.empty(len(rows), np.int64)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(rows), step):
                block = rows[start : start + step]
                memory = work if len(block) == step else work.first(len(block))
                unsure = self._least(block, memory, labels[start : start + step])
                unclear.append(unsure + start)
        return labels, np.concatenate(unclear)

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
        minimum = table.min(axis=0)
        np.bitwise_and(minimum.view(self.kind.integer), low, out=out)
        np.less_equal(table, minimum + self._apart(x, largest), out=work.near)
        if large is None and np.count_nonzero(work.near) == len(rows):
            return np.empty(0, np.int64)
        work.near[out, np.arange(len(rows))] = False
        ambiguous = work.near.any(axis=0)
        return np.flatnonzero(ambiguous if large is None else ambiguous | large)

    def _apart(self, x: AnyArray, largest: float) -> Any:
        """Return twice the errors of rows x (d, n) with cells of at most this size: as one number, if it is small."""
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
    """Memory for the rows of one block: columns (d + 1, n), the last of ones; table, near and indices (k, n).

    NumPy combines whole tables several times as fast as a column with each column of a table.
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
        """Return the memory for fewer rows."""
        return type(self)(*(table[:, :n] for table in (self.columns, self.table, self.near, self.indices)))


def product(lines: AnyArray, columns: AnyArray, out: AnyArray) -> None:
    """Write lines (k, d + 1) times columns (d + 1, n), the last row ones, into ``out`` (k, n)."""
    np.matmul(lines, columns, out=out)

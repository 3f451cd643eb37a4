"""Labels: which of k public centres a row of numbers is nearest to, by one formula, wherever it is worked out.

``cloister predict``, the estimators and the view that ``predict --sql`` writes give a row the same label, to the last
bit of its cells. That needs more than the nearest centre of real numbers: floating-point sums depend on the order in
which they are added, and a library of matrix products has its own on every machine. So the formula fixes it:

* x_d is a cell as a double, 0 if it is smaller than 2^-500, and at most 2^500 in size;
* y_d = x_d - m_d, with m_d the centres' mean, rounded to a multiple of a power of two of the size of their spread: of
  whole numbers everything is exact, and a tie is one;
* s_j = (y_1 a_j1 + y_2 a_j2) + (y_3 a_j3 + y_4 a_j4) + ... + o_j: the products and o_j are added in pairs, the sums in
  pairs, and so on, one that is left over as it is. In exact arithmetic s_j is the squared distance, in the run's units,
  less what is the same for all centres;
* the label is the lowest j with the least s_j.

Every step is one operation of IEEE 754, which has one result on every machine.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Self, final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.screening import DOUBLE, SINGLE, Lines, Screen
from cloister.core.types import AnyArray, Floats, Ints

SMALL, LARGE = 2.0**-500, 2.0**500
"""Cells of smaller size are 0, and of larger size LARGE: no product overflows or underflows."""

FLAT, STEEP = 2.0**-400, 2.0**400
"""Slopes of smaller size are 0; larger ones are refused."""

TINY = 2.0**-900
"""Squares of smaller size are 0, so that bits of scores are far from the smallest of doubles."""

BLOCK = 2**17
"""Products of the formula that are held at once."""

FEW = 64
"""Rows that the formula is as fast for as a matrix product."""


@final
@attrs.frozen(eq=False)
class Labelling:
    """The formula's public numbers. Args: middle (d,), slopes (k, d), offsets (k,)."""

    middle: Floats
    slopes: Floats
    offsets: Floats
    _first: Ints = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        _, first = np.unique(np.column_stack([self.slopes, self.offsets]), axis=0, return_index=True)
        object.__setattr__(self, "_first", np.sort(first))

    @classmethod
    def of(cls, centers: Floats, units: Floats | None = None) -> Self:
        """Args: centers (k, d), units (d,) of distances; None: 1. Raises: InvalidInput: they are beyond 2^400."""
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
        """s_j (n, k) of rows (n, d) of finite numbers."""
        y = np.clip(_without_small(rows, SMALL), -LARGE, LARGE) - self.middle
        terms = [y[:, d, None] * self.slopes[:, d] for d in range(y.shape[1])]
        terms.append(np.broadcast_to(self.offsets, terms[0].shape))
        while len(terms) > 1:
            pairs = [terms[i] + terms[i + 1] for i in range(0, len(terms) - 1, 2)]
            terms = pairs + (terms[-1:] if len(terms) % 2 else [])
        return terms[0]

    def labels(self, rows: AnyArray, before: int = 0) -> Ints:
        """The labels (n,) of rows (n, d) of real numbers: of most rows by matrix products (``screening``), and where
        those are not sure by the formula.

        Args: before (how many rows there are before these). Raises: InvalidInput: a number is not finite.
        """
        found, left = self._screened(rows)
        step = max(1, BLOCK // self.slopes.size)
        for start in range(0, len(left), step):
            some = left[start : start + step]
            cells = rows[some].astype(np.float64)
            finite = np.isfinite(cells).all(axis=1)
            if not finite.all():
                bad = before + int(some[np.argmin(finite)])
                raise InvalidInput(f"rows must be finite: row {bad} holds NaN or infinity")
            found[some] = self.scores(cells).argmin(axis=1)
        return found

    def _screened(self, rows: AnyArray) -> tuple[Ints, Ints]:
        """Labels (n,), and which rows' are not sure."""
        found, left = np.empty(len(rows), np.int64), np.arange(len(rows))
        for screen in self._screens:
            if len(left) == len(rows):
                found, left = screen.least(rows)
            elif len(left) > FEW:
                found[left], unclear = screen.least(rows[left])
                left = left[unclear]
        return (found if len(self._first) == len(self.offsets) else self._first[found]), left

    @cached_property
    def _screens(self) -> tuple[Screen, ...]:
        """From the fastest to the finest: of equal centres the first alone takes part."""
        lines = Lines.of(self.middle, self.slopes[self._first], self.offsets[self._first])
        return tuple(Screen.of(lines, kind) for kind in (SINGLE, DOUBLE) if kind.suits(lines))


def _rounded_mean(centers: Floats) -> Floats:
    """The mean (d,) of centres, to a power of two that is at most the farthest one's distance from it."""
    mean = np.array([math.fsum(column) for column in centers.T]) / len(centers)
    away = np.abs(centers - mean).max(axis=0)
    grid = np.exp2(np.floor(np.log2(np.where(away > 0, away, 1.0))))
    return np.where(away > 0, np.rint(mean / grid) * grid, mean)


def _without_small(values: Floats, least: float) -> Floats:
    return np.where(np.abs(values) < least, 0.0, values)

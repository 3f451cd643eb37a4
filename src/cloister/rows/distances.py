"""Distances from rows to centres that keep their digits, wherever both lie.

|x|^2 - 2 x'c + |c|^2 about the centres' mean is one matrix product. A distance that is small beside these terms has
lost its digits, and is computed again from the difference.
"""

from __future__ import annotations

import math
from typing import final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.types import AnyArray, Floats

_CELLS = 2**20
"""Cells of rows whose distances are computed again at once."""

_CANCELLED = 2.0**-20
"""A squared distance below this share of |x|^2 has lost 20 of its 53 bits, or more."""


@final
@attrs.frozen(eq=False)
class CentersAboutMean:
    """Centres about their mean, ready for products with rows (m, d + 2) that end in 1 and their squared length.

    Args:
        middle: (d,), the mean.
        centers: (k, d), less the middle.
        slopes: (k, d + 2), with <x, slope> = |c|^2 - 2 x'c + |x|^2.
    """

    middle: Floats
    centers: Floats
    slopes: Floats

    @classmethod
    def of(cls, centers: Floats) -> CentersAboutMean:
        middle = centers.mean(axis=0)
        c = centers - middle
        return cls(middle, c, np.column_stack([-2 * c, np.square(c).sum(axis=1), np.ones(len(c))]))

    def fill(self, rows: AnyArray, out: Floats, offset: int) -> None:
        """Write the distances of rows (m, d) into ``out`` (m, k). Args: offset (number of rows before these)."""
        x = self.moved(rows)
        squares = x[:, -1]
        with np.errstate(over="ignore", invalid="ignore"):
            np.matmul(x, self.slopes.T, out=out)
            largest = float(squares.max())
            if not math.isfinite(largest):
                check_finite("rows", x[:, :-1], offset)
            if not out.min() >= largest * _CANCELLED:
                i, j = np.nonzero(~(out >= (squares * _CANCELLED)[:, None]))
                step = max(1, _CELLS // x.shape[1])
                for block in (slice(start, start + step) for start in range(0, len(i), step)):
                    out[i[block], j[block]] = np.square(x[i[block], :-2] - self.centers[j[block]]).sum(axis=1)
        np.sqrt(out, out=out)

    def moved(self, rows: AnyArray) -> Floats:
        """Return rows about the middle (m, d + 2), with 1 and their squared length at the end."""
        x = np.ones((len(rows), len(self.middle) + 2))
        np.subtract(rows, self.middle, out=x[:, :-2], dtype=np.float64)
        np.einsum("ij,ij->i", x[:, :-2], x[:, :-2], out=x[:, -1])
        return x


def check_finite(name: str, numbers: Floats, first: int = 0) -> None:
    """Raise InvalidInput if a number in some row is not finite. Args: first (number of the first row)."""
    bad = np.flatnonzero(~np.isfinite(numbers).all(axis=1))
    if len(bad):
        raise InvalidInput(f"{name} must be finite: row {first + int(bad[0])} holds NaN or infinity")

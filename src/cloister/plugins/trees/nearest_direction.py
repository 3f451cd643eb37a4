"""Which of some public directions a row points along, or against: the cells of a flat partition by direction."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, final

import attrs
import numpy as np

from cloister.core.buckets import BundleArrays, Space, integers
from cloister.core.lattice import squares
from cloister.core.types import AnyArray, Bools, Floats, Ints
from cloister.plugins.trees.directions import NORM

BLOCK = 2**16
"""Products that are held at once: they stay in a core's second-level cache."""


@final
@attrs.frozen(eq=False)
class NearestDirection:
    """A bucketing: b(x) = 2 j + [<g_j, x> < 0], j the direction with the largest |<g_j, x>|, the lowest one of equals.

    Args:
        around: directions (K / 2, d), integers of norm about 2^30. Rows have norms of at most 2^21, so that float64
            products are exact.
    """

    around: Ints

    @property
    def space(self) -> Space:
        return Space((2 * len(self.around),))

    def locate(self, rows: Ints) -> Ints:
        return self.located(rows, squares(rows))

    def located(self, rows: Ints, lengths: Floats) -> Ints:
        """Cells (n, 1). Args: lengths, squared, of the rows."""
        ids = np.empty((len(rows), 1), np.int64)
        step = max(1, BLOCK // len(self.around))
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            ids[some, 0] = self._nearest(rows[some], np.sqrt(lengths[some]))
        return ids

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {"kind": "directions", "sizes": integers(self.space.sizes), "around": arrays.add(self.around)}

    def _nearest(self, rows: Ints, length: Floats) -> Ints:
        """Cells (n,) of a block of rows of these lengths.

        Float32 products order most rows; those that it cannot order are done exactly.

        With u = 2^-24, d products and d - 1 additions in any order and a rounded direction err by at most
        (d + 2) u |g| |x| (1 + 2^-10): rows of integers below 2^24 are exact in float32. What is within twice that of
        the largest may be the largest.
        """
        products = self._rounded @ rows.astype(np.float32).T
        slack = (2.1 * (rows.shape[1] + 2) * 2.0**-24 * (1 + 2.0**-9)) * length + 2.0**-20
        best, unclear = _largest(products, slack)
        minus = products[best, np.arange(len(rows))] < 0
        ids = 2 * best + minus
        if unclear.any():
            exact = rows[unclear].astype(np.float64) @ self._exact
            best = np.abs(exact).argmax(axis=1)
            ids[unclear] = 2 * best + (exact[np.arange(len(exact)), best] < 0)
        return ids

    @cached_property
    def _rounded(self) -> AnyArray:
        return np.ascontiguousarray((self.around / NORM).astype(np.float32))

    @cached_property
    def _exact(self) -> Floats:
        return np.ascontiguousarray(self.around.astype(np.float64).T)


def _largest(products: AnyArray, slack: Floats) -> tuple[Ints, Bools]:
    """Place of the largest |product| of each column (m, n) is, and whether another one may come within the slack (n,).

    The lowest bits of a float32 give way to its index, and its sign to 0: integers order these as floats do, and one
    maximum gives both. What that takes away from a number is below 2^(bits - 23) of it.
    """
    bits = (len(products) - 1).bit_length()
    index, everyone = 2**bits - 1, np.arange(products.shape[1])
    sizes = np.bitwise_and(products.view(np.int32), np.int32(2**31 - 1 - index))
    sizes |= np.arange(len(products), dtype=np.int32)[:, None]
    most = sizes.max(axis=0)
    best = (most & index).astype(np.int64)
    sizes[best, everyone] = 0
    largest, second = most.view(np.float32).astype(np.float64), sizes.max(axis=0).view(np.float32)
    return best, second >= largest * (1 - 2.0 ** (bits - 22)) - slack

"""The cells of a flat partition by direction: the public direction that a row points along or against."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, final

import attrs
import numpy as np

from cloister.plugin import AnyArray, Bools, BundleArrays, Floats, Ints, Space, json_integers, squared_lengths
from cloister.plugins.trees.directions import NORM

BLOCK = 2**16
"""Products per batch, so that they stay in a core's second-level cache."""


@final
@attrs.frozen(eq=False)
class NearestDirection:
    """Bucketing b(x) = 2 j + [<g_j, x> < 0], j the direction with the largest |<g_j, x>|, ties to the lowest.

    Args:
        around: directions (K / 2, d), integers of norm about 2^30. Rows have norms of at most 2^21, so that float64
            products are exact.
    """

    around: Ints

    @property
    def space(self) -> Space:
        return Space((2 * len(self.around),))

    def locate(self, rows: Ints) -> Ints:
        return self.located(rows, squared_lengths(rows))

    def located(self, rows: Ints, lengths: Floats) -> Ints:
        """Return the cells (n, 1) of rows whose squared lengths are ``lengths`` (n,)."""
        ids = np.empty((len(rows), 1), np.int64)
        step = max(1, BLOCK // len(self.around))
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            ids[block, 0] = self._nearest(rows[block], np.sqrt(lengths[block]))
        return ids

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {"kind": "directions", "sizes": json_integers(self.space.sizes), "around": arrays.add(self.around)}

    def _nearest(self, rows: Ints, length: Floats) -> Ints:
        """Return the cells (n,) of a block of rows of these lengths.

        Float32 products decide most rows; those that they cannot decide are computed exactly.
        """
        # With u = 2^-24, d products and d - 1 additions in any order and a rounded direction err by at most
        # (d + 2) u |g| |x| (1 + 2^-10), as rows of integers below 2^24 are exact in float32. A product within twice
        # that of the largest may be the largest.
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
    """Return the index of the largest |product| of each column (m, n), and True where another is within the slack (n,).

    The index replaces the lowest bits of a float32, and 0 its sign: integers order these as floats do, and one maximum
    gives both. That changes a number by less than 2^(bits - 23) of it.
    """
    bits = (len(products) - 1).bit_length()
    index, everyone = 2**bits - 1, np.arange(products.shape[1])
    sizes = np.bitwise_and(products.view(np.int32), np.int32(2**31 - 1 - index))
    sizes |= np.arange(len(products), dtype=np.int32)[:, None]
    largest_bits = sizes.max(axis=0)
    best = (largest_bits & index).astype(np.int64)
    sizes[best, everyone] = 0
    largest, second = largest_bits.view(np.float32).astype(np.float64), sizes.max(axis=0).view(np.float32)
    return best, second >= largest * (1 - 2.0 ** (bits - 22)) - slack

"""Exact nearest public centre: the bucketing of every Lloyd-like method."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, final

import attrs
import numpy as np

from cloister.core.buckets import BundleArrays, Space, json_integers
from cloister.core.lattice import EXACT, Bound
from cloister.core.types import Floats, Ints

ROWS, BLOCK = 16_384, 2**18
"""Limits on the rows, and on the products or coordinates, held at once: they stay in a core's cache, and take so long
that two threads seldom wait for the interpreter's lock at once."""


def most_centers(reach: int) -> int:
    """Return the largest power of two S with S (3 R^2 + 1) below 2^53, for R = ``reach``."""
    return 1 << (int(EXACT / (3 * reach**2 + 1)).bit_length() - 1)


@final
@attrs.frozen(eq=False)
class _Block:
    """Centres from index ``start`` on, ready for the product, with ``bits`` for an index within the block."""

    start: int
    bits: int
    slopes: Floats
    offsets: Floats

    @classmethod
    def of(cls, centers: Ints, start: int) -> _Block:
        bits = (len(centers) - 1).bit_length()
        offsets = ((centers**2).sum(axis=1) << bits) + np.arange(len(centers))
        slopes = (-(centers << (bits + 1))).astype(np.float64)
        return cls(start, bits, slopes, offsets.astype(np.float64)[:, None])

    @cached_property
    def _lines(self) -> Floats:
        return np.hstack([self.slopes, self.offsets])

    def smallest_keys(self, columns: Floats, out: Floats) -> None:
        """Write S (|c|^2 - 2 <x, c>) + j of the nearest centre for each row to ``out``; columns (d + 1, n) are x, 1."""
        np.min(self._lines @ columns, axis=0, out=out)

    def split_keys(self, keys: Floats) -> tuple[Ints, Ints]:
        """Return the nearest centre's index and squared distance less |x|^2, from its key."""
        integers = keys.astype(np.int64)
        index = integers & ((1 << self.bits) - 1)
        return index + self.start if self.start else index, integers >> self.bits


@final
@attrs.frozen(eq=False)
class NearestCenter:
    """Bucketing by the nearest centre, ties to the lowest index; -1 if it is farther than ``within``.

    Distances are integers. For every row x and centre c_j, S (|c_j|^2 - 2 <x, c_j>) + j with S a power of two >= k
    orders the centres by distance and then by index, so that one minimum gives both. Cauchy and Schwarz bound each
    partial sum by S (3 R^2 + 1) with R the largest norm of rows and centres; centres are taken in blocks for which this
    is below 2^53, so the float64 matrix product is exact whatever order it adds in, and a row's bucket depends on that
    row alone.

    Args:
        centers: lattice points (k, d) of the domain.
        reach: largest norm of a row (``Domain.max_norm``).
        within: largest distance, in lattice units; None for no limit.
    """

    centers: Ints
    reach: int
    within: int | None = None
    blocks: tuple[_Block, ...] = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        size = most_centers(max(self.reach, int(np.sqrt((self.centers**2).sum(axis=1).max())) + 1))
        starts = range(0, len(self.centers), size)
        object.__setattr__(self, "blocks", tuple(_Block.of(self.centers[i : i + size], i) for i in starts))

    @property
    def space(self) -> Space:
        return Space((len(self.centers),))

    def locate(self, rows: Ints) -> Ints:
        """Return the index (n, 1) of the centre of each lattice row (n, d), or -1."""
        if len(self.centers) == 1 and self.within is None:
            return np.zeros((len(rows), 1), np.int64)
        nearest, distance = self._nearest(rows, squared=self.within is not None)
        if self.within is not None:
            nearest |= -(distance > self.within**2).astype(np.int64)  # -1 has all bits
        return nearest[:, None]

    def distances(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the nearest centre (n,) of lattice rows, at any distance, and its squared distance (n,)."""
        return self._nearest(rows, squared=True)

    def _nearest(self, rows: Ints, squared: bool) -> tuple[Ints, Ints]:
        """Return the nearest centre of each row (n, d), and its squared distance; if not ``squared``, less |x|^2."""
        d, blocks = self.centers.shape[1], self.blocks
        step = max(1, min(ROWS, BLOCK // max(d + 1, len(blocks[0].slopes))))
        keys = np.empty((len(blocks), len(rows)))
        columns = np.ones((d + 1, step))  # a product of these takes half the time of one of rows
        for start in range(0, len(rows), step):
            chunk = slice(start, start + step)
            x = columns[:, : len(rows) - start]
            x[:d] = rows[chunk].T
            for block, block_keys in zip(blocks, keys, strict=True):
                block.smallest_keys(x, block_keys[chunk])
        nearest, distance = blocks[0].split_keys(keys[0])
        for block, block_keys in zip(blocks[1:], keys[1:], strict=True):
            other, closer = block.split_keys(block_keys)
            nearest = np.where(closer < distance, other, nearest)
            distance = np.minimum(distance, closer)
        return nearest, distance + np.vecdot(rows, rows) if squared else distance

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        sizes, centers = json_integers(self.space.sizes), arrays.add(self.centers)
        return {"kind": "centers", "sizes": sizes, "centers": centers, "within": self.within}

    def offsets(self) -> Offsets:
        """Return the vectors x - c for the nearest centre c, of norm at most ``within``, or 2 R without a limit.

        So no row is clipped. The bound is public: it never depends on where the centres are.
        """
        return Offsets(self, Bound(2 * self.reach if self.within is None else self.within, self.centers.shape[1]))


@final
@attrs.frozen(eq=False)
class Offsets:
    """Rows relative to their centre (FastLloyd, equation 5); the L2 sensitivity of their sum is the radius."""

    cells: NearestCenter
    bound: Bound

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        moved = np.take(self.cells.centers, buckets[:, 0], axis=0, mode="wrap")
        return np.subtract(rows, moved, out=moved)

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {"kind": "offsets", "centers": arrays.add(self.cells.centers), **self.bound.bundled}

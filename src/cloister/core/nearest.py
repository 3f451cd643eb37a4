"""The nearest of k public centres, exactly: the bucketing that every Lloyd-like method asks about."""

from __future__ import annotations

from typing import final

import attrs
import numpy as np

from cloister.core.lattice import EXACT, Bound
from cloister.core.questions import Space
from cloister.core.types import Floats, Ints


@final
@attrs.frozen(eq=False)
class NearestCenter:
    """A row's bucket is its nearest centre, ties to the lowest index; -1 if that is farther than ``within``.

    Distances are integers. For every row x and centre c_j, S (|c_j|^2 - 2 <x, c_j>) + j with S a power of two >= k orders
    the centres by distance and then by index, so that one minimum gives both. Cauchy and Schwarz bound each partial sum by
    S (3 R^2 + 1) with R the largest norm of rows and centres; centres are taken in blocks for which this is below 2^53, so
    the float64 matrix product is exact whatever order it adds in, and a row's bucket depends on that row alone.

    Args:
        centers: lattice points (k, d) of the domain.
        reach: the largest norm of a row (``Domain.reach``).
        within: lattice units; None for no limit.
    """

    centers: Ints
    reach: int
    within: int | None = None

    @property
    def space(self) -> Space:
        return Space((len(self.centers),))

    def locate(self, rows: Ints) -> Ints:
        """Lattice rows (n, d) to the index of their centre (n, 1), or -1."""
        wide = rows.astype(np.float64)
        nearest, distance = self._block(wide, 0)
        for start in range(self._size, len(self.centers), self._size):
            other, closer = self._block(wide, start)
            nearest = np.where(closer < distance, other, nearest)
            distance = np.minimum(distance, closer)
        if self.within is not None:
            distance += np.einsum("ij,ij->i", wide, wide).astype(np.int64)
            nearest[distance > self.within**2] = -1
        return nearest[:, None]

    @property
    def _size(self) -> int:
        """How many centres fit in a block: the largest power of two S with S (3 R^2 + 1) below 2^53."""
        most = max(self.reach, int(np.sqrt((self.centers**2).sum(axis=1).max())) + 1)
        return 1 << (int(EXACT / (3 * most**2 + 1)).bit_length() - 1)

    def _block(self, wide: Floats, start: int) -> tuple[Ints, Ints]:
        """Index of, and squared distance less |x|^2 to, the nearest centre of one block."""
        some = self.centers[start : start + self._size]
        step = 1 << (len(some) - 1).bit_length()
        packed = (-2.0 * step * some) @ wide.T
        packed += (step * (some**2).sum(axis=1) + np.arange(len(some)))[:, None]
        least = packed.min(axis=0).astype(np.int64)
        return (least & (step - 1)) + start, least >> (step.bit_length() - 1)

    def offsets(self) -> Offsets:
        """x - c for the nearest centre c: of norm at most ``within``, so that no row is clipped; without a limit, 2 R.

        The bound is public: it never depends on where the centres are.
        """
        return Offsets(self, Bound(2 * self.reach if self.within is None else self.within, self.centers.shape[1]))


@final
@attrs.frozen(eq=False)
class Offsets:
    """Rows relative to their centre (FastLloyd, equation 5). The L2 sensitivity of their sum is the radius."""

    cells: NearestCenter
    bound: Bound

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        return rows - self.cells.centers[buckets[:, 0]]


@final
@attrs.frozen(eq=False)
class Rows:
    """The rows themselves, relative to the domain's midpoint."""

    cells: NearestCenter
    bound: Bound

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        return rows

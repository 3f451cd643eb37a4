"""A row's coordinates in a tree of axis-parallel cells: a public random subspace of few dimensions, in integers, and a
table that finds the cuts which they are beyond.

A row x (lattice steps, relative to the domain's middle) goes to y = floor(2^-20 M'x), the columns of M / 2^20 an
orthonormal basis of a random m-dimensional subspace, and is then clipped to a box again: a projection leaves no ball,
but leaves a box. Distances within the subspace are kept, so that points y lifted back (``back``) are nearest to the
same rows in the domain as in the subspace.

Exact: |x| <= reach <= 2^20 and columns of norm below 2^20 + sqrt(d) make every partial sum of M'x an integer below 2^41
(Cauchy and Schwarz), exact in float64 in whatever order it is added.

Of a unit vector, a coordinate in a random subspace is about normal with variance 1 / d: a box of half side ``SPREAD`` /
sqrt(d) holds 99.7% of the rows in every coordinate, whatever they are. Rows beyond it fall in the cells at its border.

Source: Makarychev, Makarychev, Razenshteyn 2019 for O(log k) dimensions; the second clipping is a correction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self, final

import attrs
import numpy as np

from cloister.core.buckets import BundleArrays
from cloister.core.domains import Domain
from cloister.core.randomness import PublicRng
from cloister.core.reproducible_math import orthonormal, product, standard_normals
from cloister.core.types import Floats, Ints

SPREAD = 3.0
"""Half side of the box, in standard deviations of a coordinate of a row at the domain's border."""

BITS = 20
"""Bits of a column's norm."""


@final
@attrs.frozen(eq=False)
class Reduction:
    """The opened subspace.

    Args:
        domain: of the rows.
        matrix: M (d, m), integers; None where nothing is projected.
        sides: half sides (m,) of the box, in lattice steps.
    """

    domain: Domain
    matrix: Ints | None
    sides: Ints

    @classmethod
    def random(cls, domain: Domain, m: int, seed: PublicRng) -> Reduction:
        """Onto the span of m Gaussian vectors; the domain's own columns where it has no more than m."""
        d = domain.dimension
        if m >= d:
            return cls(domain, None, domain.sides)
        frame = orthonormal(standard_normals(seed.generator(), m, d)).T
        side = min(domain.max_norm, math.ceil(SPREAD * domain.max_norm / math.sqrt(d)))
        return cls(domain, np.rint(frame * 2.0**BITS).astype(np.int64), np.full(m, side))

    @property
    def dimension(self) -> int:
        return len(self.sides)

    @property
    def frame(self) -> Floats | None:
        """The directions (d, m) of the subspace; none where nothing is projected."""
        return None if self.matrix is None else self.matrix.astype(np.float64) * 2.0**-BITS

    def of(self, rows: Ints) -> Ints:
        """Lattice rows (n, d) to integers (n, m) in the box."""
        if self.matrix is None:
            return rows
        images = (rows.astype(np.float64) @ self.matrix.astype(np.float64)).astype(np.int64) >> BITS
        return np.asarray(np.clip(images, -self.sides, self.sides), np.int64)

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any] | None:
        """For devices that run no Python; None where nothing is projected."""
        if self.matrix is None:
            return None
        return {"matrix": arrays.add(self.matrix), "bits": BITS, "sides": self.sides.tolist()}

    def back(self, images: Floats) -> Floats:
        """Points (p, m) of the box, in lattice steps, to points (p, d) of the domain in the caller's units."""
        steps = images if self.frame is None else product(images, self.frame.T)
        return self.domain.truncate(self.domain.middle + steps * self.domain.unit)


FINER = 6
"""Bits by which the table is finer than the cuts are many: most of its cells then hold no cut, and few hold two."""

LONGEST = 16
"""Bits of the longest table, which a core's second-level cache holds."""

CROWDED = 4
"""Cuts in one cell from which on bisection is as fast."""


@final
@attrs.frozen(eq=False)
class Steps:
    """How many of the cuts (m,), ascending, are at most x, for integers x of [-side, side]: by a table, several times
    as fast as bisection, which guesses each turn.

    Args:
        cuts: followed by as many that no x reaches as a cell of the table holds.
        side: of the range.
        shift: bits of a cell of the table.
        first: by cell, how many cuts are at most its first integer.
        crowd: most cuts within a cell.
    """

    cuts: Ints
    side: int
    shift: int
    first: Ints
    crowd: int

    @classmethod
    def of(cls, cuts: Ints, side: int) -> Self:
        bits = min(LONGEST, len(cuts).bit_length() + FINER)
        shift = max(0, (2 * side).bit_length() - bits)
        cells = (np.arange((2 * side >> shift) + 2) << shift) - side
        first = np.searchsorted(cuts, cells, side="right")
        crowd = int(np.diff(first).max())
        never = np.full(crowd, np.iinfo(np.int64).max)
        return cls(np.concatenate([cuts, never]), side, shift, first, crowd)

    def below(self, x: Ints) -> Ints:
        """The numbers of cuts (n,) that are at most x (n,)."""
        if self.crowd > CROWDED:
            return np.asarray(np.searchsorted(self.cuts, x, side="right"), np.int64)
        found: Ints = self.first.take((x + self.side) >> self.shift, mode="clip")
        for _ in range(self.crowd):
            found = found + (x >= self.cuts[found])
        return found

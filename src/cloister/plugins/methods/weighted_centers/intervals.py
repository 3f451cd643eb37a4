"""Intervals along the axes of a random orthonormal basis, and the boxes that enclose clusters (steps 3 to 6).

In a random basis the coordinates of a set of m points that fits in a ball of radius r differ by at most
2 sqrt(ln(d m / beta) / d) |x - y| (lemma A.3), so that a box of sides about r / sqrt(d) encloses them: its half
diagonal, which the noise of an average is in proportion to, is about r.

Exact (law 5): axes are integer directions of length 2^30 (``trees.directions``), so that projections are integers; an
interval's number is their quotient by an integer length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, final

import attrs
import numpy as np

from cloister.core.reproducible_math import product
from cloister.plugin import Bools, BundleArrays, Domain, Floats, Ints, PublicRng
from cloister.plugins.trees.directions import NORM, directions


@final
@attrs.frozen(eq=False)
class Intervals:
    """A partition of every axis into intervals of one length.

    Args:
        basis: z_1 .. z_d (d, d), integers of length 2^30.
        length: p, in lattice steps times 2^30.
        start: (d,) where the first interval of each axis begins, in the same units; a public random shift is in it.
        number: intervals per axis.
    """

    basis: Ints
    length: int
    start: Ints
    number: int

    @classmethod
    def of(cls, domain: Domain, length: float, seed: PublicRng) -> Intervals:
        """For rows of a domain. Args: length (p), in lattice steps: more than twice the domain's width is of no use."""
        reach = domain.max_norm * NORM
        whole_length = max(1, min(round(length * NORM), 4 * reach))
        shifts = seed.child("shift").generator().integers(0, whole_length, domain.dimension)
        basis = directions(seed.child("basis"), domain.dimension, domain.dimension, "orthogonal")
        return cls(basis, whole_length, -reach - shifts, 2 * reach // whole_length + 2)

    def of_rows(self, rows: Ints) -> Ints:
        """Lattice rows (n, d) to the number of their interval on every axis (n, d)."""
        along = (rows.astype(np.float64) @ self._columns).astype(np.int64) - self.start
        numbers: Ints = np.clip(along // self.length, 0, self.number - 1)
        return numbers

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {
            "basis": arrays.add(self.basis),
            "start": arrays.add(self.start),
            "length": str(self.length),
            "number": self.number,
        }

    @cached_property
    def _columns(self) -> Floats:
        return self.basis.T.astype(np.float64)

    def middles(self, chosen: Ints) -> Ints:
        """Lattice points (m, d) in the middle of the boxes of these intervals (m, d)."""
        along = (chosen + 0.5) * (self.length / NORM) + self.start / NORM
        return np.rint(product(along, self.basis / NORM)).astype(np.int64)

    @property
    def half_diagonal(self) -> float:
        """Half the diagonal of a box of three intervals per axis, in lattice steps."""
        return float(1.5 * self.length / NORM * math.sqrt(len(self.basis)))


def inside(numbers: Ints, chosen: Ints) -> Bools:
    """Which rows' intervals (n, d) are at most one from the chosen ones (n, d): the box of step 6."""
    return np.asarray((np.abs(numbers - chosen) <= 1).all(axis=1))

"""A public random projection to a box of few dimensions, in integers, for trees of axis-parallel cells.

A row x (lattice steps, relative to the domain's middle) is mapped to y = floor(2^-20 M'x), where the columns of
M / 2^20 are an orthonormal basis of a random m-dimensional subspace, and then clipped to a box: a projection may leave
a box, though not a ball. Distances within the subspace are kept, so that points y lifted back (``back``) are nearest to
the same rows in the domain as in the subspace.

Exact: |x| <= reach <= 2^20 and columns of norm below 2^20 + sqrt(d) make every partial sum of M'x an integer below 2^41
(Cauchy and Schwarz), exact in float64 in any order of addition.

A unit vector's coordinate in a random subspace is about normal with variance 1 / d: a box of half side ``SPREAD`` /
sqrt(d) holds 99.7% of the rows in every coordinate, whatever they are. Rows beyond it fall into the cells at its
border.

Source: Makarychev, Makarychev, Razenshteyn 2019 for O(log k) dimensions; the second clipping is a correction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, final

import attrs
import numpy as np

from cloister.core.reproducible_math import orthonormal, product, standard_normals
from cloister.plugin import BundleArrays, Domain, Floats, Ints, PublicRng

SPREAD = 3.0
"""Half side of the box, in standard deviations of a coordinate of a row at the domain's border."""

BITS = 20
"""Bits of a column's norm."""


@final
@attrs.frozen(eq=False)
class Reduction:
    """Opened subspace.

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
        """Return the span of m Gaussian vectors, or the domain's own columns if it has no more than m."""
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
        """Orthonormal basis (d, m) of the subspace; None if nothing is projected."""
        return None if self.matrix is None else self.matrix.astype(np.float64) * 2.0**-BITS

    def of(self, rows: Ints) -> Ints:
        """Return the images of lattice rows (n, d): integers (n, m) in the box."""
        if self.matrix is None:
            return rows
        images = (rows.astype(np.float64) @ self.matrix.astype(np.float64)).astype(np.int64) >> BITS
        return np.asarray(np.clip(images, -self.sides, self.sides), np.int64)

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any] | None:
        """Return parameters for non-Python clients; None if nothing is projected."""
        if self.matrix is None:
            return None
        return {"matrix": arrays.add(self.matrix), "bits": BITS, "sides": self.sides.tolist()}

    def back(self, images: Floats) -> Floats:
        """Return points (p, d) of the domain, in the caller's units, for points (p, m) of the box in lattice steps."""
        steps = images if self.frame is None else product(images, self.frame.T)
        return self.domain.truncate(self.domain.middle + steps * self.domain.unit)

"""A public random projection of lattice rows into the hyperplane of ``nets``, in integers.

A row x (lattice steps, relative to the domain's middle) is projected onto a public random m-dimensional
subspace, scaled by Lambda and mapped isometrically into the zero-sum hyperplane of R^(m+1). The ball of the domain's
reach becomes the ball of radius ``RADIUS`` = 2^26 around 0, scaled by Lambda; if the domain has m dimensions, nothing
is projected. Rows whose image leaves the ball go to 0 (Chang et al. 2021, Algorithm 3, lines 3-6: the nets cover the
ball only).

Exact: y = floor(2^-b M'x), M an integer matrix with columns of norm 2^(26 + b) Lambda / reach at most, but for
rounding. b is chosen so that with |x| <= reach <= 2^20 every partial sum of M'x is an integer of about 2^50 at most:
exact in float64, in any order of addition. The rounding of M and y moves an image by less than
(1 + Lambda sqrt(d) / 8) sqrt(m + 1) of its 2^26 steps.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import final

import attrs
import numpy as np

from cloister.core.reproducible_math import ceil_log2, orthonormal, product, standard_normals
from cloister.plugin import Domain, Floats, Ints, PublicRng
from cloister.plugins.trees.nets import energy

RADIUS = 2**26
"""Radius of the ball that rows are mapped to, in integers. (m+1)^2 (4 RADIUS)^2 < 2^63 for m <= 8."""


@final
@attrs.frozen(eq=False)
class Projection:
    """Projection of rows, opened.

    Args:
        domain: of the rows.
        matrix: M (d, m + 1), integers.
        shift: b.
        scale: Lambda.
    """

    domain: Domain
    matrix: Ints
    shift: int
    scale: float

    @classmethod
    def random(cls, domain: Domain, m: int, scale: float, seed: PublicRng) -> Projection:
        """Return one onto m dimensions (or all, if there are no more), by Gram and Schmidt of a Gaussian matrix."""
        d = domain.dimension
        frame = np.eye(d) if m >= d else orthonormal(standard_normals(seed.generator(), m, d)).T
        shift = 24 - ceil_log2(scale * 2**20 / domain.max_norm)
        length = scale * 2.0 ** (26 + shift) / domain.max_norm
        matrix = np.rint(product(frame, _hyperplane(frame.shape[1])) * length).astype(np.int64)
        return cls(domain, matrix, shift, scale)

    def of(self, rows: Ints) -> Ints:
        """Return the images of lattice rows (n, d): integers (n, m + 1) that Q maps into the ball."""
        images = (rows.astype(np.float64) @ self._matrix).astype(np.int64) >> self.shift
        images[(np.abs(images) > RADIUS).any(axis=1)] = 0
        images[energy(images) > images.shape[1] * RADIUS**2] = 0
        return images

    @cached_property
    def _matrix(self) -> Floats:
        return self.matrix.astype(np.float64)

    def back(self, images: Ints) -> Floats:
        """Return points (n, d) of the domain, in the caller's units, for points of the hyperplane (n, m + 1)."""
        centred = images - images.sum(axis=1, keepdims=True) / images.shape[1]
        length = self.scale * 2.0**26 / self.domain.max_norm  # of the image of a lattice step
        steps = product(centred, self._matrix.T) / (length * length * 2.0**self.shift)
        return self.domain.truncate(self.domain.middle + steps * self.domain.unit)


def _hyperplane(m: int) -> Floats:
    """Return an orthonormal basis (m, m + 1) of the vectors of zero sum (Helmert's)."""
    basis = np.zeros((m, m + 1))
    for j in range(1, m + 1):
        basis[j - 1, :j] = 1 / math.sqrt(j * (j + 1))
        basis[j - 1, j] = -j / math.sqrt(j * (j + 1))
    return basis

"""Efficiently decodable nets, the lattice A*_m scaled and shifted, and a projection of rows into their hyperplane.

A*_m, dual to the root lattice A_m, is Z^(m+1) projected onto the hyperplane of zero sum: its points are Qu, u in
Z^(m+1), Q = I - 11'/(m+1), where u and u + (1, ..., 1) are one point. It lives in m dimensions, and has

    covering radius sqrt(m (m+2) / (12 (m+1))),   packing radius sqrt(m / (m+1)) / 2,
    ratio sqrt((m+2) / 3) <= 3 for m <= 25,

so that scaled to the covering radius rho it is a (rho, rho / 3)-net, as Lemma 10 of Chang et al. 2021 requires, and
sparser than any other known lattice of its dimension up to m = 5.

Vectors of the hyperplane are represented by any integers y in Z^(m+1) that Q maps to them. The nearest point of h A*_m
to y is found by sorting: with w = y mod h and u_0 = floor(y / h), it is one of u_k = u_0 + (ones at the k largest
entries of w), k = 0 .. m, and

    (m+1) |Q(y - h u_k)|^2 / h = const + h k (m+1-k) - 2 (m+1) S_k + 2 k S_(m+1),
    S_k the sum of the k largest entries of w,

which is linear in w: int64 is exact, and squares are not needed. Ties go to the smallest k, and to the first of equal
entries of w. Points are named by u with u_(m+1) = 0.

**Projection.** A row x (lattice steps, relative to the domain's middle) is projected onto a public random m-dimensional
subspace, scaled by Lambda and mapped isometrically into the zero-sum hyperplane of R^(m+1). The ball of the domain's
reach becomes the ball of radius ``RADIUS`` = 2^26 around 0, scaled by Lambda; if the domain has m dimensions, nothing
is projected. Rows whose image leaves the ball go to 0 (Chang et al. 2021, Algorithm 3, lines 3-6: the nets cover the
ball only).

Exact: y = floor(2^-b M'x), M an integer matrix with columns of norm 2^(26 + b) Lambda / reach at most, but for
rounding. b is chosen so that with |x| <= reach <= 2^20 every partial sum of M'x is an integer of about 2^50 at most:
exact in float64, in any order of addition. The rounding of M and y moves an image by less than
(1 + Lambda sqrt(d) / 8) sqrt(m + 1) of its 2^26 steps.

Source: Conway and Sloane 1982, and chapters 4 and 20 of Sphere Packings, Lattices and Groups; McKilliam, Clarkson,
Quinn 2008.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import final

import attrs
import numpy as np

from cloister.core.domains import Domain
from cloister.core.randomness import PublicRng
from cloister.core.reproducible_math import ceil_log2, orthonormal, product, standard_normals
from cloister.core.types import Floats, Ints


def covering_radius(m: int) -> float:
    """Return the covering radius of A*_m: no point of the hyperplane is further from the lattice."""
    return math.sqrt(m * (m + 2) / (12 * (m + 1)))


def packing_radius(m: int) -> float:
    """Return the packing radius of A*_m: half the length of a shortest vector."""
    return math.sqrt(m / (m + 1)) / 2


@final
@attrs.frozen(eq=False)
class Net:
    """Net h A*_m, shifted.

    Args:
        step: h, an integer of at least 1. Coordinates stay exact while (m+1)^2 (|y| + h) is far below 2^61.
        shift: any integers (m + 1,).
    """

    step: int
    shift: Ints

    @property
    def dimension(self) -> int:
        return len(self.shift) - 1

    def nearest(self, points: Ints) -> Ints:
        """Return the names (n, m) of the net's points nearest to points (n, m + 1), a function of each one alone."""
        columns = points.T - self.shift[:, None]
        size, h = len(columns), self.step
        floors = columns // h
        remainders = columns - floors * h
        order = np.argsort(-remainders, axis=0, kind="stable")
        sums = np.cumsum(np.take_along_axis(remainders, order, axis=0), axis=0)
        k = np.arange(1, size)[:, None]
        far = h * k * (size - k) - 2 * size * sums[:-1] + 2 * k * sums[-1]
        best = far.argmin(axis=0) + 1
        best[far.min(axis=0) >= 0] = 0  # far is 0 at k = 0
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.arange(size)[:, None], axis=0)
        floors += rank < best
        return np.ascontiguousarray((floors[:-1] - floors[-1]).T)

    def points(self, names: Ints) -> Ints:
        """Return integers (n, m + 1) that Q maps to the points of these names (n, m)."""
        out = np.empty((len(names), self.dimension + 1), np.int64)
        out[:, :-1] = names * self.step + self.shift[:-1]
        out[:, -1] = self.shift[-1]
        return out


def energy(points: Ints) -> Ints:
    """Return (m + 1) |Qy|^2 of integers y (n, m + 1), exact below 2^63."""
    total = points.sum(axis=1)
    squares: Ints = points.shape[1] * np.einsum("ij,ij->i", points, points) - total * total
    return squares


@lru_cache(maxsize=16)
def short_vectors(m: int, radius: float) -> Ints:
    """Return the names (s, m) of all vectors of A*_m that are at most ``radius`` long, including zero.

    A vector is Qu for exactly one u with a sum s of 0 .. m, and |Qu|^2 = sum (u_j - s / (m+1))^2: coordinates are
    appended one at a time while the sum of squares allows.
    """
    vectors = [_with_sum(m, s, radius**2 * (1 + 1e-9)) for s in range(m + 1)]
    names = np.concatenate([u[:, :-1] - u[:, -1:] for u in vectors])
    names.flags.writeable = False
    return names


def _with_sum(m: int, s: int, square: float) -> Ints:
    """Return all u (., m + 1) of sum s with |Qu|^2 <= square."""
    mean, root = s / (m + 1), math.sqrt(square)
    steps = np.arange(math.ceil(mean - root), math.floor(mean + root) + 1)
    heads, used = np.zeros((1, 0), np.int64), np.zeros(1)
    for _ in range(m):
        spent = used[:, None] + (steps - mean) ** 2
        row, column = np.nonzero(spent <= square)
        heads, used = np.column_stack([heads[row], steps[column]]), spent[row, column]
    last = s - heads.sum(axis=1)
    within = used + (last - mean) ** 2 <= square
    return np.column_stack([heads[within], last[within]])


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

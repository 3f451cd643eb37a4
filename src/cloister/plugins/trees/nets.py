"""Efficiently decodable nets: the lattice A*_m, scaled and shifted.

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

Source: Conway and Sloane 1982, and chapters 4 and 20 of Sphere Packings, Lattices and Groups; McKilliam, Clarkson,
Quinn 2008.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import final

import attrs
import numpy as np

from cloister.plugin import Ints


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

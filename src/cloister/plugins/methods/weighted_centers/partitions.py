"""Partitions that CentersProcedure asks about: by hashes, by boxes, by prefixes.

Locality-sensitive hashing by p-stable (here normal) projections: near points share a hash value, far ones seldom do.

    h(x) = hash of (floor((<a_1, x> + b_1) / w), ..., floor((<a_m, x> + b_m) / w)),     a_j ~ N(0, I), b_j ~ U[0, w).

Two points at the distance s agree on one projection with probability

    p1(s / w) = 1 - 2 Phi(-w / s) - sqrt(2 / pi) (s / w) (1 - exp(-w^2 / 2 s^2)),

so on all m with p1^m. A family that is (r, c r, p, q)-sensitive (the paper's definition A.4) for a wanted p at r and q
has w from p1(r / w) = p^(1/m) and c from p1(c r / w) = q^(1/m). The paper takes p = n^-b and q = n^(-2-a): no two far
points of all n^2 pairs ever meet; here p and q are options.

Exact (law 5): a_j are integers, 2^24 times a normal vector, and rows have norm at most 2^20, so that every partial sum
of <a_j, x> is an integer below 2^53 while |a_j| < 2^9 (d up to some 10^5): a row has the same hash alone and in any
batch. The tuple is mixed to 64 bits by a public keyed hash, of which the highest are kept: that adds 2^-bits to the
chance that far points meet, and takes nothing from near ones.

Source: Datar, Immorlica, Indyk, Mirrokni 2004; Stemmer 2021, definition A.4 and proof of lemma A.6.

A random orthonormal basis, intervals along its axes, and the boxes that clusters are enclosed in (steps 3-6).

In a random basis the coordinates of a set of m points that fits in a ball of radius r differ by at most
2 sqrt(ln(d m / beta) / d) |x - y| (lemma A.3), so that a box of sides about r / sqrt(d) encloses them: its half
diagonal, which the noise of an average is in proportion to, is about r.

Exact (law 5): axes are integer directions of length 2^30 (``trees.directions``), so that projections are integers; an
interval's number is their quotient by an integer length.

Finding the heavy values of a domain that nobody can list: a tree of prefixes, walked from the root, in one round.

A value of B bits is a row in one bucket of every level: its prefixes of b_1 < b_2 < ... = B bits. One count question
over these levels, under any frequency oracle that answers by looking (``explicit-histogram``; its levels share the
users), is the whole protocol. The search is post-processing of that one release: keep the prefixes whose count is
significant, look at their extensions, go on. Its privacy is the oracle's.

With n users and T levels every level has n / T users and standard error s = sqrt(T c n). A value with at least
(``deviations`` + 5) s rows is lost with chance under 3e-7 per level. Longer values
should be hashed to B bits first.

Source: Bassily, Nissim, Stemmer, Thakurta 2020, TreeHist; Stemmer 2021 (CentersProcedure, step 2) takes it for granted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any, final

import attrs
import numpy as np

from cloister.accounting.conversions import largest
from cloister.core.buckets import BundleArrays, Space, key
from cloister.core.domains import Domain
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.reproducible_math import few_bits, product, standard_normals
from cloister.core.roles import Counts
from cloister.core.types import Bools, Floats, Ids, Ints
from cloister.plugins.trees.directions import NORM, directions

SCALE = 2**24
"""Factor of a projection's normal coordinates."""

MAX_WIDTH = 2.0**38
"""Lattice steps: times ``SCALE`` it is an integer of 63 bits, and rows have norm 2^20."""


def collision(distance: float) -> float:
    """p1: the chance that one projection tells two points at this distance, in widths, not apart."""
    if distance <= 0:
        return 1.0
    t = 1 / distance
    meet = math.erf(t / math.sqrt(2)) - math.sqrt(2 / math.pi) * -math.expm1(-t * t / 2) / t
    return max(meet, 0.0)


def distance_of(chance: float) -> float:
    """Return the distance, in widths, at which ``collision`` is this chance in (0, 1), to one part in a million."""
    return few_bits(largest(lambda s: collision(s) >= chance), 24)


@final
@attrs.frozen
class PStable:
    """A family of hash functions. Args: radius (r), near (p, at r), far (q), projections (m). Lengths in any unit."""

    radius: float
    near: float
    far: float
    projections: int

    def __attrs_post_init__(self) -> None:
        if not self.radius > 0 or self.projections < 1 or not 0 < self.far < self.near < 1:
            raise InvalidInput("a hash family needs a radius > 0, at least one projection, and chances 0 < q < p < 1")

    @property
    def width(self) -> float:
        """The width w of a bucket."""
        return self.radius / distance_of(self.near ** (1 / self.projections))

    @property
    def c(self) -> float:
        """Points c r apart meet with probability q."""
        return distance_of(self.far ** (1 / self.projections)) * self.width / self.radius

    def sample(self, dimension: int, bits: int, seed: PublicRng) -> PStableHash:
        """One function (step 1), on lattice rows, to values of so many bits.

        Raises:
            InvalidInput: it tells no two rows apart.
        """
        g = seed.generator()
        slopes = np.rint(standard_normals(g, self.projections, dimension) * SCALE).astype(np.int64)
        if not self.width < MAX_WIDTH:
            raise InvalidInput(
                f"points of one hash value can be {self.width:.3g} apart, beyond any domain: take a smaller p"
            )
        width = max(1, round(self.width * SCALE))
        return PStableHash(slopes, g.integers(0, width, self.projections), width, bits, seed.child("mix"))


@final
@attrs.frozen(eq=False)
class PStableHash:
    """A sampled function. Args: slopes (m, d), shifts (m,), width, all times ``SCALE``; bits of a value; seed."""

    slopes: Ints
    shifts: Ints
    width: int
    bits: int
    seed: PublicRng

    def of(self, rows: Ints) -> Ints:
        """Hash lattice rows (n, d) to values (n,)."""
        steps = ((rows.astype(np.float64) @ self._columns).astype(np.int64) + self.shifts) // self.width
        mixed: Ids = np.zeros(len(rows), np.uint64)
        for j, step in enumerate(steps.T):
            mixed = self._keys[j].of_users(mixed ^ step.astype(np.uint64))
        return (mixed >> np.uint64(64 - self.bits)).astype(np.int64)

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {
            "slopes": arrays.add(self.slopes),
            "shifts": arrays.add(self.shifts),
            "width": str(self.width),
            "bits": self.bits,
            "keys": [key(rng) for rng in self._keys],
        }

    @cached_property
    def _columns(self) -> Floats:
        return self.slopes.T.astype(np.float64)

    @cached_property
    def _keys(self) -> list[PublicRng]:
        return [self.seed.child(j) for j in range(len(self.slopes))]


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


@final
@attrs.frozen
class Prefixes:
    """Prefix lengths of a search.

    Args:
        bits: of every level, increasing; the last is the length of a value, at most 62.
    """

    bits: tuple[int, ...]

    def __attrs_post_init__(self) -> None:
        increasing = all(a < b for a, b in pairwise(self.bits))
        if not self.bits or not increasing or not 1 <= self.bits[0] <= self.bits[-1] <= 62:
            raise InvalidInput(f"prefix lengths are increasing numbers from 1 to 62, not {self.bits}")

    @property
    def space(self) -> Space:
        return Space(tuple(2**b for b in self.bits))

    def of(self, values: Ints) -> Ints:
        """Return the prefixes (n, levels) of values (n,); -1 stays -1 at every level."""
        return np.stack([values >> (self.bits[-1] - b) for b in self.bits], axis=1)

    def heavy(self, counts: Counts, max_values: int, deviations: float = 3.0) -> tuple[Ints, Floats]:
        """Values whose every prefix is frequent, with their counts, the most frequent first.

        Args:
            counts: an answer to a question over ``space``.
            max_values: prefixes that are followed at each level, and values that come back.
            deviations: standard errors that a count must have.
        """
        ids, values, n_bits = np.zeros(1, np.int64), np.zeros(0), 0
        for level, b in enumerate(self.bits):
            ids = ((ids << (b - n_bits))[:, None] | np.arange(2 ** (b - n_bits))).ravel()
            values, n_bits = counts.at(ids, level), b
            significant = np.flatnonzero(values > deviations * counts.standard_error(ids, level))
            best = significant[np.argsort(-values[significant], kind="stable")[:max_values]]
            ids, values = ids[best], values[best]
        return ids, values

"""Locality-sensitive hashing by p-stable (here normal) projections: near points share a hash value, far ones seldom do.

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
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, final

import attrs
import numpy as np

from cloister.accounting.conversions import largest
from cloister.core.reproducible_math import few_bits, standard_normals
from cloister.plugin import BundleArrays, Floats, Ids, Ints, InvalidInput, PublicRng, hex_key

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
            "keys": [hex_key(rng) for rng in self._keys],
        }

    @cached_property
    def _columns(self) -> Floats:
        return self.slopes.T.astype(np.float64)

    @cached_property
    def _keys(self) -> list[PublicRng]:
        return [self.seed.child(j) for j in range(len(self.slopes))]

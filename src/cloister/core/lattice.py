"""Exact arithmetic on lattice points: norm bounds, and clipping to them.

A sensitivity that holds only up to rounding is not a sensitivity, and a distance from a floating-point matrix product
depends on the row's batch, so that one row could move another one's bucket (law 5).
"""

from __future__ import annotations

import math
from typing import final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.types import Bools, Floats, Ints

CAP = 2**31
"""Hard cap on the rows of a run. It only rules out overflow; more rows than the public number change nothing else."""

EXACT = 2.0**53
"""Bound below which every integer is a float64."""


@final
@attrs.frozen
class Bound:
    """Norms that one row's vector is clipped to, in lattice integers.

    Args:
        l2: largest Euclidean norm, at least 1.
        dimension: numbers per vector.
        l1: largest L1 norm, if smaller than the implied sqrt(dimension) * l2.
    """

    l2: int = attrs.field(validator=attrs.validators.ge(1))
    dimension: int = attrs.field(validator=attrs.validators.ge(1))
    l1: int = attrs.field(default=attrs.Factory(lambda self: self.implied, takes_self=True))

    @property
    def implied(self) -> int:
        """L1 norm that the L2 norm implies (Cauchy and Schwarz)."""
        return math.isqrt(self.dimension * self.l2**2)

    @property
    def bundled(self) -> dict[str, int]:
        """Description for devices that run no Python."""
        return {"l2": self.l2, "l1": self.l1, "dimension": self.dimension}

    def __attrs_post_init__(self) -> None:
        if self.l2**2 >= EXACT:
            raise InvalidInput(f"an L2 bound of {self.l2} lattice steps is too large: its square must be below 2^53")
        if not 1 <= self.l1 <= self.implied:
            raise InvalidInput(
                f"an L1 bound of {self.l1} does not fit an L2 bound of {self.l2} in dimension {self.dimension}: "
                f"give 1 .. {self.implied}"
            )


def squared_lengths(vectors: Ints) -> Floats:
    """Return squared lengths (n,) of vectors (n, d), each a function of its vector alone, on every machine.

    They are exact below 2^53, and rounded once below 2^62 (no lattice point is longer).
    """
    return _squares(vectors, _largest(vectors))


def shrink(vectors: Ints, bound: Bound) -> Ints:
    """Return vectors (n, d), those beyond a bound scaled onto it and truncated towards zero, each row by itself."""
    largest = _largest(vectors)
    if vectors.shape[1] * largest <= bound.l1:  # which is at most sqrt(d) l2, so that sqrt(d) largest <= l2 too
        return vectors
    squared = _squares(vectors, largest)  # exact below 2^53, and beyond any bound from there on
    beyond = squared > float(bound.l2) ** 2
    if beyond.any():
        vectors = _scaled(vectors, beyond, bound.l2 / np.sqrt(squared[beyond]))
    if bound.l1 < bound.implied:
        sums = np.abs(vectors).sum(axis=1)
        beyond = sums > bound.l1
        if beyond.any():
            vectors = _scaled(vectors, beyond, bound.l1 / sums[beyond])
    return vectors


def _largest(vectors: Ints) -> int:
    """Return the largest absolute value of a coordinate."""
    return max(int(vectors.max(initial=0)), -int(vectors.min(initial=0)))


def _squares(vectors: Ints, largest: int) -> Floats:
    """Return ``squares``, given the largest absolute value of a coordinate."""
    if vectors.shape[1] * largest**2 < 2**62:
        return np.asarray(np.vecdot(vectors, vectors), np.float64)
    wide = vectors.astype(np.float64)
    sums = np.asarray(np.einsum("ij,ij->i", wide, wide))
    large = (sums >= EXACT) & (sums < 2.0**62)
    if large.any():
        sums[large] = np.einsum("ij,ij->i", vectors[large], vectors[large])
    return sums


def _scaled(vectors: Ints, which: Bools, factor: Floats) -> Ints:
    out = vectors.copy()
    # the factor is too small by 2^-30, so that rounding in the product cannot cross an integer
    out[which] = np.trunc(vectors[which] * (factor * (1 - 2.0**-30))[:, None]).astype(np.int64)
    return out

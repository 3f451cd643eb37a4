"""Exact arithmetic on lattice points: norm bounds, and clipping to them.

Why exact: a sensitivity that holds only up to rounding is not a sensitivity, and a distance from a floating-point
matrix product depends on the batch a row came in, so that one row could move another one's bucket (law 5).
"""

from __future__ import annotations

import math
from typing import final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.types import Bools, Floats, Ints

CAP = 2**31
"""Most rows that one run may read. It only rules out overflow; more rows than the public number change nothing else."""

EXACT = 2.0**53
"""Below this every integer is a float64."""


@final
@attrs.frozen
class Bound:
    """Norms that one row's vector is clipped to, in lattice integers: an L2 norm, and an implied or smaller L1 norm.

    Args:
        l2: the largest Euclidean norm, an integer of at least 1.
        dimension: numbers per vector.
        l1: the largest L1 norm, if one smaller than the implied sqrt(dimension) * l2 is known.
    """

    l2: int = attrs.field(validator=attrs.validators.ge(1))
    dimension: int = attrs.field(validator=attrs.validators.ge(1))
    l1: int = attrs.field(default=attrs.Factory(lambda self: self.implied, takes_self=True))

    @property
    def implied(self) -> int:
        """The L1 norm that the L2 norm implies (Cauchy and Schwarz)."""
        return math.isqrt(self.dimension * self.l2**2)

    @property
    def bundled(self) -> dict[str, int]:
        """For devices that run no Python."""
        return {"l2": self.l2, "l1": self.l1, "dimension": self.dimension}

    def __attrs_post_init__(self) -> None:
        if self.l2**2 >= EXACT:
            raise InvalidInput(f"an L2 bound of {self.l2} lattice steps is too large: its square must be below 2^53")
        if not 1 <= self.l1 <= self.implied:
            raise InvalidInput(
                f"an L1 bound of {self.l1} does not fit an L2 bound of {self.l2} in dimension {self.dimension}: "
                f"give 1 .. {self.implied}"
            )


def squares(vectors: Ints) -> Floats:
    """Squared lengths of vectors (n, d): exact below 2^53, rounded once below 2^62 (no lattice point is longer): each a
    function of its vector alone, on every machine."""
    return _squares(vectors, _largest(vectors))


def shrink(vectors: Ints, bound: Bound) -> Ints:
    """Vectors (n, d), those beyond a bound scaled onto it and truncated towards zero: a function of each row alone.

    Sums of squares of integers are exact in float64 below 2^53, and from there on certainly beyond any bound. The scale
    is too small by 2^-30, so that rounding in the product cannot cross an integer.
    """
    largest = _largest(vectors)
    if vectors.shape[1] * largest <= bound.l1:  # which is at most sqrt(d) l2, so that sqrt(d) largest <= l2 too
        return vectors
    lengths = _squares(vectors, largest)
    beyond = lengths > float(bound.l2) ** 2
    if beyond.any():
        vectors = _scaled(vectors, beyond, bound.l2 / np.sqrt(lengths[beyond]))
    if bound.l1 < bound.implied:
        sums = np.abs(vectors).sum(axis=1)
        beyond = sums > bound.l1
        if beyond.any():
            vectors = _scaled(vectors, beyond, bound.l1 / sums[beyond])
    return vectors


def _largest(vectors: Ints) -> int:
    """The largest absolute value of a coordinate."""
    return max(int(vectors.max(initial=0)), -int(vectors.min(initial=0)))


def _squares(vectors: Ints, largest: int) -> Floats:
    """``squares``. Args: largest absolute value of a coordinate."""
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
    out[which] = np.trunc(vectors[which] * (factor * (1 - 2.0**-30))[:, None]).astype(np.int64)
    return out

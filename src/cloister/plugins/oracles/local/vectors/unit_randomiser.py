"""Randomisers of one unit vector: their protocol, a base for real-valued ones, and how a row becomes a unit vector.

A row in bucket b with the vector v, |v| <= l2, is lifted to the unit sphere of R^(d + 1):

    u = s(b) (x, sqrt(1 - |x|^2)),     x = v / l2,

with the public sign s(b) of her bucket. The last coordinate replaces Duchi's random rounding of the norm and adds no
noise; only the first d coordinates of the randomised vector are sent. A row in no bucket has v = 0, so that u =
+-(0, 1) adds zero to any sum, on average. Its sign is a public coin that belongs to no bucket, so that this is exact
even if a randomiser is symmetric only under u -> -u.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias

import attrs
import numpy as np

from cloister.plugin import AnyArray, Bools, BundleArrays, Floats, Ids, Ints, PublicRng
from cloister.plugins.oracles.local.question import Randomiser, WithoutReportLaws

STEP = 2.0**-11
"""Resolution of real answers, 16 bits each, for coordinates of variance 1: rounding adds STEP^2 / 12 = 2e-8 to that."""

ZERO = 2**15
"""The 16-bit number that stands for 0. Sent numbers are 1 .. 2^16 - 1: coordinates within 16."""

BLOCK = 2**15
"""Variates per batch, so that they stay in a core's cache."""


def blocks(users: int, size: int) -> Iterator[slice]:
    """Yield batches of users with ``size`` variates each."""
    step = max(1, BLOCK // size)
    return (slice(start, start + step) for start in range(0, users, step))


def sent(vectors: AnyArray) -> AnyArray:
    """Convert real columns (d, n) to answers (n, d), uint16."""
    steps = np.clip(np.rint(vectors * vectors.dtype.type(1 / STEP)), 1 - ZERO, ZERO - 1).astype(np.int32)
    return np.ascontiguousarray((steps + ZERO).astype(np.uint16).T)


def received(answers: AnyArray) -> Ints:
    """Convert answers (n, d) back to steps."""
    return answers.astype(np.int64) - ZERO


DrawWords: TypeAlias = Callable[[Ids, int], Ids]
"""Function from users (n,) and the number of an attempt, from 0, to secret words (n, size). Only rejection sampling
takes more than one attempt."""


class Unit(Randomiser, Protocol):
    """Local randomiser of a unit vector u of R^(d + 1). Public plain data, integers wherever a digest sees it.

    Laws: for any two inputs, the probabilities of an answer differ by a factor of at most e^eps, as computed, not only
    in real numbers. Answer i depends on vector i, user i and her words alone. ``scale * estimates`` has the mean u (its
    first d coordinates).
    """

    @property
    def secret_words(self) -> int:
        """Secret words per attempt, whatever the row is."""
        ...

    @property
    def scale(self) -> float:
        """Value of one unit of ``estimates``."""
        ...

    @property
    def moment(self) -> float:
        """Mean square E |z|^2 / (d + 1) of the coordinates of an estimate z, the same for every u."""
        ...

    @property
    def longest(self) -> float:
        """Largest length of a possible answer's estimate, in bounds: the most that a malicious user can add."""
        ...

    @property
    def usual(self) -> float:
        """Largest amount that she can add in a direction of her choice, on average over the numbers of users."""
        ...

    def randomise(self, units: Floats, users: Ids, words: DrawWords, seed: PublicRng) -> AnyArray:
        """Return answers (n, width) for the users' unit vectors (d + 1, n), one per column."""
        ...

    def bundled(self, seed: PublicRng, arrays: BundleArrays) -> dict[str, Any]:
        """Return parameters for non-Python clients, with the name of the "randomiser"."""
        ...

    def estimates(self, answers: AnyArray, users: Ids, seed: PublicRng) -> Ints:
        """Return integers (n, d) for answers (n, width)."""
        ...


@attrs.frozen
class OnSphere(WithoutReportLaws, ABC):
    """Base of randomisers that send the first d coordinates of vectors of length sqrt(D) of R^D, D = d + 1, rounded.

    Args:
        dimension: d.
    """

    dimension: int

    dtype = "u2"

    @property
    def size(self) -> int:
        """Dimension D."""
        return self.dimension + 1

    @property
    def width(self) -> int:
        return self.dimension

    @property
    def longest(self) -> float:
        return self._reach * self.scale

    @property
    def usual(self) -> float:
        return self.longest  # any vector of that length can be sent

    @property
    @abstractmethod
    def scale(self) -> float:
        """Value of a step, in bounds."""

    @property
    def _reach(self) -> float:
        """Largest length of an answer, in steps: rounding adds at most one to every coordinate."""
        return math.sqrt(self.size) / STEP + math.sqrt(self.dimension)

    def possible(self, answers: AnyArray) -> bool:
        return bool((answers > 0).all() and ((received(answers) ** 2).sum(axis=1) <= self._reach**2).all())

    def estimates(self, answers: AnyArray, users: Ids, seed: PublicRng) -> Ints:
        return received(answers)


def lifted(values: Ints, signs: Floats, l2: int, nowhere: Bools) -> Floats:
    """Return unit vectors (d + 1, n), one per column, for vectors (n, d), zero where ``nowhere`` (n,), and signs (n,).

    Vectors beyond the bound are scaled to it: the privacy of some randomisers needs |u| = 1. Squares are integers,
    exact in float64 up to 2^53: nothing depends on the batch.
    """
    wide = values.T.astype(np.float64, order="C")
    wide[:, nowhere] = 0
    squares = np.einsum("ij,ij->j", wide, wide)
    squared_lengths = np.maximum(squares, float(l2) ** 2)
    scale = signs / np.sqrt(squared_lengths)
    units = np.empty((len(wide) + 1, len(values)))
    np.multiply(wide, scale, out=units[:-1])
    np.multiply(scale, np.sqrt(squared_lengths - squares), out=units[-1])
    return units

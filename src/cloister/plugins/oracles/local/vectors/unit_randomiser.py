"""Randomisers of one unit vector: what they have in common, and how a row becomes a unit vector.

A row in bucket b with the vector v, |v| <= l2, is lifted to the unit sphere of R^(d + 1):

    u = s(b) (x, sqrt(1 - |x|^2)),     x = v / l2,

with the public sign s(b) of her bucket. The last coordinate replaces Duchi's random rounding of the norm, adds no
noise, and is forgotten: of what a randomiser makes, only the first d coordinates are sent. A row in no bucket has v =
0, so that u = +-(0, 1): its first d coordinates are zero, and so is what it adds to any sum, on average. Its sign is a
public coin that belongs to no bucket, so that this holds to the last digit also where a randomiser is symmetric only
under u -> -u.

Real vectors as small integers: what the real-valued randomisers share.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias

import attrs
import numpy as np

from cloister.core.buckets import BundleArrays
from cloister.core.randomness import PublicRng
from cloister.core.types import AnyArray, Bools, Floats, Ids, Ints
from cloister.plugins.oracles.local.question import Randomiser, Uncounted

STEP = 2.0**-11
"""Real answers are sent in these steps, 16 bits each, for coordinates of variance 1: rounding adds STEP^2 / 12 = 2e-8
to that."""

ZERO = 2**15
"""The 16-bit number that stands for 0. Sent numbers are 1 .. 2^16 - 1: coordinates within 16."""

BLOCK = 2**15
"""Variates that are made at once: they stay in a core's cache."""


def blocks(users: int, each: int) -> Iterator[slice]:
    """Users whose variates, so many each, are made at once."""
    step = max(1, BLOCK // each)
    return (slice(start, start + step) for start in range(0, users, step))


def sent(vectors: AnyArray) -> AnyArray:
    """Columns (d, n) of real numbers to answers (n, d), uint16."""
    steps = np.clip(np.rint(vectors * vectors.dtype.type(1 / STEP)), 1 - ZERO, ZERO - 1).astype(np.int32)
    return np.ascontiguousarray((steps + ZERO).astype(np.uint16).T)


def received(answers: AnyArray) -> Ints:
    """Answers (n, d) back to steps."""
    return answers.astype(np.int64) - ZERO


DrawWords: TypeAlias = Callable[[Ids, int], Ids]
"""Users (n,) and the number of a go, from 0, to their secret words (n, each) for that go. Most randomisers have but
one."""


class Unit(Randomiser, Protocol):
    """A local randomiser of a unit vector u of R^(d + 1). Public plain data, integers wherever a digest sees it.

    Laws: whatever two inputs are, the chances of an answer differ by a factor of at most e^eps, as computed, not only
    in real numbers. Answer i depends on vector i, user i and her words alone. ``scale * estimates`` has the mean u (its
    first d coordinates).
    """

    @property
    def each(self) -> int:
        """Secret words that one go of an answer takes, whatever the row is."""
        ...

    @property
    def scale(self) -> float:
        """Value of one of the integers of ``estimates``."""
        ...

    @property
    def moment(self) -> float:
        """E |z|^2 / (d + 1), the same for every u: the mean square of a coordinate of an estimate z, on average over
        them."""
        ...

    @property
    def longest(self) -> float:
        """The length of no possible answer's estimate is above this: the most that a liar adds, in bounds."""
        ...

    @property
    def usual(self) -> float:
        """The most that she adds in a direction of her choice, on average over the numbers of users."""
        ...

    def randomise(self, units: Floats, users: Ids, words: DrawWords, seed: PublicRng) -> AnyArray:
        """Unit vectors (d + 1, n), one per column, of so many users to answers (n, width)."""
        ...

    def bundled(self, seed: PublicRng, arrays: BundleArrays) -> dict[str, Any]:
        """For devices that run no Python, with the name of the "randomiser"."""
        ...

    def estimates(self, answers: AnyArray, users: Ids, seed: PublicRng) -> Ints:
        """Answers (n, width) to integers (n, d)."""
        ...


@attrs.frozen
class OnSphere(Uncounted, ABC):
    """Sends the first d coordinates of vectors of length sqrt(D) of R^D, D = d + 1, rounded: none is longer.

    Args:
        dimension: d.
    """

    dimension: int

    dtype = "u2"

    @property
    def size(self) -> int:
        """D."""
        return self.dimension + 1

    @property
    def width(self) -> int:
        return self.dimension

    @property
    def longest(self) -> float:
        return self._reach * self.scale

    @property
    def usual(self) -> float:
        """Any vector of that length can be sent."""
        return self.longest

    @property
    @abstractmethod
    def scale(self) -> float:
        """Value of a step, in bounds."""

    @property
    def _reach(self) -> float:
        """No answer is longer, in steps: rounding adds at most one to every coordinate."""
        return math.sqrt(self.size) / STEP + math.sqrt(self.dimension)

    def possible(self, answers: AnyArray) -> bool:
        return bool((answers > 0).all() and ((received(answers) ** 2).sum(axis=1) <= self._reach**2).all())

    def estimates(self, answers: AnyArray, users: Ids, seed: PublicRng) -> Ints:
        return received(answers)


def lifted(values: Ints, signs: Floats, l2: int, nowhere: Bools) -> Floats:
    """Vectors (n, d) and signs (n,) to unit vectors (d + 1, n), one per column; of rows that are nowhere (n,) the
    vector is zero.

    Vectors beyond the bound are scaled to it: the privacy of some randomisers needs |u| = 1, and it is made so here.
    Squares are integers, exact in float64 up to 2^53: nothing depends on the batch.
    """
    wide = values.T.astype(np.float64, order="C")
    wide[:, nowhere] = 0
    squares = np.einsum("ij,ij->j", wide, wide)
    whole = np.maximum(squares, float(l2) ** 2)
    scale = signs / np.sqrt(whole)
    units = np.empty((len(wide) + 1, len(values)))
    np.multiply(wide, scale, out=units[:-1])
    np.multiply(scale, np.sqrt(whole - squares), out=units[-1])
    return units

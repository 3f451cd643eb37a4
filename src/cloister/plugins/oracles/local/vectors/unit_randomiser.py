"""Randomisers of one unit vector: what they have in common, and how a row becomes a unit vector.

A row in bucket b with the vector v, |v| <= l2, is lifted to the unit sphere of R^(d + 1):

    u = s(b) (x, sqrt(1 - |x|^2)),     x = v / l2,

with the public sign s(b) of her bucket. The last coordinate replaces Duchi's random rounding of the norm, adds no
noise, and is forgotten: of what a randomiser makes, only the first d coordinates are sent. A row in no bucket has v =
0, so that u = +-(0, 1): its first d coordinates are zero, and so is what it adds to any sum, on average. Its sign is a
public coin that belongs to no bucket, so that this holds to the last digit also where a randomiser is symmetric only
under u -> -u.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from cloister.core.bundling import BundleArrays
from cloister.core.randomness import PublicRng
from cloister.core.types import AnyArray, Bools, Floats, Ids, Ints
from cloister.plugins.oracles.local.question import Randomiser

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
    def scale(self) -> float:
        """What one of the integers of ``estimates`` is worth."""
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

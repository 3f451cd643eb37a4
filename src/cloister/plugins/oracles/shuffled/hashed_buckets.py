"""Fewer buckets than a space has, by public hashes with signs: what users send a number for must be few.

A level of more buckets than ``buckets`` is laid over that many places: bucket v goes to place h(v), with sign s(v),
both public and pairwise independent (``oracles.local.hashing``). Asked for v, the table answers s(v) times what is in
h(v): the rows of v, and those of every other bucket w in its place, with a random sign: unbiased over the hashes, of
variance sum over w of n_w^2 / buckets (in a coordinate, their sums squared), beside the noise. A row is in one place
with one vector of the same norm: privacy does not depend on hashes.

One row of a count sketch (Charikar, Chen, Farach-Colton 2002), as in Ghazi, Golowich, Kumar, Pagh, Velingker 2021;
pairwise independence is enough, as appendix C of Chang et al. 2021 says; they take no signs, and 2 n / beta places.
"""

from __future__ import annotations

from typing import Any, final

import attrs
import numpy as np

from cloister.core.buckets import BucketedVectors, Space, integers
from cloister.core.randomness import PublicRng
from cloister.core.reproducible_math import ceil_log2
from cloister.core.roles import Table
from cloister.core.types import Floats, Ids, Ints
from cloister.noise.channel import UnpicklableTable
from cloister.plugins.oracles.local.hashing import Hashes

SMALL = 4
"""A level of up to so many times the chosen number of places keeps its own buckets: exact is worth that much."""

SPILL = 32
"""Other rows in a bucket's place need not be told apart better than one in so many of all rows (if all were in one
bucket)."""


def chosen(people: int, deviation: float) -> int:
    """Places that make collisions move a count by about its noise, or by 1 / SPILL of all rows, whichever takes fewer.

    If all rows are in one other bucket, they move it by people / sqrt(places).

    Args:
        people: public number of users.
        deviation: standard deviation of the noise, in rows.
    """
    by_noise = (people / max(deviation, 1e-300)) ** 2
    return 1 << max(6, ceil_log2(min(by_noise, SPILL**2)))


@final
@attrs.frozen
class Layout:
    """Places of a space's buckets. Args: space (as it was asked for), places (per level), seed (public)."""

    space: Space
    places: tuple[int, ...]
    seed: PublicRng

    @classmethod
    def of(cls, space: Space, buckets: int, keep: int, seed: PublicRng) -> Layout:
        """Levels of at most ``keep`` buckets as they are, others in ``buckets`` places."""
        return cls(space, tuple(size if size <= keep else buckets for size in space.sizes), seed)

    @property
    def hashed(self) -> tuple[bool, ...]:
        return tuple(places != size for places, size in zip(self.places, self.space.sizes, strict=True))

    def hashes(self, level: int) -> tuple[Hashes, Hashes]:
        """Hashes of bucket ids to places, and to signs, as user 0 has them: 1 is minus."""
        return Hashes(self.seed.child("place", level), self.places[level]), Hashes(self.seed.child("sign", level), 2)

    def bundled(self, level: int) -> dict[str, Any]:
        """For devices that run no Python: hashes are None where every bucket is its own place."""
        hashes = [hashes.bundled if self.hashed[level] else None for hashes in self.hashes(level)]
        (size,) = integers(self.space.sizes[level : level + 1])
        return {"size": size, "places": self.places[level], "place": hashes[0], "sign": hashes[1]}

    def place(self, ids: Ints, level: int) -> tuple[Ints, Ints]:
        """Places (n,) of bucket ids (n,), -1 for none, and their signs (n,)."""
        if not self.hashed[level]:
            return ids, np.ones(len(ids), np.int64)
        one: Ids = np.zeros(len(ids), np.uint64)
        asked = np.maximum(ids, 0)
        places, signs = self.hashes(level)
        where, sign = places.of(one, asked), 1 - 2 * signs.of(one, asked)
        return np.where(ids >= 0, where, -1), sign

    def placed(self, items: Ints | BucketedVectors) -> list[tuple[Ints, Ints]]:
        """For every level, in which place (n,) each row is, and its vector (n, dimension), 1 for a count."""
        buckets = items.buckets if isinstance(items, BucketedVectors) else items
        values = items.values if isinstance(items, BucketedVectors) else np.ones((len(buckets), 1), np.int64)
        found = [self.place(buckets[:, level], level) for level in range(self.space.levels)]
        return [(where, values * sign[:, None]) for where, sign in found]


@final
class Unfolded(UnpicklableTable):
    """A table of places, asked by buckets."""

    def __init__(self, table: Table, layout: Layout) -> None:
        self._table, self._layout = table, layout

    def at(self, ids: Ints, level: int = 0) -> Floats:
        where, sign = self._layout.place(ids, level)
        values = self._table.at(where, level)
        return values * sign if values.ndim == 1 else values * sign[:, None]

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        """Standard error of the noise; other rows in the same place come on top (see the module)."""
        return self._table.standard_error(self._layout.place(ids, level)[0], level)

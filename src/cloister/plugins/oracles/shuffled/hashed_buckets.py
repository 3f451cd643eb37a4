"""Count sketch: public signed hashes from a space's buckets to fewer places, since users send messages for each place.

A level of more buckets than ``buckets`` is hashed to that many places: bucket v goes to place h(v), with sign s(v),
both public and pairwise independent (``oracles.local.hashing``). The estimate of v is s(v) times the value of h(v): the
rows of v, and those of every other bucket w in its place with a random sign. It is unbiased over the hashes, with
variance sum over w of n_w^2 / buckets (in a coordinate, their sums squared) beside the noise. A row is in one place
with one vector of the same norm: privacy does not depend on hashes.

Source: one row of a count sketch (Charikar, Chen, Farach-Colton 2002), as in Ghazi, Golowich, Kumar, Pagh, Velingker
2021; pairwise independence is enough (Chang et al. 2021, appendix C, without signs and with 2 n / beta places).
"""

from __future__ import annotations

from typing import Any, final

import attrs
import numpy as np

from cloister.core.reproducible_math import ceil_log2
from cloister.plugin import BucketedVectors, Floats, Ids, Ints, PublicRng, Space, Table, UnpicklableTable, json_integers
from cloister.plugins.oracles.local.hashing import Hashes

SMALL = 4
"""A level of up to this many times the number of places is not hashed: exact buckets are worth that much."""

SPILL = 32
"""Collisions may move a count by one row in this many, if all rows are in one other bucket."""


def default_places(people: int, deviation: float) -> int:
    """Return the smaller number of places at which collisions move a count by its noise, or by 1 / SPILL of all rows.

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
    """Assignment of a space's buckets to places.

    Args:
        space: the buckets.
        places: number per level.
        seed: public.
    """

    space: Space
    places: tuple[int, ...]
    seed: PublicRng

    @classmethod
    def of(cls, space: Space, buckets: int, keep: int, seed: PublicRng) -> Layout:
        """Return a layout that hashes levels of more than ``keep`` buckets to ``buckets`` places."""
        return cls(space, tuple(size if size <= keep else buckets for size in space.sizes), seed)

    @property
    def hashed(self) -> tuple[bool, ...]:
        return tuple(places != size for places, size in zip(self.places, self.space.sizes, strict=True))

    def hashes(self, level: int) -> tuple[Hashes, Hashes]:
        """Return the hashes of bucket ids to places and to signs (1 is minus), to be used as user 0's."""
        return Hashes(self.seed.child("place", level), self.places[level]), Hashes(self.seed.child("sign", level), 2)

    def bundled(self, level: int) -> dict[str, Any]:
        """Return parameters for non-Python clients: hashes are None where every bucket is its own place."""
        hashes = [hashes.bundled if self.hashed[level] else None for hashes in self.hashes(level)]
        (size,) = json_integers(self.space.sizes[level : level + 1])
        return {"size": size, "places": self.places[level], "place": hashes[0], "sign": hashes[1]}

    def place(self, ids: Ints, level: int) -> tuple[Ints, Ints]:
        """Return the places (n,) of bucket ids (n,), -1 for none, and their signs (n,)."""
        if not self.hashed[level]:
            return ids, np.ones(len(ids), np.int64)
        one: Ids = np.zeros(len(ids), np.uint64)
        buckets = np.maximum(ids, 0)
        places, signs = self.hashes(level)
        place, sign = places.of(one, buckets), 1 - 2 * signs.of(one, buckets)
        return np.where(ids >= 0, place, -1), sign

    def placed(self, items: Ints | BucketedVectors) -> list[tuple[Ints, Ints]]:
        """Return, for every level, each row's place (n,) and its signed vector (n, dimension), of 1 for a count."""
        buckets = items.buckets if isinstance(items, BucketedVectors) else items
        values = items.values if isinstance(items, BucketedVectors) else np.ones((len(buckets), 1), np.int64)
        levels = [self.place(buckets[:, level], level) for level in range(self.space.levels)]
        return [(places, values * sign[:, None]) for places, sign in levels]


@final
class Unfolded(UnpicklableTable):
    """Table of places, looked up by bucket."""

    def __init__(self, table: Table, layout: Layout) -> None:
        self._table, self._layout = table, layout

    def at(self, ids: Ints, level: int = 0) -> Floats:
        places, sign = self._layout.place(ids, level)
        values = self._table.at(places, level)
        return values * sign if values.ndim == 1 else values * sign[:, None]

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        """Return the standard error of the noise alone, without that of other rows in the same place."""
        return self._table.standard_error(self._layout.place(ids, level)[0], level)

"""What a user works out from her row and from published values: hash values, intervals, regions, and the centre she created."""

from __future__ import annotations

from typing import final

import attrs
import numpy as np

from cloister.core.buckets import Space
from cloister.core.lattice import Bound
from cloister.core.types import Ints
from cloister.plugins.methods.weighted_centers.boxes import Intervals, inside
from cloister.plugins.methods.weighted_centers.heavy_hitters import Prefixes
from cloister.plugins.methods.weighted_centers.lsh import PStableHash


@final
@attrs.frozen(eq=False)
class HashValues:
    """Step 2: a row's bucket at every level is a prefix of its hash value. Args: hash, prefixes."""

    hash: PStableHash
    prefixes: Prefixes

    @property
    def space(self) -> Space:
        return self.prefixes.space

    def locate(self, rows: Ints) -> Ints:
        return self.prefixes.of(self.hash.of(rows))


@final
@attrs.frozen(eq=False)
class AxisIntervals:
    """Step 4: at level i, the pair of hash value and interval on axis i. Where users share levels, each is asked one axis: S^i.

    Args:
        hash, intervals: public.
    """

    hash: PStableHash
    intervals: Intervals

    @property
    def space(self) -> Space:
        return Space((self.intervals.number << self.hash.bits,) * len(self.intervals.basis))

    def locate(self, rows: Ints) -> Ints:
        return self.hash.of(rows)[:, None] * self.intervals.number + self.intervals.of_rows(rows)

    def ids(self, values: Ints) -> Ints:
        """The buckets (m, intervals) of some hash values (m,)."""
        return values[:, None] * self.intervals.number + np.arange(self.intervals.number)


def positions(values: Ints, found: Ints) -> Ints:
    """Where each of ``found`` (n,) stands in a list of values (m,) without repeats, or -1."""
    if not len(values):
        return np.full(len(found), -1)
    order = np.argsort(values)
    at = np.minimum(np.searchsorted(values[order], found), len(values) - 1)
    return np.where(values[order][at] == found, order[at], -1)


@final
@attrs.frozen(eq=False)
class Regions:
    """Step 7: rows whose hash value is the list's t-th and that are in its box are in region t.

    Args:
        hash, intervals: public.
        values: L (m,), the heavy hash values.
        chosen: (m, d) the middle interval of each one's box, on every axis.
        longest: of a list: the number of regions, whatever m is.
    """

    hash: PStableHash
    intervals: Intervals
    values: Ints
    chosen: Ints
    longest: int

    @property
    def space(self) -> Space:
        return Space((self.longest,))

    def locate(self, rows: Ints) -> Ints:
        at = positions(self.values, self.hash.of(rows))
        known = np.flatnonzero(at >= 0)
        boxed = inside(self.intervals.of_rows(rows[known]), self.chosen[at[known]])
        at[known[~boxed]] = -1
        return at[:, None]


@final
@attrs.frozen(eq=False)
class Centred:
    """Rows relative to the public middle of their region: what is added up in LDP-AVG.

    Why: noise is in proportion to the bound, and the bound must hold for what is sent. A row's norm can be a hundred times its region's
    radius, its distance from the region's middle cannot.

    Args:
        cells: the regions.
        middles: lattice points (m, d).
        bound: what vectors are clipped to: at most the half diagonal of a box.
    """

    cells: Regions
    middles: Ints
    bound: Bound

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        if not len(self.middles):
            return np.zeros_like(rows)
        moved: Ints = rows - self.middles[np.maximum(buckets[:, 0], 0)]
        moved[buckets[:, 0] < 0] = 0
        return moved


@final
@attrs.frozen(eq=False)
class Created:
    """Notation 4.1: a row creates the centre y_u if its hash value is u and it is within 5 c r of y_u.

    Args:
        hash: public.
        values: L (m,).
        places: y (m, d), lattice points.
        within: 5 c r, in lattice steps.
        longest: number of buckets.
    """

    hash: PStableHash
    values: Ints
    places: Ints
    within: int
    longest: int

    @property
    def space(self) -> Space:
        return Space((self.longest,))

    def locate(self, rows: Ints) -> Ints:
        return self.closest(rows)[0][:, None]

    def closest(self, rows: Ints) -> tuple[Ints, Ints]:
        """The created centre (n,) or -1, and its squared distance (n,)."""
        at = positions(self.values, self.hash.of(rows))
        squares = np.zeros(len(rows), np.int64)
        known = np.flatnonzero(at >= 0)
        squares[known] = squared(rows[known], self.places[at[known]])
        at[squares > self.within**2] = -1
        return at, squares


def squared(rows: Ints, centers: Ints) -> Ints:
    """Squared distances (n,) of lattice rows (n, d) from lattice points (n, d): integers below 2^43."""
    away = rows - centers
    return np.asarray(np.einsum("ij,ij->i", away, away), np.int64)

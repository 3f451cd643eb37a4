"""A user's buckets, from her row and from published values.

CentersProcedure: hash values, intervals, regions, the centre that she created. WeightedCenters: the one she belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, final

import attrs
import numpy as np

from cloister.plugin import Bools, Bound, BundleArrays, Counts, Ints, NearestCenter, Space, json_integers
from cloister.plugins.methods.weighted_centers.hashes import PStableHash
from cloister.plugins.methods.weighted_centers.intervals import Intervals, inside
from cloister.plugins.methods.weighted_centers.prefixes import Prefixes


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

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        sizes, bits = json_integers(self.space.sizes), self.prefixes.bits
        return {"kind": "hashes", "sizes": sizes, "hash": self.hash.bundled(arrays), "bits": bits}


@final
@attrs.frozen(eq=False)
class AxisIntervals:
    """Step 4: at level i, the pair of hash value and interval on axis i. Users who share levels answer one axis: S^i.

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

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {
            "kind": "intervals",
            "sizes": json_integers(self.space.sizes),
            "hash": self.hash.bundled(arrays),
            "intervals": self.intervals.bundled(arrays),
        }

    def fullest(self, counts: Counts, values: Ints) -> Ints:
        """Step 5: on every axis, the interval (m, d) that most rows of each hash value (m,) are in."""
        ids = values[:, None] * self.intervals.number + np.arange(self.intervals.number)
        axes = range(len(self.intervals.basis))
        return np.stack([counts.at(ids.ravel(), axis).reshape(ids.shape).argmax(axis=1) for axis in axes], axis=1)


def positions(values: Ints, queries: Ints) -> Ints:
    """Return the index of each query (n,) in a list of values (m,) without repeats, or -1."""
    if not len(values):
        return np.full(len(queries), -1)
    order = np.argsort(values)
    at = np.minimum(np.searchsorted(values[order], queries), len(values) - 1)
    return np.where(values[order][at] == queries, order[at], -1)


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
        listed = np.flatnonzero(at >= 0)
        boxed = inside(self.intervals.of_rows(rows[listed]), self.chosen[at[listed]])
        at[listed[~boxed]] = -1
        return at[:, None]

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {
            "kind": "regions",
            "sizes": json_integers(self.space.sizes),
            "hash": self.hash.bundled(arrays),
            "intervals": self.intervals.bundled(arrays),
            "values": arrays.add(self.values),
            "chosen": arrays.add(self.chosen),
        }


@final
@attrs.frozen(eq=False)
class Centred:
    """Rows relative to the public middle of their region: what is added up in LDP-AVG.

    Why: noise is in proportion to the bound, and the bound must hold for what is sent. A row's norm can be a hundred
    times its region's radius, its distance from the region's middle cannot.

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

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {"kind": "offsets", "centers": arrays.add(self.middles), **self.bound.bundled}


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

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {
            "kind": "created",
            "sizes": json_integers(self.space.sizes),
            "hash": self.hash.bundled(arrays),
            "values": arrays.add(self.values),
            "centers": arrays.add(self.places),
            "within": self.within,
        }

    def closest(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the created centre (n,) or -1, and its squared distance (n,)."""
        at = positions(self.values, self.hash.of(rows))
        squares = np.zeros(len(rows), np.int64)
        listed = np.flatnonzero(at >= 0)
        squares[listed] = squared(rows[listed], self.places[at[listed]])
        at[squares > self.within**2] = -1
        return at, squares


@final
@attrs.frozen(eq=False)
class Own:
    """A procedure that a group of users is in. Args: rank (of its radius, 0 the largest), start (in Y), created."""

    rank: int
    start: int
    created: Created


@final
@attrs.frozen(eq=False)
class Assigned:
    """Assignment a(i, x) of a user to a centre.

    With r_i the smallest radius for which the user created a centre: the nearest centre of a smaller radius if that is
    nearer than the one she created, else the latter. A user who created none, of whom the paper says nothing: the
    nearest of all.

    With no ``own`` procedures: the nearest of all (Kaplan and Stemmer 2018, figure 1 of the paper).

    Args:
        own: the procedures of the user's group (i is in I_m^r).
        places: Y (m, d), lattice points.
        ranks: (m,) of the radius that each was created for, 0 the largest.
        reach: of the domain.
        most: number of buckets, whatever m is.
    """

    own: tuple[Own, ...]
    places: Ints
    ranks: Ints
    reach: int
    most: int

    @property
    def space(self) -> Space:
        return Space((self.most,))

    def locate(self, rows: Ints) -> Ints:
        return self.chosen(rows)[:, None]

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return self.among(arrays, None)

    def among(self, arrays: BundleArrays, kept_ids: Ints | None) -> Mapping[str, Any]:
        """As ``bundled``. Args: kept_ids (indices of the centres in W; None: all)."""
        own = [
            {"rank": procedures.rank, "start": procedures.start, "created": procedures.created.bundled(arrays)}
            for procedures in self.own
        ]
        return {
            "kind": "assigned",
            "sizes": json_integers(self.space.sizes),
            "own": own,
            "centers": arrays.add(self.places),
            "ranks": arrays.add(self.ranks),
            "kept": None if kept_ids is None else arrays.add(kept_ids),
        }

    def chosen(self, rows: Ints) -> Ints:
        """Return the index in Y (n,) of each row's centre; -1 if Y is empty."""
        at = np.full(len(rows), -1)
        if not len(self.places):
            return at
        for rank in sorted({procedure.rank for procedure in self.own}, reverse=True):
            free = np.flatnonzero(at < 0)
            created, squares = self._created(rows[free], rank)
            has_created = created >= 0
            at[free[has_created]] = self._or_nearer(
                rows[free[has_created]], created[has_created], squares[has_created], rank
            )
        unassigned = np.flatnonzero(at < 0)
        at[unassigned] = self._nearest(rows[unassigned], -1)
        return at

    def _created(self, rows: Ints, rank: int) -> tuple[Ints, Ints]:
        """Return the nearest centre (n,) of this rank that each row created, or -1, and its squared distance (n,)."""
        at, smallest = np.full(len(rows), -1), np.full(len(rows), np.iinfo(np.int64).max)
        for procedure in self.own:
            if procedure.rank == rank:
                created, squares = procedure.created.closest(rows)
                closer = (created >= 0) & (squares < smallest)
                at[closer], smallest[closer] = created[closer] + procedure.start, squares[closer]
        return at, smallest

    def _or_nearer(self, rows: Ints, created: Ints, squares: Ints, rank: int) -> Ints:
        other = self._nearest(rows, rank)
        if not len(rows) or other[0] < 0:
            return created
        return np.where(squared(rows, self.places[other]) < squares, other, created)

    def _nearest(self, rows: Ints, above: int) -> Ints:
        """Return the nearest centre (n,) of a higher rank, ties to the lowest index; -1 without one."""
        which = self._above[above + 1]
        if which is None:
            return np.full(len(rows), -1)
        ids, cells = which
        return ids[cells.locate(rows)[:, 0]]

    @cached_property
    def _above(self) -> list[tuple[Ints, NearestCenter] | None]:
        ranks = range(-1, max((procedure.rank for procedure in self.own), default=-1) + 1)
        return [nearest_of(self.places, self.ranks > rank, self.reach) for rank in ranks]


@final
@attrs.frozen(eq=False)
class Reassigned:
    """b(i, x): a(i, x) if it is in W, else the nearest centre in W.

    Args:
        assigned: a.
        kept: (m,) which of Y are in W: at least one, or Y is empty.
    """

    assigned: Assigned
    kept: Bools

    @property
    def space(self) -> Space:
        return self.assigned.space

    def locate(self, rows: Ints) -> Ints:
        at = self.assigned.chosen(rows)
        if self._nearest is not None:
            ids, cells = self._nearest
            moved = np.flatnonzero(~self.kept[at])
            at[moved] = ids[cells.locate(rows[moved])[:, 0]]
        return at[:, None]

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return self.assigned.among(arrays, np.flatnonzero(self.kept))

    @cached_property
    def _nearest(self) -> tuple[Ints, NearestCenter] | None:
        return nearest_of(self.assigned.places, self.kept, self.assigned.reach)


def nearest_of(centers: Ints, which: Bools, reach: int) -> tuple[Ints, NearestCenter] | None:
    """Return the indices of the chosen centres and the bucketing by the nearest one; None without any."""
    ids = np.flatnonzero(which)
    return (ids, NearestCenter(centers[ids], reach)) if len(ids) else None


def squared(rows: Ints, centers: Ints) -> Ints:
    """Squared distances (n,) of lattice rows (n, d) from lattice points (n, d): integers below 2^43."""
    away = rows - centers
    return np.asarray(np.einsum("ij,ij->i", away, away), np.int64)

"""a(i, x) and b(i, x): which candidate centre a user belongs to, worked out by herself from public values (WeightedCenters, steps 2, 4)."""

from __future__ import annotations

from functools import cached_property
from typing import final

import attrs
import numpy as np

from cloister.core.buckets import Space
from cloister.core.nearest import NearestCenter
from cloister.core.types import Bools, Ints
from cloister.plugins.methods.weighted_centers.buckets import Created, squared


@final
@attrs.frozen(eq=False)
class Own:
    """A procedure that a group of users is in. Args: rank (of its radius, 0 the largest), start (of its centres in Y), created."""

    rank: int
    start: int
    created: Created


@final
@attrs.frozen(eq=False)
class Assigned:
    """a(i, x): with r_i the smallest radius for which the user created a centre, the nearest centre of a smaller radius if that is
    nearer than the one she created, else the latter. A user who created none, of whom the paper says nothing: the nearest of all.

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

    def chosen(self, rows: Ints) -> Ints:
        """The index in Y (n,) of each row's centre; -1 if there is none at all."""
        at = np.full(len(rows), -1)
        if not len(self.places):
            return at
        for rank in sorted({own.rank for own in self.own}, reverse=True):
            free = np.flatnonzero(at < 0)
            found, squares = self._created(rows[free], rank)
            mine = found >= 0
            at[free[mine]] = self._or_nearer(rows[free[mine]], found[mine], squares[mine], rank)
        rest = np.flatnonzero(at < 0)
        at[rest] = self._nearest(rows[rest], -1)
        return at

    def _created(self, rows: Ints, rank: int) -> tuple[Ints, Ints]:
        """The nearest centre of this rank that each row created (n,), or -1, and its squared distance (n,)."""
        at, least = np.full(len(rows), -1), np.full(len(rows), np.iinfo(np.int64).max)
        for own in self.own:
            if own.rank == rank:
                found, squares = own.created.closest(rows)
                closer = (found >= 0) & (squares < least)
                at[closer], least[closer] = found[closer] + own.start, squares[closer]
        return at, least

    def _or_nearer(self, rows: Ints, found: Ints, squares: Ints, rank: int) -> Ints:
        other = self._nearest(rows, rank)
        if not len(rows) or other[0] < 0:
            return found
        return np.where(squared(rows, self.places[other]) < squares, other, found)

    def _nearest(self, rows: Ints, above: int) -> Ints:
        """The nearest centre (n,) of a higher rank, ties to the lowest index; -1 if there is none."""
        which = self._above[above + 1]
        if which is None:
            return np.full(len(rows), -1)
        ids, cells = which
        return ids[cells.locate(rows)[:, 0]]

    @cached_property
    def _above(self) -> list[tuple[Ints, NearestCenter] | None]:
        ranks = range(-1, max((own.rank for own in self.own), default=-1) + 1)
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

    @cached_property
    def _nearest(self) -> tuple[Ints, NearestCenter] | None:
        return nearest_of(self.assigned.places, self.kept, self.assigned.reach)


def nearest_of(centers: Ints, which: Bools, reach: int) -> tuple[Ints, NearestCenter] | None:
    """The bucketing by nearest of some centres, and their indices; None if there are none."""
    ids = np.flatnonzero(which)
    return (ids, NearestCenter(centers[ids], reach)) if len(ids) else None

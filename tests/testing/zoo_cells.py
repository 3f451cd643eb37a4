"""Bucketings, vectors and trees that are not functions of a row alone, or not what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from cloister.core.buckets import Space
from cloister.core.budget import Budget
from cloister.core.clustering import Coreset, Problem
from cloister.core.lattice import Bound
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Rows
from cloister.core.randomness import PublicRng
from cloister.core.roles import Counts
from cloister.core.types import Ints
from cloister.plugins.trees.quadtree import ShiftedQuadtree
from tests.testing.caught import caught_by
from tests.testing.honest import Same, nearest


@attrs.frozen(eq=False)
class _Cells:
    centers: Ints
    reach: int

    @property
    def space(self) -> Space:
        return Space((len(self.centers),))

    def locate(self, rows: Ints) -> Ints:
        return NearestCenter(self.centers, self.reach).locate(rows)


def made(kind: type[_Cells]) -> Any:
    def make(domain: Any, rng: PublicRng) -> _Cells:
        return kind(nearest(domain, rng).centers, domain.max_norm)

    make.__name__ = kind.__name__
    return make


def cells(check: str) -> Callable[[type[_Cells]], type[_Cells]]:
    """For the class of broken cells: the check that must catch what makes them."""

    def noted(kind: type[_Cells]) -> type[_Cells]:
        caught_by(check, role="Bucketing")(made(kind))
        return kind

    return noted


def _products(rows: Any, places: Any) -> Any:
    """rows @ places.T, added up in an order that depends on the batch's size, as BLAS does (written out, so that this
    specimen is broken on every machine)."""
    columns = range(rows.shape[1]) if len(rows) == 1 else reversed(range(rows.shape[1]))
    total = np.zeros((len(rows), len(places)), rows.dtype)
    for j in columns:
        total += rows[:, j, None] * places[:, j]
    return total


@cells("a_row_falls_in_the_same_bucket_in_any_batch")
class Float64(_Cells):
    """A matrix product with centres that are not on the lattice."""

    def locate(self, rows: Ints) -> Ints:
        points, places = rows.astype(np.float64), self.centers / 3.0
        return ((places**2).sum(axis=1) - 2 * _products(points, places)).argmin(axis=1)[:, None]


@cells("a_row_falls_in_the_same_bucket_in_any_batch")
class MeanCentred(_Cells):
    """Bounds read off the data: cells are laid around the batch's own mean."""

    def locate(self, rows: Ints) -> Ints:
        return super().locate(rows - rows.mean(axis=0).astype(np.int64) if len(rows) else rows)


@cells("a_row_falls_in_the_same_bucket_in_any_batch")
class FittedOnce(_Cells):
    """Cells are laid around the mean of the rows that come first, and kept."""

    def locate(self, rows: Ints) -> Ints:
        if "_middle" not in vars(self) and len(rows):
            object.__setattr__(self, "_middle", rows.mean(axis=0).astype(np.int64))
        return super().locate(rows - vars(self).get("_middle", 0))


@cells("ids_are_those_of_the_nearest_centers")
class LastTie(_Cells):
    def locate(self, rows: Ints) -> Ints:
        turned = NearestCenter(self.centers[::-1].copy(), self.reach).locate(rows)
        return len(self.centers) - 1 - turned


@cells("ids_are_within_the_space")
class OneTooMany(_Cells):
    @property
    def space(self) -> Space:
        return Space((len(self.centers) - 1,))


@cells("its_digest_travels")
@attrs.frozen(eq=False)
class Addressed(_Cells):
    """A digest that depends on the process."""

    name: int = attrs.field(factory=lambda: hash("cells"))

    def __reduce__(self) -> Any:
        return type(self), (self.centers, self.reach)


@caught_by("vectors_are_bounded_and_of_their_row_alone", role="Vectors")
def long_vectors(domain: Any, rng: PublicRng) -> Rows:
    """The bound of one column for vectors of all of them."""
    return Rows(nearest(domain, rng), Bound(int(domain.sides.min()) // 2 + 1, domain.dimension))


@attrs.frozen(eq=False)
class _BatchVectors:
    cells: NearestCenter
    bound: Bound

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        return rows - rows.max(axis=0, initial=0)


@caught_by("vectors_are_bounded_and_of_their_row_alone", role="Vectors")
def batch_vectors(domain: Any, rng: PublicRng) -> _BatchVectors:
    """Vectors relative to the batch's own maximum."""
    return _BatchVectors(nearest(domain, rng), Bound(4 * domain.max_norm, domain.dimension))


class _EmptyTree(Same):
    def grow(self, counts: Counts) -> Coreset:
        grown = self.honest.grow(counts)
        return Coreset(grown.points[grown.weights > 0], grown.weights[grown.weights > 0], leaves=grown.leaves)


@caught_by("any_counts_grow_a_coreset")
class GrowsNothing(ShiftedQuadtree):
    """No point at all where no count is positive."""

    def open(self, problem: Problem, seed: PublicRng) -> Any:
        return _EmptyTree(super().open(problem, seed))


class _Unnested(Same):
    def locate(self, rows: Ints) -> Ints:
        ids: Ints = self.honest.locate(rows)
        ids[:, 1] ^= 1
        return ids


@caught_by("children_are_in_their_parents")
class ChildrenElsewhere(ShiftedQuadtree):
    """Says that it is nested, and is not."""

    def open(self, problem: Problem, seed: PublicRng) -> Any:
        return _Unnested(super().open(problem, seed))


@caught_by("nested_levels_are_halves", role="Bucketing")
def nested_elsewhere(domain: Any, rng: PublicRng) -> Any:
    """A bucketing whose space says that it is nested."""
    return ChildrenElsewhere().open(Problem(4, domain, 1000, Budget("pure", 1.0)), rng)

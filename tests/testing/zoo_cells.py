"""Bucketings, vectors and trees that are not functions of a row alone, or not what they say."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from cloister.core.buckets import Space
from cloister.core.clustering import Coreset, Problem
from cloister.core.lattice import Bound
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Rows
from cloister.core.randomness import PublicRng
from cloister.core.registry.components import component
from cloister.core.roles import Counts
from cloister.core.types import Ints
from tests.testing.honest import (
    Halving,
    HalvingTree,
    nearest,
)


@attrs.frozen(eq=False)
class _Cells:
    centers: Ints
    reach: int

    @property
    def space(self) -> Space:
        return Space((len(self.centers),))


def _products(rows: Any, places: Any) -> Any:
    """rows @ places.T, added up in an order that depends on the batch's size, as BLAS does (written out, so that this
    specimen is broken on every machine)."""
    columns = range(rows.shape[1]) if len(rows) == 1 else reversed(range(rows.shape[1]))
    total = np.zeros((len(rows), len(places)), rows.dtype)
    for j in columns:
        total += rows[:, j, None] * places[:, j]
    return total


class _Float64(_Cells):
    """A matrix product with centres that are not on the lattice."""

    def locate(self, rows: Ints) -> Ints:
        points, places = rows.astype(np.float64), self.centers / 3.0
        return ((places**2).sum(axis=1) - 2 * _products(points, places)).argmin(axis=1)[:, None]


class _MeanCentred(_Cells):
    """Bounds read off the data: cells are laid around the batch's own mean."""

    def locate(self, rows: Ints) -> Ints:
        middle = rows.mean(axis=0).astype(np.int64) if len(rows) else 0
        return NearestCenter(self.centers, self.reach).locate(rows - middle)


class _FittedOnce(_Cells):
    """Cells are laid around the mean of the rows that come first, and kept."""

    def locate(self, rows: Ints) -> Ints:
        if "_middle" not in vars(self) and len(rows):
            object.__setattr__(self, "_middle", rows.mean(axis=0).astype(np.int64))
        return NearestCenter(self.centers, self.reach).locate(rows - vars(self).get("_middle", 0))


class _LastTie(_Cells):
    def locate(self, rows: Ints) -> Ints:
        turned = NearestCenter(self.centers[::-1].copy(), self.reach).locate(rows)
        return len(self.centers) - 1 - turned


class _OneTooMany(_Cells):
    @property
    def space(self) -> Space:
        return Space((len(self.centers) - 1,))

    def locate(self, rows: Ints) -> Ints:
        return NearestCenter(self.centers, self.reach).locate(rows)


@attrs.frozen(eq=False)
class _Addressed(_Cells):
    """A digest that depends on the process."""

    name: int = attrs.field(factory=lambda: hash("cells"))

    def locate(self, rows: Ints) -> Ints:
        return NearestCenter(self.centers, self.reach).locate(rows)

    def __reduce__(self) -> Any:
        return type(self), (self.centers, self.reach)


def made(kind: type[_Cells]) -> Any:
    def make(domain: Any, rng: PublicRng) -> _Cells:
        return kind(nearest(domain, rng).centers, domain.max_norm)

    make.__name__ = kind.__name__.strip("_")
    return make


def long_vectors(domain: Any, rng: PublicRng) -> Rows:
    """The bound of one column for vectors of all of them."""
    return Rows(nearest(domain, rng), Bound(int(domain.sides.min()) // 2 + 1, domain.dimension))


@attrs.frozen(eq=False)
class _BatchVectors:
    cells: NearestCenter
    bound: Bound

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        return rows - rows.max(axis=0, initial=0)


def batch_vectors(domain: Any, rng: PublicRng) -> _BatchVectors:
    """Vectors relative to the batch's own maximum."""
    return _BatchVectors(nearest(domain, rng), Bound(4 * domain.max_norm, domain.dimension))


class _EmptyTree(HalvingTree):
    def grow(self, counts: Counts) -> Coreset:
        grown = super().grow(counts)
        return Coreset(grown.points[grown.weights > 0], grown.weights[grown.weights > 0], leaves=grown.leaves)


@component
class GrowsNothing(Halving):
    """No point at all where no count is positive."""

    def open(self, problem: Problem, seed: PublicRng) -> HalvingTree:
        tree = super().open(problem, seed)
        return _EmptyTree(tree.sides, tree.unit, tree.middle, tree.depth)


class _Unnested(HalvingTree):
    def locate(self, rows: Ints) -> Ints:
        ids = super().locate(rows)
        ids[:, 1] = 1 - ids[:, 1]
        return ids


@component
class ChildrenElsewhere(Halving):
    """Says that it is nested, and is not."""

    def open(self, problem: Problem, seed: PublicRng) -> HalvingTree:
        tree = super().open(problem, seed)
        return _Unnested(tree.sides, tree.unit, tree.middle, tree.depth)

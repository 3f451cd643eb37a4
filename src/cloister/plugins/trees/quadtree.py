"""The randomly shifted quadtree: cells are split one coordinate at a time, at a random place in their middle third.

Each level splits one coordinate: the one whose side would be longest if all splits were even, ties to the lowest (for a
cube: one after the other, as in the paper). An interval [a, b) of a coordinate is cut at a public random place of its
middle third, independent of all others; two cells that share the interval share the cut. The paper's expectations over
one cell's cuts need no more: a point meets one interval per level and coordinate. A cell's id is its path of bits, so
that its parent is id >> 1.

Growing: starting from all cells of the first level that is asked, a cell whose noisy count exceeds ``significance``
standard errors is split, down to the public depth, since every level is paid for. (The paper stops at 2 levels / eps
for Laplace noise of scale levels / eps: the same rule in other units.) Then the counts of cells and of their children
are made consistent (``Nodes``).

Levels: the paper's d log n are too few for its own stopping rule and too many for its noise. Here their number is fixed
and public, and the first ``top`` of them, including the root, are not asked; all cells of the next level are looked up.
The oracle pays for every level that is asked, including the root if top is 0.

Source: Cohen-Addad, Epasto, Lattanzi, Mirrokni, Munoz, Saulpic, Schwiegelshohn, Vassilvitskii 2022, section 2 and
Algorithm 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any, final

import attrs
import numpy as np

from cloister.core.reproducible_math import lengths
from cloister.plugin import (
    Bools,
    BundleArrays,
    Coreset,
    Counts,
    Errors,
    Floats,
    Ints,
    InvalidInput,
    Leaves,
    Problem,
    PublicRng,
    Space,
    TreeMetric,
    component,
    json_integers,
    option,
)
from cloister.plugins.trees.cut_table import CutTable
from cloister.plugins.trees.reduction import Reduction

DEEPEST = 60
"""Limit of levels: a cell's id is a 64-bit integer."""

FINE = 7
"""Fewest splits per coordinate at the default depth: below, small clusters off the middle share a cell (on shuttle)."""

SPLITS = 20
"""Limit of splits per coordinate: the lattice has no finer steps."""


@component
class ShiftedQuadtree:
    """Binary tree of boxes with random cuts, over the domain or a public random projection of it."""

    depth: int | None = option(
        default=None,
        low=1,
        high=DEEPEST,
        unit="levels",
        help="below the root; none: by the numbers of rows and columns",
    )
    top: int | None = option(
        default=None,
        low=0,
        high=20,
        unit="levels",
        help="not asked, from the root; none: the first level asked has about k / 2 cells",
    )
    dimensions: int | None = option(
        default=None, low=1, high=DEEPEST, help="dimensions of the random projection; none: 2 + log2(k) / 2"
    )
    significance: float = option(
        default=3.0, low=0.0, unit="standard errors", help="smallest count of a cell that is split"
    )

    def open(self, problem: Problem, seed: PublicRng) -> Quadtree:
        reduced = Reduction.random(problem.domain, self._dimensions(problem), seed.child("projection"))
        m = reduced.dimension
        depth = self._depth(problem, m)
        if depth > SPLITS * m:
            raise InvalidInput(f"depth is {depth}: {m} columns allow at most {SPLITS * m} levels")
        top = min(depth - 1, max(0, math.floor(math.log2(problem.k)) - 1) if self.top is None else self.top)
        return Quadtree(reduced, seed.child("cuts"), depth, top, self.significance)

    def _dimensions(self, problem: Problem) -> int:
        if self.dimensions is not None:
            return self.dimensions
        return 2 + math.ceil(math.log2(problem.k) / 2)

    def _depth(self, problem: Problem, m: int) -> int:
        if self.depth is not None:
            return self.depth
        return min(DEEPEST, max(FINE * m, math.ceil(math.log2(problem.rows)) + 2), SPLITS * m)


@final
@attrs.frozen(eq=False)
class Quadtree:
    """Opened tree.

    Args:
        reduced: subspace that the cells divide.
        seed: of the cuts.
        depth: levels below the root.
        top: levels, including the root, that are not asked.
        significance: smallest count of a cell that is split, in standard errors.
    """

    reduced: Reduction
    seed: PublicRng
    depth: int
    top: int
    significance: float

    nested = True

    @property
    def space(self) -> Space:
        return Space(tuple(2**level for level in range(self.top, self.depth + 1)), nested=True)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Coordinate that each level splits."""
        halved = self.reduced.sides.astype(np.float64)
        splits = list[int]()
        for _ in range(self.depth):
            splits.append(int(np.argmax(halved)))
            halved[splits[-1]] /= 2
        return tuple(splits)

    @cached_property
    def borders(self) -> tuple[tuple[Ints, ...], ...]:
        """Borders (2^s + 1,) of the intervals [a, b), in lattice steps, by coordinate and its number of splits s."""
        by_coordinate = list[tuple[Ints, ...]]()
        for j, side in enumerate(self.reduced.sides):
            levels = [np.array([-side, side + 1])]
            for s in range(self.order.count(j)):
                low, high = levels[-1][:-1], levels[-1][1:]
                places = self.seed.child(j, s).generator().integers(0, 2**32, len(low), np.uint64).astype(np.int64)
                third = (high - low) // 3
                cuts = low + third + ((places * (high - low - 2 * third + 1)) >> 32)
                cuts = np.maximum(cuts, np.minimum(low + 1, high))  # the right half of a single step is empty
                levels.append(np.concatenate([np.column_stack([low, cuts]).ravel(), high[-1:]]))
            by_coordinate.append(tuple(levels))
        return tuple(by_coordinate)

    @cached_property
    def paths(self) -> tuple[Ints, ...]:
        """Bits that each finest interval adds to the id of a cell, by coordinate."""
        by_coordinate = list[Ints]()
        for j in range(self.reduced.dimension):
            places = [self.depth - 1 - level for level, split in enumerate(self.order) if split == j][::-1]
            intervals = np.arange(2 ** len(places))
            path = np.zeros_like(intervals)
            for s, place in enumerate(places):
                path |= (intervals >> s & 1) << place
            by_coordinate.append(path)
        return tuple(by_coordinate)

    @cached_property
    def steps(self) -> tuple[CutTable, ...]:
        """Search for a row's finest interval, by coordinate."""
        return tuple(
            CutTable.of(borders[-1][1:-1], int(side))
            for borders, side in zip(self.borders, self.reduced.sides, strict=True)
        )

    def locate(self, rows: Ints) -> Ints:
        images = self.reduced.of(rows)
        finest = np.zeros(len(rows), np.int64)
        for j, path in enumerate(self.paths):
            if len(path) > 1:
                finest |= path[self.steps[j].below(images[:, j])]
        ids = np.empty((len(rows), self.depth + 1 - self.top), np.int64)
        for i, level in enumerate(range(self.top, self.depth + 1)):
            np.right_shift(finest, self.depth - level, out=ids[:, i])
        return ids

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        cuts = [arrays.add(borders[-1][1:-1]) for borders in self.borders]
        return {
            "kind": "quadtree",
            "sizes": json_integers(self.space.sizes),
            "subspace": self.reduced.bundled(arrays),
            "order": self.order,
            "cuts": cuts,
            "top": self.top,
        }

    def badly_cut(self, centers: Floats, margin: float) -> Bools:
        """Return True (m,) for centres within ``margin`` times its side of a cut of a cell that holds them.

        The paper's margin, alpha / (d log n), is the same rule with the proof's constants.
        """
        domain = self.reduced.domain
        at = self.reduced.of(domain.snap(centers))
        bad = np.zeros(len(at), bool)
        for j in range(self.reduced.dimension):
            for borders, finer in zip(self.borders[j][:-1], self.borders[j][1:], strict=True):
                interval = _interval(at[:, j], borders[1:-1]) if len(borders) > 2 else np.zeros(len(at), np.int64)
                cut, side = finer[2 * interval + 1], borders[interval + 1] - borders[interval]
                bad |= np.abs(at[:, j] - cut) < margin * side
        return bad

    def boxes(self, levels: Ints, ids: Ints) -> Floats:
        """Return the lower and upper corners (p, 2, m) of cells, in lattice steps."""
        corners = np.empty((len(ids), 2, self.reduced.dimension))
        for level in np.unique(levels):
            on_level = np.flatnonzero(levels == level)
            for j in range(self.reduced.dimension):
                places = [level - 1 - i for i, split in enumerate(self.order[:level]) if split == j]
                interval = np.zeros(len(on_level), np.int64)
                for place in places:
                    interval = 2 * interval + (ids[on_level] >> place & 1)
                borders = self.borders[j][len(places)]
                last = borders[interval + 1] - 1
                corners[on_level, 0, j], corners[on_level, 1, j] = np.minimum(borders[interval], last), last
        return corners

    def grow(self, counts: Counts) -> Coreset:
        """Return the leaves with their weights, and the tree metric, which includes the levels that are not asked."""
        nodes = Nodes.grown(counts, self.top, self.depth, self.significance)
        boxes = self.boxes(nodes.levels, nodes.ids)
        leaves = np.flatnonzero(~nodes.split)
        number = np.empty(len(boxes), np.int64)
        order = np.concatenate([leaves, np.flatnonzero(nodes.split)])
        number[order] = np.arange(len(order))
        parents = nodes.parents[order]
        metric = TreeMetric(
            np.where(parents < 0, -1, number[parents]),
            lengths(boxes[:, 1] - boxes[:, 0])[order] * self.reduced.domain.unit,
        )
        weights, errors = nodes.consistent()
        domain, boxes = self.reduced.domain, boxes[leaves]
        return Coreset(
            self.reduced.back((boxes[:, 0] + boxes[:, 1]) / 2),
            weights[leaves],
            metric,
            Leaves(nodes.levels[leaves] - self.top, nodes.ids[leaves]),
            Errors(errors[leaves], np.zeros(len(leaves))),
            cells=boxes * domain.unit + (domain.middle if self.reduced.matrix is None else 0.0),
            frame=self.reduced.frame,
        )


def _interval(x: Ints, cuts: Ints) -> Ints:
    """Count the sorted cuts that are at most x (n,)."""
    return np.asarray(np.searchsorted(cuts, x, side="right"), np.int64)


@final
@attrs.frozen(eq=False)
class Nodes:
    """Grown binary tree, the root first, level after level, siblings side by side.

    A cell is counted once itself and once by its two children. Generalised least squares makes the counts consistent:
    going up, a cell's own count and its children's sum are averaged by their inverse variances; going down, the
    difference between a cell and its children's sum is divided in proportion to the children's variances. On a tree
    that is the exact minimiser, in two passes. Each child is then clipped to between 0 and its parent's weight, which
    keeps the sum: a one-sided clamp of every cell would give empty cells a weight.

    Source: Cohen-Addad et al. 2022, Algorithm 2; Hay, Rastogi, Miklau, Suciu 2010 for the least squares.

    Args:
        levels, ids: of the cells (p,).
        parents: index of the parent (p,), -1 for the root.
        split: True (p,) for cells with children.
        counts, variances: as released (p,); infinite variance for cells that were not asked.
    """

    levels: Ints
    ids: Ints
    parents: Ints
    split: Bools
    counts: Floats
    variances: Floats

    @classmethod
    def grown(cls, counts: Counts, top: int, depth: int, significance: float) -> Nodes:
        """Grow the tree from counts, level by level: Algorithm 2."""
        levels = list[tuple[Ints, Ints, Ints, Bools, Floats, Floats]]()
        ids, parents, start = np.zeros(1, np.int64), np.full(1, -1), 0
        for level in range(depth + 1):
            if level < top:
                values, variances, split = np.zeros(len(ids)), np.full(len(ids), np.inf), np.ones(len(ids), bool)
            else:
                values, errors = counts.at(ids, level - top), counts.standard_error(ids, level - top)
                variances, split = errors**2, (values > significance * errors) & (level < depth)
            levels.append((np.full(len(ids), level), ids, parents, split, values, variances))
            inner = np.flatnonzero(split)
            if not len(inner):
                break
            parents = np.repeat(start + inner, 2)
            ids, start = (2 * ids[inner][:, None] + np.arange(2)).ravel(), start + len(ids)
        return cls(*(np.concatenate(parts) for parts in zip(*levels, strict=True)))

    def consistent(self) -> tuple[Floats, Floats]:
        """Return weights (p,), at least 0, that add up to the parents', and their standard errors before clipping."""
        best, variance = self.counts.copy(), np.maximum(self.variances, 1e-12)
        families = self._families()
        for inner, first in reversed(families):  # up: average own and children's counts by inverse variance
            below, spread = best[first] + best[first + 1], variance[first] + variance[first + 1]
            precision = np.where(np.isinf(self.variances[inner]), 0.0, 1 / np.maximum(self.variances[inner], 1e-12))
            best[inner] = (precision * best[inner] + below / spread) / (precision + 1 / spread)
            variance[inner] = 1 / (precision + 1 / spread)
        best[0] = max(best[0], 0.0)
        for inner, first in families:  # down: divide the difference to the children's sum
            lacking = best[inner] - best[first] - best[first + 1]
            part = variance[first] / (variance[first] + variance[first + 1])
            best[first] = np.clip(best[first] + part * lacking, 0.0, best[inner])
            best[first + 1] = best[inner] - best[first]
        return best, np.sqrt(variance)

    def _families(self) -> list[tuple[Ints, Ints]]:
        """Return, level by level, the cells that are split and the first child of each."""
        starts = np.searchsorted(self.levels, np.arange(self.levels[-1] + 2))
        families = list[tuple[Ints, Ints]]()
        for start, end in pairwise(starts.tolist()):
            inner = start + np.flatnonzero(self.split[start:end])
            families.append((inner, end + 2 * np.arange(len(inner))))
        return families

"""A binary tree of sign bits: level i holds the first i bits of a row's SimHash.

Bit i of a row x, relative to the domain's middle, is [<v_i, x> < 0] with a public random direction v_i. The id at level
i + 1 is twice the id at level i plus a bit, so the tree is nested. The root is not asked, since it holds every row.

Growing: the root branches; a node below it branches if its noisy count is at least ``branch`` * floor(n / k), n the
declared public number of rows. Leaves are the nodes without children.

Source: Chang, Ghazi, Kumar, Manurangsi 2021, section 5 and appendix D (T = ceil(log2 k) + 3, 1.5 floor(n / k));
Charikar 2002.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, final

import attrs
import numpy as np

from cloister.core.reproducible_math import lengths
from cloister.plugin import (
    BundleArrays,
    Coreset,
    Counts,
    Domain,
    Errors,
    Floats,
    Ints,
    Leaves,
    Problem,
    PublicRng,
    Space,
    component,
    json_integers,
    option,
)
from cloister.plugins.trees.directions import NORM, directions

BLOCK = 2**12
"""Rows per batch that are converted to floats."""


@component
class SimHash:
    """Binary tree of the signs of random projections."""

    depth: int | None = option(default=None, low=1, high=20, unit="levels", help="T; none: ceil(log2 k) + 3")
    branch: float = option(
        default=1.5, low=0.0, unit="floor(rows / k)", help="smallest noisy count of a node that branches"
    )

    def open(self, problem: Problem, seed: PublicRng) -> SimHashTree:
        depth = math.ceil(math.log2(problem.k)) + 3 if self.depth is None else self.depth
        around = directions(seed.child("directions"), depth, problem.domain.dimension, "unit")
        return SimHashTree(problem.domain, around, self.branch * (problem.rows // problem.k))


@final
@attrs.frozen(eq=False)
class SimHashTree:
    """Opened tree.

    Args:
        domain: of the rows.
        around: directions (T, d), one per level, integers.
        threshold: smallest count of a node that branches.
    """

    domain: Domain
    around: Ints
    threshold: float

    nested = True

    @property
    def space(self) -> Space:
        return Space(tuple(2 ** (level + 1) for level in range(len(self.around))), nested=True)

    def locate(self, rows: Ints) -> Ints:
        ids = np.empty((len(rows), len(self.around)), np.int64)
        around = self.around.T.astype(np.float64)
        for start in range(0, len(rows), BLOCK):
            products = rows[start : start + BLOCK].astype(np.float64) @ around  # exact: see ``directions``
            ids[start : start + BLOCK] = products < 0
        for level in range(1, len(self.around)):
            ids[:, level] += 2 * ids[:, level - 1]
        return ids

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {"kind": "signs", "sizes": json_integers(self.space.sizes), "around": arrays.add(self.around)}

    def grow(self, counts: Counts) -> Coreset:
        front, leaves = np.arange(2), list[tuple[int, Ints, Floats, Floats]]()
        for level in range(len(self.around)):
            values, errors = counts.at(front, level), counts.standard_error(front, level)
            inner = values >= self.threshold if level + 1 < len(self.around) else np.zeros(len(front), bool)
            leaves.append((level, front[~inner], values[~inner], errors[~inner]))
            front = (2 * front[inner][:, None] + np.arange(2)).ravel()
            if not len(front):
                break
        levels = np.concatenate([np.full(len(ids), level) for level, ids, _, _ in leaves])
        ids, values, errors = (np.concatenate(parts) for parts in list(zip(*leaves, strict=True))[1:])
        points = np.array([self._middle(int(level), int(i)) for level, i in zip(levels, ids, strict=True)])
        return Coreset(points, values, leaves=Leaves(levels, ids), errors=Errors(errors, np.zeros(len(ids))))

    def _middle(self, level: int, node: int) -> Floats:
        """Return a point (d,) half way to the border in the direction of a node, the sum of its signed directions."""
        bits = (node >> np.arange(level, -1, -1)) & 1
        toward = ((1 - 2 * bits)[:, None] * self.around[: level + 1]).sum(axis=0) / NORM
        toward *= self.domain.max_norm * self.domain.unit / 2 / max(float(lengths(toward[None])[0]), 1e-9)
        point: Floats = self.domain.truncate((self.domain.middle + toward)[None, :])[0]
        return point

"""A grown binary tree: which cells were split, what was counted, and weights that agree with each other.

Counts of a cell and of its two children say the same thing twice. They are brought together by generalised least
squares: going up, a cell's own count and its children's sum are weighed by their inverse variances; going down, what a
family's sum lacks is shared in proportion to the children's variances. On a tree that is the exact minimiser, in two
passes. Each child is then kept between 0 and its parent's weight, which takes nothing from the sum: a one-sided clamp
of every cell would give empty cells a weight.

Source: Cohen-Addad et al. 2022, Algorithm 2; Hay, Rastogi, Miklau, Suciu 2010 for the least squares.
"""

from __future__ import annotations

from itertools import pairwise
from typing import final

import attrs
import numpy as np

from cloister.core.roles import Counts
from cloister.core.types import Bools, Floats, Ints


@final
@attrs.frozen(eq=False)
class Nodes:
    """A grown tree, the root first, level after level, siblings side by side.

    Args:
        levels, ids: (p,) of the cells.
        parents: (p,) index of the parent, -1 for the root.
        split: (p,) whether it has children.
        counts, variances: (p,) as they were released; infinite variance for cells that were not asked.
    """

    levels: Ints
    ids: Ints
    parents: Ints
    split: Bools
    counts: Floats
    variances: Floats

    @classmethod
    def grown(cls, counts: Counts, top: int, depth: int, significance: float) -> Nodes:
        """Algorithm 2, a level's frontier at a time."""
        found = list[tuple[Ints, Ints, Ints, Bools, Floats, Floats]]()
        ids, parents, start = np.zeros(1, np.int64), np.full(1, -1), 0
        for level in range(depth + 1):
            if level < top:
                values, variances, split = np.zeros(len(ids)), np.full(len(ids), np.inf), np.ones(len(ids), bool)
            else:
                values, errors = counts.at(ids, level - top), counts.standard_error(ids, level - top)
                variances, split = errors**2, (values > significance * errors) & (level < depth)
            found.append((np.full(len(ids), level), ids, parents, split, values, variances))
            inner = np.flatnonzero(split)
            if not len(inner):
                break
            parents = np.repeat(start + inner, 2)
            ids, start = (2 * ids[inner][:, None] + np.arange(2)).ravel(), start + len(ids)
        return cls(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def consistent(self) -> tuple[Floats, Floats]:
        """Weights (p,) that add up from child to parent and are at least 0, and their standard errors before the
        clamp."""
        best, variance = self.counts.copy(), np.maximum(self.variances, 1e-12)
        families = self._families()
        for inner, left in reversed(families):  # up: a cell's own count and that of its children, by inverse variance
            below, spread = best[left] + best[left + 1], variance[left] + variance[left + 1]
            own = np.where(np.isinf(self.variances[inner]), 0.0, 1 / np.maximum(self.variances[inner], 1e-12))
            best[inner] = (own * best[inner] + below / spread) / (own + 1 / spread)
            variance[inner] = 1 / (own + 1 / spread)
        best[0] = max(best[0], 0.0)
        for inner, left in families:  # down: what a family's sum still lacks
            lacking = best[inner] - best[left] - best[left + 1]
            part = variance[left] / (variance[left] + variance[left + 1])
            best[left] = np.clip(best[left] + part * lacking, 0.0, best[inner])
            best[left + 1] = best[inner] - best[left]
        return best, np.sqrt(variance)

    def _families(self) -> list[tuple[Ints, Ints]]:
        """Level by level: the cells that are split, and the first child of each."""
        starts = np.searchsorted(self.levels, np.arange(self.levels[-1] + 2))
        found = list[tuple[Ints, Ints]]()
        for start, end in pairwise(starts.tolist()):
            inner = start + np.flatnonzero(self.split[start:end])
            found.append((inner, end + 2 * np.arange(len(inner))))
        return found

"""Cells around a released point, by direction and by distance: what lies one behind the other is told apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, final

import attrs
import numpy as np

from cloister.core.buckets import BundleArrays, Space, integers
from cloister.core.lattice import squares
from cloister.core.randomness import PublicRng
from cloister.core.types import Ints
from cloister.plugins.methods.clipping import ClippedOffsets
from cloister.plugins.trees.directions import directions
from cloister.plugins.trees.nearest_direction import NearestDirection

OUTER = (0.5, 1.0, 2.0, 4.0)
"""Squared outer radii of the shells, over the squared radius. The last one holds all rows beyond the third."""


@final
@attrs.frozen(eq=False)
class Shells:
    """A bucketing: the cell of a row's direction from the middle, and the shell of its distance.

    Distances are integers, and directions are compared exactly (``NearestDirection``: differences of lattice points
    have norms of at most 2^21). So a row's bucket is a function of that row alone.

    Args:
        cells: directions.
        middle: lattice point (1, d), released.
        radius: lattice steps, released.
    """

    cells: NearestDirection
    middle: Ints
    radius: int

    @classmethod
    def around(cls, middle: Ints, radius: int, number: int, seed: PublicRng) -> Self:
        """With at least this number of well-spread cells; in one column there are two."""
        d = middle.shape[1]
        return cls(NearestDirection(directions(seed, (number + 1) // 2 if d > 1 else 1, d)), middle, radius)

    @property
    def outer(self) -> Ints:
        """Squared outer radii (4,), in lattice steps."""
        return np.array([max(1, int(share * self.radius**2)) for share in OUTER], np.int64)

    @property
    def space(self) -> Space:
        return Space((self.cells.space.sizes[0] * len(OUTER),))

    def locate(self, rows: Ints) -> Ints:
        away = rows - self.middle
        lengths = squares(away)
        shells = np.searchsorted(self.outer[:-1], lengths.astype(np.int64))
        ids: Ints = self.cells.located(away, lengths) * len(OUTER) + shells[:, None]
        return ids

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {
            "kind": "shells",
            "sizes": integers(self.space.sizes),
            "around": arrays.add(self.cells.around),
            "middle": self.middle[0].tolist(),
            "edges": self.outer[:-1].tolist(),
        }

    def offsets(self) -> ClippedOffsets:
        """Rows relative to the middle, clipped to the outer radius of their shell: only in the last one does that clip,
        and sums of inner shells have less noise."""
        radii = np.ceil(np.sqrt(self.outer)).astype(np.int64)
        return ClippedOffsets(self, self.middle, np.tile(radii, self.cells.space.sizes[0]))

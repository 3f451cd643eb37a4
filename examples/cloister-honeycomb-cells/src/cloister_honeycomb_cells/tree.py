"""Hexagons of equal size over two columns, such as longitude and latitude: rounder than the squares of a grid.

Public: reads no row. A row is in the cell of the nearest middle, found on integers, so that it depends on that row
alone.
"""

import attrs
import numpy as np

from cloister.plugin import (
    Coreset,
    Counts,
    Domain,
    Errors,
    Ints,
    InvalidInput,
    Leaves,
    NearestCenter,
    Problem,
    PublicRng,
    Space,
    component,
    option,
)


@attrs.frozen(eq=False)
class HoneycombCellsTree:
    """The opened partition. Args: domain, near (whose centres are the middles), fewest (cells that are kept at
    least)."""

    domain: Domain
    near: NearestCenter
    fewest: int
    nested = False

    @property
    def space(self) -> Space:
        return self.near.space

    def locate(self, rows: Ints) -> Ints:
        return self.near.locate(rows)

    def grow(self, counts: Counts) -> Coreset:
        every = np.arange(self.space.sizes[0])
        values, errors = counts.at(every), counts.standard_error(every)
        significant = int((values > 3 * errors).sum())  # cells that more than noise put there; the heaviest are kept
        kept = np.argsort(-values, kind="stable")[: max(self.fewest, significant)]
        middles, leaves = self.domain.real(self.near.centers[kept]), Leaves(levels=np.zeros_like(kept), ids=kept)
        return Coreset(middles, values[kept], leaves=leaves, errors=Errors(errors[kept], sums=np.zeros(len(kept))))


@component
class HoneycombCells:
    """Hexagons of equal size, for two columns."""

    across: int = option(default=16, low=1, high=64, unit="cells", help="along the wider column")

    def open(self, problem: Problem, seed: PublicRng) -> HoneycombCellsTree:
        domain = problem.domain
        if domain.dimension != 2:
            raise InvalidInput(f"hexagons are for 2 columns, not {domain.dimension}: use 'grid' or 'spread-cells'")
        line, place = np.meshgrid(np.arange(-self.across, self.across + 1), np.arange(-self.across, self.across + 1))
        steps = np.stack([place + line % 2 / 2, line * 0.75**0.5], axis=-1).reshape(-1, 2)
        middles = np.rint(steps * (2 * domain.sides.max() / self.across)).astype(np.int64)
        inside = (domain.snap(domain.real(middles)) == middles).all(axis=1)
        return HoneycombCellsTree(domain, NearestCenter(middles[inside], domain.max_norm), problem.k)

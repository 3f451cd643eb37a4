"""Searching a few sorted integers for many, by a table: several times as fast as bisection, which guesses each turn."""

from __future__ import annotations

from typing import Self, final

import attrs
import numpy as np

from cloister.core.types import Ints

FINER = 6
"""Bits by which the table is finer than the cuts are many: most of its cells then hold no cut, and few hold two."""

LONGEST = 16
"""Bits of the longest table, which a core's second-level cache holds."""

CROWDED = 4
"""Cuts in one cell from which on bisection is as fast."""


@final
@attrs.frozen(eq=False)
class Steps:
    """How many of the cuts (m,), ascending, are at most x, for integers x of [-side, side].

    Args:
        cuts: followed by as many that no x reaches as a cell of the table holds.
        side: of the range.
        shift: bits of a cell of the table.
        first: by cell, how many cuts are at most its first integer.
        crowd: most cuts within a cell.
    """

    cuts: Ints
    side: int
    shift: int
    first: Ints
    crowd: int

    @classmethod
    def of(cls, cuts: Ints, side: int) -> Self:
        bits = min(LONGEST, len(cuts).bit_length() + FINER)
        shift = max(0, (2 * side).bit_length() - bits)
        cells = (np.arange((2 * side >> shift) + 2) << shift) - side
        first = np.searchsorted(cuts, cells, side="right")
        crowd = int(np.diff(first).max())
        never = np.full(crowd, np.iinfo(np.int64).max)
        return cls(np.concatenate([cuts, never]), side, shift, first, crowd)

    def below(self, x: Ints) -> Ints:
        """The numbers of cuts (n,) that are at most x (n,)."""
        if self.crowd > CROWDED:
            return np.asarray(np.searchsorted(self.cuts, x, side="right"), np.int64)
        found: Ints = self.first.take((x + self.side) >> self.shift, mode="clip")
        for _ in range(self.crowd):
            found = found + (x >= self.cuts[found])
        return found

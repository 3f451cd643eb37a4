"""Search for a row's interval between the cuts of a coordinate, by a table."""

from __future__ import annotations

from typing import Self, final

import attrs
import numpy as np

from cloister.plugin import Ints

FINER = 6
"""Bits by which the table's cells outnumber the cuts: most cells then hold no cut, and few hold two."""

LONGEST = 16
"""Bits of the longest table, to fit in a core's second-level cache."""

CROWDED = 4
"""Cuts in one cell above which bisection is as fast."""


@final
@attrs.frozen(eq=False)
class CutTable:
    """Table for counting the cuts (m,) that are at most x, an integer of [-side, side].

    Several times as fast as bisection, whose branches cannot be predicted.

    Args:
        cuts: ascending, followed by ``crowd`` values that no x reaches.
        side: of the range.
        shift: bits of a cell of the table.
        first: number of cuts that are at most the first integer of each cell.
        crowd: largest number of cuts within a cell.
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
        """Count the cuts (n,) that are at most x (n,)."""
        if self.crowd > CROWDED:
            return np.asarray(np.searchsorted(self.cuts, x, side="right"), np.int64)
        count: Ints = self.first.take((x + self.side) >> self.shift, mode="clip")
        for _ in range(self.crowd):
            count = count + (x >= self.cuts[count])
        return count

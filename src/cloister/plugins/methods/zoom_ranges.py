"""Ranges of columns' rows, read out of noisy counts of its range's 16ths, of their 16ths, and so on.

An edge is found from the outside: the first bin that holds more than noise does, then the first such 16th of it, until
noise hides them. Bins that say nothing alone are looked at in pairs, fours and eights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import attrs
import numpy as np

from cloister.plugin import BundleArrays, Counts, Floats, Ints, Space, json_integers
from cloister.plugins.methods.zoom_tails import FAN, FAN_BITS, Promise, Tail, total_variance

BITS = 4 * FAN_BITS
CODES = 2**BITS
"""A column's range in the smallest steps that bins may have."""

CERTAIN = 4.75
"""Standard errors above which a count is of rows: Gaussian noise alone looks so once in a million bins."""

CERTAIN_PURE = 9.28
"""The same of Laplace noise, whose tail is exp(-sqrt(2) t) / 2: at 4.75 standard errors noise alone looked so once in
1,700 bins, and unknown ranges ended at it in one run of 25."""


@final
@attrs.frozen
class Columns:
    """A row is in one bin of every column that is counted, on every level of it: that many times ``depth`` levels.

    Args: sides, the largest lattice coordinate of each column, powers of two, or 0, where nothing of it is counted;
        depth, levels of a column: 16, 256, 4,096 ... bins.
    """

    sides: tuple[int, ...]
    depth: int

    @property
    def counted(self) -> tuple[int, ...]:
        """Positions of the columns that are counted."""
        return tuple(j for j, side in enumerate(self.sides) if side)

    @property
    def space(self) -> Space:
        return Space(tuple(FAN ** (level + 1) for level in range(self.depth)) * len(self.counted))

    def locate(self, rows: Ints) -> Ints:
        ids = np.empty((len(self.counted), self.depth, len(rows)), np.int64)
        for column, j in enumerate(self.counted):
            side = self.sides[j]
            finer = (2 * side).bit_length() - 1 - BITS
            moved = rows[:, j] + side
            codes = np.clip(moved >> finer if finer >= 0 else moved << -finer, 0, CODES - 1)
            for level in range(self.depth):
                np.right_shift(codes, BITS - FAN_BITS * (level + 1), out=ids[column, level])
        return ids.reshape(self.space.levels, len(rows)).T

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {"kind": "columns", "sizes": json_integers(self.space.sizes), "sides": self.sides, "depth": self.depth}


def interval(
    counts: Counts,
    column: int,
    errors: Sequence[float],
    promise: Promise | None = None,
    other_columns: tuple[int, ...] = (),
    certain: float = CERTAIN,
) -> tuple[int, int] | None:
    """Beginning and end of a column's rows, from 0 to ``CODES``; None if its counts are no more than noise.

    Args: column, among those that are counted; errors, the standard error of each level's counts; promise, what may be
    left outside (None: whatever noise hides); others, the other columns, which count the same rows; certain, standard
    errors above which a count is of rows (``CERTAIN``, ``CERTAIN_PURE``).
    """
    bins, depth = np.arange(FAN), len(errors)
    total = float(np.mean([counts.at(bins, j * depth).sum() for j in other_columns])) if other_columns else 0.0
    root = Tail(0.0, 0.0, 0.0, total, total_variance(1 + len(other_columns), errors[0] ** 2))
    low, high = (_descended(counts, column, errors, last, promise, root, certain) for last in (False, True))
    return None if low is None or high is None else (low, CODES - high)


def _descended(
    counts: Counts,
    column: int,
    errors: Sequence[float],
    last: bool,
    promise: Promise | None,
    tail: Tail,
    certain: float,
) -> int | None:
    """How far the outermost bin with rows, or the first that may not be passed, is from this end of the range."""
    bins, distance = np.arange(FAN), None
    for level, error in enumerate(errors):
        values = counts.at(bins, column * len(errors) + level)
        values = values[::-1] if last else values
        edge = _edge(values, error * certain)
        tails = tail.edges(values, error**2)
        sure = FAN - 1 if promise is None else promise.passed(tails, error**2)
        if edge is None:
            return 0 if level == 0 and sure < FAN - 1 else distance
        first, width = edge
        step, nearest = CODES // FAN ** (level + 1), min(first, sure)
        outermost = int(bins[FAN - 1 - nearest] if last else bins[nearest])
        distance = (FAN ** (level + 1) - 1 - outermost if last else outermost) * step
        if width > 1 or sure < first:
            break
        bins, tail = outermost * FAN + np.arange(FAN), tails[first]
    return distance


def _edge(values: Floats, threshold: float) -> tuple[int, int] | None:
    """Return the first bin above ``threshold`` rows and the width of its window in bins; None without one.

    Wider windows count where they lie before all narrower ones: thin rows in front of a dense bin.
    """
    edge: tuple[int, int] | None = None
    for width in (1, 2, 4, 8, 16):
        outer = values[: FAN if edge is None else edge[0] // width * width]
        sums = outer.reshape(-1, width).sum(axis=1)
        hits = np.flatnonzero(sums > threshold * np.sqrt(width))
        if len(hits):
            edge = int(hits[0]) * width, width
    return edge

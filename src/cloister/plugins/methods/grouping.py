"""Frame in which rows of more columns than a clustering's are counted by their nearest released centre."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import attrs
import numpy as np

from cloister.core.frames import Reframed, cube
from cloister.plugin import Box, Domain, Floats, NearestCenter, Session


@final
@attrs.frozen(eq=False)
class Frame:
    """Frame that rows are counted in.

    Args:
        ends: (D, 2) of the ranges that are divided into bins.
        units: (D,) of the lattice.
    """

    ends: Floats
    units: Floats

    @classmethod
    def of(cls, domain: Domain, details: Mapping[str, Any], first: int) -> Frame:
        """Return the frame of a run with these details for its first columns, and the bounds for all others."""
        half = domain.half_widths if isinstance(domain, Box) else np.full(domain.dimension, domain.diameter / 2)
        ends, units = np.column_stack([domain.middle - half, domain.middle + half]), half.copy()
        ends[:first] = details.get("intervals", ends[:first])
        units[:first] = details.get("units", half[:first].max())
        return cls(ends, units)

    @property
    def lattice(self) -> Reframed:
        return Reframed.of(self.ends, self.units)

    @property
    def sides(self) -> tuple[int, ...]:
        """The largest lattice coordinate of each column within its range."""
        whole, half = cube(len(self.units)).sides, self.ends[:, 1] / 2 - self.ends[:, 0] / 2
        return tuple(max(1, round(float(s * part))) for s, part in zip(whole, half / self.units, strict=True))

    def near(self, centers: Floats, k: int, session: Session[Any]) -> NearestCenter:
        """Return k groups for these centres (at most k, d).

        Always k, so that the shape of a question does not depend on answers: missing centres are copies of the last
        one, and a row goes to the lowest index.
        """
        rows, d = np.tile(self.ends.mean(axis=1), (k, 1)), centers.shape[1]
        rows[:, :d] = centers[np.minimum(np.arange(k), len(centers) - 1)]
        return NearestCenter(session.agreed(self.lattice.snap(rows)[:, :d]), cube(len(self.units)).max_norm)

    def edges(self, column: int, bins: int) -> list[float]:
        """Return the ends (bins + 1) of the equal parts of a column's range."""
        low, high = map(float, self.ends[column])
        return [low + (high - low) * part / bins for part in range(bins + 1)]

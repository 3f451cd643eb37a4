"""Parallel coordinates of the released centres, as numbers: a line per centre over the columns, each column from its
public lower to its public upper bound. ``cloister.plotting.figures`` draws them."""

from __future__ import annotations

from typing import Any, final

import attrs
import numpy as np

from cloister.core.domains import Ball, Box
from cloister.core.errors import InvalidInput
from cloister.core.types import Floats, Ints
from cloister.plotting.data import Heading, checked, domain_of
from cloister.run.result import Result

MOST_COLUMNS = 30
"""Most columns drawn; of more, those whose centres differ most."""


@final
@attrs.frozen(eq=False)
class Parallel:
    """A line per centre over the columns.

    Args:
        heading: the text above.
        columns: names of the columns drawn, in the result's order.
        low, high: (c,) bounds of these columns.
        heights: (k, c) of the centres, 0 at the lower bound and 1 at the upper.
        weights: (k,) released rows per centre, not negative, or None.
        all_columns: number of columns in the result.
    """

    heading: Heading
    columns: tuple[str, ...]
    low: Floats
    high: Floats
    heights: Floats
    weights: Floats | None
    all_columns: int

    @classmethod
    def of(cls, result: Result, most: int = MOST_COLUMNS) -> Parallel:
        """The lines of a result's centres. Raises: InvalidInput: it has one column. Damaged: it cannot be drawn."""
        d = len(result.columns)
        if d < 2:
            raise InvalidInput("there is one column only: a line needs two. Draw the map instead")
        low, high = extent(domain_of(result))
        heights = placed(checked(result.centers, (None, d), "centres"), low, high)
        weights = result.weights
        if weights is not None:
            weights = np.maximum(checked(weights, (len(heights),), "weights"), 0.0)
        drawn = differing(heights, most)
        heading = Heading.of(result, "Centres over the columns")
        names = tuple(result.columns[j] for j in drawn)
        return cls(heading, names, low[drawn], high[drawn], heights[:, drawn], weights, d)

    def as_dict(self) -> dict[str, Any]:
        """The picture's numbers as plain data."""
        return {
            "picture": "parallel coordinates", "title": self.heading.title, "columns": list(self.columns),
            "columns in the result": self.all_columns, "centers": len(self.heights),
        }  # fmt: skip

    def text(self) -> str:
        """The picture in one line, for people."""
        shown = len(self.columns)
        which = f"the {shown} of {self.all_columns:,} columns" if shown < self.all_columns else f"{shown} columns"
        differ = " in which they differ most" if shown < self.all_columns else ""
        return f"{len(self.heights)} centres over {which}{differ}"


def extent(domain: Box | Ball) -> tuple[Floats, Floats]:
    """Lower and upper ends (d,) of a domain in each column."""
    if isinstance(domain, Box):
        return np.array(domain.lower, np.float64), np.array(domain.upper, np.float64)
    middle = np.array(domain.center, np.float64)
    return middle - domain.radius, middle + domain.radius


def placed(points: Floats, low: Floats, high: Floats) -> Floats:
    """Positions (k, d) of points between the bounds, within [0, 1]."""
    return np.asarray(np.clip((points - low) / (high - low), 0.0, 1.0), np.float64)


def differing(heights: Floats, most: int) -> Ints:
    """The columns in which positions (k, d) are spread most, at most so many, in their order; the first among
    equals."""
    return np.sort(np.argsort(-np.ptp(heights, axis=0), kind="stable")[:most])

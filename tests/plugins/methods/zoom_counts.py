"""What zoom's question is answered with: exact counts of a table's bins, and fresh noise on them, over and over."""

from __future__ import annotations

from typing import Any

import numpy as np

from cloister.accounting import Total
from cloister.accounting.total import problem_of
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import registry
from cloister.core.types import Floats
from cloister.plugins.methods.zoom import Zoom, lattice_of
from cloister.plugins.methods.zoom_ranges import Columns

N = 40_000


class Noisy:
    """Fresh noise on exact counts."""

    def __init__(self, exact: list[Floats], error: float, g: Any) -> None:
        self._exact, self._error, self._g = exact, error, g
        self._seen: dict[tuple[int, int], Floats] = {}

    def at(self, ids: Any, level: int = 0) -> Floats:
        key = level, int(ids[0])
        if key not in self._seen:  # ids are the parts of one bin
            self._seen[key] = np.rint(self._exact[level][ids] + self._error * self._g.standard_normal(len(ids)))
        return self._seen[key]

    def standard_error(self, ids: Any, level: int = 0) -> Floats:
        return np.full(len(ids), self._error)


def zoom_of(method: str, epsilon: float, per_user: int | None, domain: Box) -> tuple[Zoom[Any], Problem]:
    """Zoom around a method, and the problem that a run has."""
    composed = compose(registry(), "Method", "zoom", {"method": method}, {})
    return composed.value, problem_of(composed, Total(epsilon, 1e-6, rows_per_user=per_user), 3, domain, N)


def exact_counts(columns: Columns, domain: Box, rows: Floats) -> list[Floats]:
    """Counts of every level of every column."""
    ids = columns.locate(lattice_of(domain).snap(rows))
    return [
        np.bincount(some, minlength=size).astype(float) for some, size in zip(ids.T, columns.space.sizes, strict=True)
    ]

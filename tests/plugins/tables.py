"""Released tables that tests make up: values as given, or counts of ids without noise."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from cloister.core.clustering import Coreset, Errors
from cloister.core.types import Floats, Ints


@attrs.frozen
class Table:
    """Args: values (of each bucket), errors (standard errors: one, or of each bucket). A list has an entry a level."""

    digest_tag = "tests.plugins.tables.Table"

    values: Any
    errors: Any = 0.0

    def at(self, ids: Ints, level: int = 0) -> Floats:
        values = self.values[level] if isinstance(self.values, list) else self.values
        return np.asarray(values[ids], np.float64)

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        errors = np.asarray(self.errors[level] if isinstance(self.errors, list) else self.errors, np.float64)
        return errors[ids] if errors.ndim else np.full(len(ids), float(errors))


@attrs.frozen
class Counted:
    """Counts of rows whose ids (n, levels) these are, which say how many were looked at."""

    ids: Ints
    error: float = 0.0
    looked: list[int] = attrs.field(factory=list)

    def at(self, ids: Ints, level: int = 0) -> Floats:
        self.looked.append(len(ids))
        known, counts = np.unique(np.append(self.ids[:, level], -1), return_counts=True)
        places = np.minimum(np.searchsorted(known, ids), len(known) - 1)
        return np.where(known[places] == ids, counts[places], 0).astype(np.float64)

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), self.error)


def coreset(points: Floats, weights: Any = 1.0, error: Any = 0.0, sums: Any = 0.0, **given: Any) -> Coreset:
    """Points with these weights, and standard errors of the weights and of their sums: each one number, or one a
    point."""
    cluster_errors = (np.broadcast_to(some, len(points)).astype(np.float64) for some in (weights, error, sums))
    weights, error, sums = cluster_errors
    return Coreset(points, weights, errors=Errors(error, sums), **given)

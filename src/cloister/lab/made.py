"""Generated tables with known groups."""

from __future__ import annotations

import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.types import AnyArray, Floats, Ints
from cloister.lab.separated import in_proportion, separated
from cloister.lab.tables import NamedTable, refuse_huge

NOISE = 0.08
"""Standard deviation of the rows of a moon around it, whose radius is 1."""


def blobs(
    rows: int,
    columns: int,
    k: int,
    *,
    separation: float = 0.21,
    unequal: bool = False,
    outliers: int = 0,
    seed: int = 0,
) -> NamedTable:
    """Gaussian groups, each at the same separation from its nearest neighbour, in [-1, 1].

    Args:
        rows: of all groups together.
        columns, k: at least 2.
        separation: Qiu and Joe's index in (-1, 1): 0.01 is close, 0.21 separated, 0.34 well separated.
        unequal: sizes as 1 : 2 : ... : k, not all the same.
        outliers: so many rows more, uniform within four standard deviations of each column's mean.
        seed: the same arguments give the same table on one machine.

    Raises: InvalidInput: no such groups can be made.
    """
    if rows < k or outliers < 0:
        raise InvalidInput(f"{rows} rows in {k} groups and {outliers} outliers cannot be made: take more rows")
    refuse_huge(rows + outliers, columns)
    rng = np.random.default_rng(seed)
    mixture = separated(k, columns, separation, rng)
    sizes = in_proportion(rows, k) if unequal else np.bincount(np.arange(rows) % k)
    inside = mixture.sample(sizes, rng)
    away = inside.mean(axis=0) + 4 * inside.std(axis=0) * rng.uniform(-1, 1, (outliers, columns))
    labels = np.concatenate([np.repeat(np.arange(k), sizes), np.full(outliers, -1)])
    order = rng.permutation(len(labels))
    whole = scaled(np.concatenate([inside, away]))
    return NamedTable.of(whole[order], [(-1.0, 1.0)] * columns, labels[order])


def moons(rows: int, *, seed: int = 0) -> NamedTable:
    """Two half circles that reach into one another, in the plane: groups that no centres can tell apart.

    Raises: InvalidInput: fewer than 2 rows.
    """
    if rows < 2:
        raise InvalidInput(f"two moons need at least 2 rows, not {rows}")
    refuse_huge(rows, 2)
    rng = np.random.default_rng(seed)
    labels: Ints = rng.permutation(np.arange(rows) % 2)
    angles = rng.uniform(0, np.pi, rows)
    first = np.column_stack([np.cos(angles), np.sin(angles)])
    second = np.column_stack([1 - np.cos(angles), 0.5 - np.sin(angles)])
    whole = np.where(labels[:, None] == 0, first, second) + NOISE * rng.standard_normal((rows, 2))
    bounds = [(-1.5, 2.5), (-1.0, 1.5)]
    low, high = np.array(bounds).T
    return NamedTable.of(np.clip(whole, low, high), bounds, labels)


def scaled(rows: AnyArray) -> Floats:
    """Every column min-max scaled to [-1, 1], a constant column to 0.

    Minimum and maximum are read off the rows: for generated rows and benchmarks only, never in a private run (law 1).
    """
    x = rows.astype(np.float64)
    low, high = x.min(axis=0), x.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    found: Floats = np.where(high > low, 2 * ((x - low) / span) - 1, 0.0)
    return found

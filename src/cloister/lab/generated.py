"""Generated tables with known groups."""

from __future__ import annotations

import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.types import AnyArray, Floats, Ints
from cloister.lab.separated import in_proportion, separated
from cloister.lab.tables import NamedTable, refuse_huge

NOISE = 0.08
"""Standard deviation of the rows around a moon of radius 1."""


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
    """Draw Gaussian groups in [-1, 1], each at the same separation from its nearest neighbour.

    Args:
        rows: number of rows in all groups.
        columns: number of columns, at least 2.
        k: number of groups, at least 2.
        separation: Qiu and Joe's index in (-1, 1): 0.01 is close, 0.21 separated, 0.34 well separated.
        unequal: sizes 1 : 2 : ... : k instead of equal ones.
        outliers: number of further rows, uniform within four standard deviations of each column's mean.
        seed: the same arguments give the same table on one machine.

    Raises: InvalidInput: there are fewer rows than groups, or too many cells.
    """
    if rows < k or outliers < 0:
        raise InvalidInput(
            f"{rows} rows and {outliers} outliers cannot make {k} groups: give at least {k} rows, 0 outliers"
        )
    refuse_huge(rows + outliers, columns)
    rng = np.random.default_rng(seed)
    mixture = separated(k, columns, separation, rng)
    sizes = in_proportion(rows, k) if unequal else np.bincount(np.arange(rows) % k)
    inside = mixture.sample(sizes, rng)
    away = inside.mean(axis=0) + 4 * inside.std(axis=0) * rng.uniform(-1, 1, (outliers, columns))
    labels = np.concatenate([np.repeat(np.arange(k), sizes), np.full(outliers, -1)])
    order = rng.permutation(len(labels))
    table = scaled(np.concatenate([inside, away]))
    return NamedTable.of(table[order], [(-1.0, 1.0)] * columns, labels[order])


def moons(rows: int, *, seed: int = 0) -> NamedTable:
    """Draw two interleaving half circles in the plane: groups that no centres separate.

    Raises: InvalidInput: fewer than 2 rows.
    """
    if rows < 2:
        raise InvalidInput(f"two moons need at least 2 rows, and {rows} is given")
    refuse_huge(rows, 2)
    rng = np.random.default_rng(seed)
    labels: Ints = rng.permutation(np.arange(rows) % 2)
    angles = rng.uniform(0, np.pi, rows)
    first = np.column_stack([np.cos(angles), np.sin(angles)])
    second = np.column_stack([1 - np.cos(angles), 0.5 - np.sin(angles)])
    points = np.where(labels[:, None] == 0, first, second) + NOISE * rng.standard_normal((rows, 2))
    bounds = [(-1.5, 2.5), (-1.0, 1.5)]
    low, high = np.array(bounds).T
    return NamedTable.of(np.clip(points, low, high), bounds, labels)


def scaled(rows: AnyArray) -> Floats:
    """Min-max scale every column to [-1, 1], a constant one to 0.

    Minimum and maximum are read off the rows: for generated rows and benchmarks only, never in a private run (law 1).
    """
    x = rows.astype(np.float64)
    low, high = x.min(axis=0), x.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    return np.asarray(np.where(high > low, 2 * ((x - low) / span) - 1, 0.0), np.float64)

"""Generated tables with known groups; one is a hospital's, invented: patients in columns of very different widths."""

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
    table = scaled(np.concatenate([inside, away]))
    return NamedTable.of(table[order], [(-1.0, 1.0)] * columns, labels[order])


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
    points = np.where(labels[:, None] == 0, first, second) + NOISE * rng.standard_normal((rows, 2))
    bounds = [(-1.5, 2.5), (-1.0, 1.5)]
    low, high = np.array(bounds).T
    return NamedTable.of(np.clip(points, low, high), bounds, labels)


def scaled(rows: AnyArray) -> Floats:
    """Every column min-max scaled to [-1, 1], a constant column to 0.

    Minimum and maximum are read off the rows: for generated rows and benchmarks only, never in a private run (law 1).
    """
    x = rows.astype(np.float64)
    low, high = x.min(axis=0), x.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    found: Floats = np.where(high > low, 2 * ((x - low) / span) - 1, 0.0)
    return found


BOUNDS: dict[str, tuple[float, float]] = {
    "age": (0, 120),
    "systolic": (50, 250),
    "heart_rate": (20, 220),
    "creatinine": (0, 20),
    "stay": (0, 365),
    "weight": (0, 300),
    "temperature": (30, 45),
    "glucose": (0, 1000),
}
"""Public facts of such columns."""

WARDS = np.array(["medical", "surgical", "children"])
"""Public facts of the ward: the values that it can have."""

DAYS = 365

SHARES = 0.28, 0.2, 0.1, 0.12, 0.14, 0.1, 0.06

MIDDLES = np.array(
    [
        [35, 118, 72, 0.9, 2, 72, 36.8, 95],
        [68, 150, 80, 1.3, 6, 85, 36.9, 140],
        [72, 105, 110, 3.5, 14, 74, 38.4, 170],
        [8, 100, 100, 0.5, 2, 28, 37.2, 92],
        [58, 135, 85, 1.1, 4, 128, 36.8, 260],
        [82, 128, 70, 1.6, 21, 60, 36.6, 120],
        [45, 125, 95, 7.5, 9, 80, 37.0, 130],
    ]
)

SPREADS = np.array(
    [
        [9, 10, 8, 0.15, 1, 11, 0.25, 10],
        [8, 12, 9, 0.3, 2, 12, 0.3, 22],
        [9, 11, 11, 0.8, 4, 13, 0.5, 35],
        [3, 8, 10, 0.1, 1, 8, 0.4, 9],
        [9, 11, 9, 0.25, 1.5, 13, 0.3, 45],
        [5, 12, 8, 0.4, 5, 9, 0.3, 18],
        [10, 12, 10, 1.2, 3, 13, 0.35, 22],
    ]
)


def patients(n: int = 20_000, seed: int = 0) -> tuple[Floats, Ints]:
    """Rows (n, 8), none of them negative, and the group (n,) that each is from."""
    g = np.random.default_rng(seed)
    groups = g.choice(len(SHARES), n, p=SHARES)
    return np.maximum(MIDDLES[groups] + SPREADS[groups] * g.normal(size=(n, 8)), 0.0), groups


def hospital(n: int, seed: int) -> NamedTable:
    """The patients with an id, the day of their visit, their ward and whether they came as an emergency.

    The numbers are rounded as a hospital writes them down, and within their bounds.

    Raises: InvalidInput: no such table can be made.
    """
    if n < 1:
        raise InvalidInput(f"a table needs at least 1 row, not {n}")
    refuse_huge(n, len(BOUNDS))
    rows, groups = patients(n, seed)
    g = np.random.default_rng((seed, 1))
    numbers = {
        name: np.clip(np.round(column, 1), *bounds)
        for (name, bounds), column in zip(BOUNDS.items(), rows.T, strict=True)
    }
    visits = np.datetime64("2025-01-01") + g.integers(0, DAYS, n)
    columns: dict[str, AnyArray] = {
        "mrn": np.char.add("P", np.char.zfill(g.permutation(n).astype(str), 7)),
        "visit": visits.astype(str),
        "ward": WARDS[_wards(groups, g)],
        "emergency": g.random(n) < EMERGENCIES[groups],
        **numbers,
    }
    return NamedTable(columns, BOUNDS, groups)


EMERGENCIES = np.array([0.1, 0.3, 0.9, 0.5, 0.2, 0.4, 0.3])
"""The share of each group that comes as an emergency."""


def _wards(groups: Ints, g: np.random.Generator) -> Ints:
    """Each group is mostly on a ward of its own kind; children are nowhere else."""
    usual, on_usual = np.array([1, 0, 0, 2, 1, 0, 0])[groups], g.random(len(groups)) < 0.9
    return np.where(on_usual | (groups == 3), usual, 1 - usual)

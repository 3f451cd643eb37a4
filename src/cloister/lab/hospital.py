"""Invented patients of a hospital, in columns of very different widths."""

from __future__ import annotations

import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.types import AnyArray, Floats, Ints
from cloister.lab.tables import NamedTable, refuse_huge

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
"""Public bounds by column."""

WARDS = np.array(["medical", "surgical", "children"])
"""Public values of the ward."""

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


EMERGENCIES = np.array([0.1, 0.3, 0.9, 0.5, 0.2, 0.4, 0.3])
"""Share of emergencies per group."""


def patients(n: int = 20_000, seed: int = 0) -> tuple[Floats, Ints]:
    """Draw non-negative rows (n, 8), and return them with their groups (n,)."""
    g = np.random.default_rng(seed)
    groups = g.choice(len(SHARES), n, p=SHARES)
    return np.maximum(MIDDLES[groups] + SPREADS[groups] * g.normal(size=(n, 8)), 0.0), groups


def hospital(n: int, seed: int) -> NamedTable:
    """Draw patients with an id, the day of their visit, their ward, and whether they came as an emergency.

    Numbers are rounded to one decimal and within their bounds.

    Raises: InvalidInput: n is less than 1, or too large.
    """
    if n < 1:
        raise InvalidInput(f"a table needs at least 1 row, and {n} is given")
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


def _wards(groups: Ints, g: np.random.Generator) -> Ints:
    """Draw wards: nine in ten rows are on their group's usual ward, and all children on theirs."""
    usual, on_usual = np.array([1, 0, 0, 2, 1, 0, 0])[groups], g.random(len(groups)) < 0.9
    return np.where(on_usual | (groups == 3), usual, 1 - usual)

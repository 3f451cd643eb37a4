"""Rows that arithmetic goes wrong with, where it goes wrong."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cloister.core.types import AnyArray, Floats, Ints

LARGEST = sys.float_info.max

ANYWHERE = (
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    2.3e-308,
    -1e-200,
    1e-100,
    1.0,
    -1.0,
    1e15,
    -1e100,
    1.7e308,
    -1.7e308,
    LARGEST,
    -LARGEST,
    2.0**64,
    -(2.0**64),
    2.0**-64,
    2.0**52 + 0.5,
    0.1,
)
"""Zeros, what is next to them, what is next to infinity, and ends of grades."""

UNUSABLE = (np.nan, np.inf, -np.inf)


def hostile(
    seed: int,
    n: int,
    lower: AnyArray | Sequence[float],
    upper: AnyArray | Sequence[float],
    unit: float | AnyArray,
    points: Ints | None = None,
) -> Floats:
    """Rows (n, d): numbers in the bounds (d,), multiples of half a lattice step, bounds and what is next to them,
    numbers of ``ANYWHERE``; lattice points (m, d) and middles of two of them; duplicates; and a few rows that cannot be
    used.
    """
    g, low, high = np.random.default_rng(seed), np.asarray(lower, np.float64), np.asarray(upper, np.float64)
    d, middle = len(low), low / 2 + high / 2
    inside = g.uniform(low, high, (n, d))
    steps = np.rint((g.uniform(low, high, (n, d)) - middle) / unit * 2) / 2 * unit + middle
    ends = np.stack(
        [
            low,
            high,
            np.nextafter(low, -np.inf),
            np.nextafter(low, np.inf),
            np.nextafter(high, -np.inf),
            np.nextafter(high, np.inf),
            middle,
        ]
    )
    edges = ends[g.integers(0, len(ends), (n, d)), np.arange(d)]
    odd = np.array(ANYWHERE)[g.integers(0, len(ANYWHERE), (n, d))]
    kind = np.where(g.random((n, 1)) < 0.6, g.integers(0, 3, (n, 1)), g.choice(4, (n, d), p=[0.3, 0.3, 0.25, 0.15]))
    rows: Floats = np.choose(kind, [inside, steps, edges, odd])
    if points is not None:
        pairs = points[g.integers(0, len(points), (n, 2))].sum(axis=1) / 2 * unit + middle
        rows = np.where(g.random((n, 1)) < 0.3, pairs, rows)
    rows = np.where(g.random((n, 1)) < 0.1, rows[g.integers(0, n, n)], rows)
    bad = g.random((n, d)) < 0.02 / d
    rows[bad] = np.array(UNUSABLE)[g.integers(0, 3, bad.sum())]
    return rows


def as_table(rows: Floats, seed: int = 0) -> Any:
    """An Arrow table of rows (n, d); half of the NaN are NULL."""
    null = np.isnan(rows) & (np.random.default_rng(seed).random(rows.shape) < 0.5)
    return pa.table({f"x{j}": pa.array(rows[:, j], mask=null[:, j]) for j in range(rows.shape[1])})

"""Generated mixtures on which predicted errors are fitted, and small tables on which they are judged (predicted.py)."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from cloister.lab.papers.sets import DataSet, scale

APART: Final = 66
"""How many mixtures are of round groups."""

NUMBER, FEW = 114, 40
"""How many mixtures there are, and how many small tables."""


def mixture(number: int) -> DataSet:
    """Round groups, near and far apart (the first ``APART``), or ones that run into each other, as real rows do."""
    return apart(number) if number < APART else together(number)


def apart(number: int) -> DataSet:
    """A mixture of 150 to 50,000 rows, 2 to 60 columns, 2
    to 40 groups, near and far apart, of equal and of unequal sizes."""
    rng = np.random.default_rng(7)
    for _ in range(number + 1):
        n, d = int(rng.choice([150, 400, 1500, 5000, 20000, 50000])), int(rng.choice([2, 3, 4, 6, 10, 16, 30, 60]))
        k, width, evenness = (
            int(rng.choice([2, 3, 5, 8, 12, 20, 40])),
            rng.choice([0.15, 0.3, 0.6]),
            rng.choice([1.5, 10]),
        )
    k = 3 if n < 40 * k else k
    rng = np.random.default_rng(1000 + number)
    centers = rng.uniform(-0.75, 0.75, (k, d))
    apart = np.sqrt(((centers[:, None] - centers) ** 2).sum(axis=2) + np.eye(k) * 99).min(axis=1)
    of = rng.choice(k, n, p=rng.dirichlet(evenness * np.ones(k)))
    widths = width * np.median(apart) / math.sqrt(d) * rng.uniform(0.6, 1.4, k)
    return DataSet(f"calibration-{number}", scale(centers[of] + widths[of, None] * rng.normal(size=(n, d))), k)


def together(number: int) -> DataSet:
    """A mixture of 150 to 20,000 rows, 2 to 64 columns, 2 to 20 groups that overlap, in 2 to 64 directions, seen
    through noise; in half of the sets half of the columns are skewed."""
    rng = np.random.default_rng(50_000 - APART + number)
    n, d = int(rng.choice([150, 400, 1000, 2500, 6000, 20000])), int(rng.choice([2, 3, 4, 6, 8, 13, 20, 30, 64]))
    k = int(rng.choice([2, 3, 5, 8, 12, 20]))
    k = 3 if n < 40 * k else k
    width, rank = rng.choice([0.4, 0.7, 1.1]), min(d, int(rng.choice([2, 5, 12, 64])))
    centers = rng.uniform(-0.75, 0.75, (k, rank))
    nearest = np.sqrt(((centers[:, None] - centers) ** 2).sum(axis=2) + np.eye(k) * 99).min(axis=1)
    of = rng.choice(k, n, p=rng.dirichlet(rng.choice([2, 10]) * np.ones(k)))
    widths = width * np.median(nearest) / math.sqrt(rank) * rng.uniform(0.6, 1.4, k)
    rows = centers[of] + widths[of, None] * rng.normal(size=(n, rank))
    if rank < d:
        rows = rows @ (rng.normal(size=(rank, d)) * rng.uniform(0.2, 1, (1, d)))
        rows = rows + 0.3 * rows.std(axis=0) * rng.normal(size=rows.shape)
    skewed = rng.random(d) < rng.choice([0, 0.5])
    units = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    return DataSet(f"calibration-{number}", scale(np.where(skewed, np.exp(0.6 * units), rows)), k)


def few(number: int) -> DataSet:
    """A table of 30 to 600 rows, 1 to 8 columns, 3 to 15 round groups."""
    rng = np.random.default_rng(9000 + number)
    n, d = int(rng.choice([30, 60, 120, 250, 600])), int(rng.choice([1, 2, 2, 3, 5, 8]))
    k = int(rng.choice([3, 5, 8, 15]))
    centers, of = rng.uniform(-0.8, 0.8, (k, d)), rng.integers(0, k, n)
    rows = centers[of] + rng.choice([0.05, 0.1, 0.2]) * rng.normal(size=(n, d))
    return DataSet(f"few-{number}", np.clip(rows, -1, 1), k)

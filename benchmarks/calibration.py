"""Generated mixtures on which predicted errors are fitted (predicted.py)."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from datasets import DataSet, scale

NUMBER: Final = 30
"""How many mixtures there are."""


def mixture(number: int) -> DataSet:
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

"""Points that stand for boxes: where rows may be that are only known to be in one."""

from __future__ import annotations

import numpy as np

from cloister.core.types import Floats

MOST = 32
"""Points in one box."""


def evenly_in(boxes: Floats, total: int) -> Floats:
    """Points (n, m, d), n of them spread evenly over each box, about ``total`` in all: the same in every run.

    Args: boxes (m, 2, d), lower and upper corners.

    Source: the additive recurrence R_d (Roberts 2018), with the root of x^(d+1) = x + 1 for the golden ratio.
    """
    n, d = int(np.clip(total // max(len(boxes), 1), 1, MOST)), boxes.shape[2]
    root = 2.0
    for _ in range(64):
        root = (1 + root) ** (1 / (d + 1))
    steps = np.arange(n)[:, None] - (n - 1) / 2
    places = (0.5 + steps * root ** -np.arange(1.0, d + 1)) % 1.0  # one point is the middle
    found: Floats = boxes[:, 0] + places[:, None] * (boxes[:, 1] - boxes[:, 0])
    return found

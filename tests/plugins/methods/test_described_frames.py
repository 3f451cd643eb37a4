"""Where groups are described: in a frame of the columns that were clustered, whatever others are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cloister.core.randomness import NoiseRng
from cloister.plugins.populations.arrays import Arrays
from cloister.run.fit import fit
from cloister.run.request import Request


def test_groups_are_told_apart_beside_a_column_of_a_range_a_billion_times_as_wide() -> None:
    """Nothing is zoomed or scaled, so that the columns of the clustering have one unit: their own."""
    g, group = np.random.default_rng(1), np.arange(6000) % 3
    x, y = g.normal(0, 0.05, (2, 6000)) + np.array([-0.6, 0.0, 0.6])[group]
    rows = Arrays(pa.table({"x": x, "y": y, "paid": group * 4e8}), columns=["x", "y"], described=["paid"])
    asked = Request(
        k=3,
        method="tree-means",
        epsilon=20.0,
        delta=1e-6,
        bounds={"x": (-1, 1), "y": (-1, 1), "paid": (0, 1e9)},
        rows=6000,
        seed=1,
        describe="paid",
        zoom="off",
        scale="none",
    )
    (counts,) = fit(asked, rows, noise=NoiseRng.for_tests(1)).details["described"]["counts"]
    assert sorted(np.argmax(counts, axis=1).tolist()) == [0, 6, 12]
    assert np.max(counts, axis=1).min() > 1900

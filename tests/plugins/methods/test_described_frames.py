"""Where groups are described: in a frame of the columns that were clustered, whatever others are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.plugins.populations.arrays import Arrays
from cloister.run.fit import fit
from cloister.run.request import Request, prepare


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


@pytest.mark.parametrize("inner", ["described", "worded", "zoom"])
def test_what_has_a_frame_of_its_own_is_refused_in_the_frame_of_another(inner: str) -> None:
    """Its lattice would take the place of the outer one, and centres would lie anywhere."""
    with pytest.raises(InvalidInput, match="stands in the frame of another one"):
        prepare(
            Request(
                k=2, method="zoom", components={"method": inner}, epsilon=1.0, delta=1e-6, bounds=(0, 200), rows=900
            ),
            ["x", "y"],
        ).forecast(PublicRng.from_seed(1))

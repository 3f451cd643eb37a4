"""evolution: which points are kept for the next round."""

from __future__ import annotations

import numpy as np

from cloister.plugins.methods.evolution import fittest
from tests.plugins.tables import Table


def test_the_largest_counts_are_kept_until_they_hold_the_rows() -> None:
    points = np.arange(8.0).reshape(4, 2)
    kept = fittest(points, Table(np.array([1.0, 7.0, -3.0, 5.0])), 10)
    assert kept.points.tolist() == [[2.0, 3.0], [6.0, 7.0]]
    assert kept.weights.tolist() == [7.0, 3.0]
    nothing = fittest(points, Table(np.array([-1.0, -1.0, -1.0, 0.0])), 10)
    assert len(nothing.points) == 4
    assert not nothing.weights.any()

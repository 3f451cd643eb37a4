"""Points that stand for boxes are inside, even, and the same in every run."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.plugins.methods.errors import MOST, evenly_in


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_points_fill_their_box_evenly(d: int) -> None:
    boxes = np.array([[[0.0] * d, [1.0] * d], [[-3.0] * d, [5.0] * d]])
    points = evenly_in(boxes, 1000)
    assert points.shape == (MOST, 2, d)
    assert (boxes[:, 0] <= points).all()
    assert (points < boxes[:, 1]).all()
    assert points.mean(axis=0) == pytest.approx(boxes.mean(axis=1), abs=0.2)
    assert points[:, 0].var(axis=0) == pytest.approx(np.full(d, 1 / 12), rel=0.15)
    assert (points == evenly_in(boxes, 1000)).all()


def test_one_point_is_the_middle() -> None:
    boxes = np.array([[[0.0, 2.0], [1.0, 6.0]]] * 5)
    assert evenly_in(boxes, 3).tolist() == [[[0.5, 4.0]] * 5]

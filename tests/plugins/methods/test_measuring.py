"""Cells around a released point: exact, of each row alone, and apart where one lies behind the other."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.core.domains import REACH
from cloister.core.randomness import PublicRng
from cloister.plugins.methods.clipping import SCALE
from cloister.plugins.methods.measuring import Shells
from cloister.plugins.trees.directions import NORM

KEY = PublicRng.from_seed(3)


@pytest.mark.parametrize("d", [1, 2, 9, 40])
def test_a_row_is_in_the_cell_and_shell_that_integer_arithmetic_says(d: int) -> None:
    """Also with the middle at one end of the lattice and rows at the other one."""
    g = np.random.default_rng(d)
    rows = np.rint(g.standard_normal((300, d)) * REACH / 6 / math.sqrt(d)).astype(np.int64)
    rows[:100] //= 1000
    middle = np.zeros((1, d), np.int64)
    middle[0, 0] = -REACH + 5
    rows[0], rows[1] = -middle[0], middle[0]
    radius = 900_000
    cells = Shells.around(middle, radius, 32, KEY)
    around = cells.cells.around.tolist()
    for row, found in zip(rows.tolist(), cells.locate(rows)[:, 0].tolist(), strict=True):
        away = [int(a) - int(b) for a, b in zip(row, middle[0], strict=True)]
        products = [sum(a * b for a, b in zip(away, direction, strict=True)) for direction in around]
        best = max(range(len(products)), key=lambda j: (abs(products[j]), -j))
        square = sum(a * a for a in away)
        shell = sum(square > edge for edge in (radius**2 // 2, radius**2, 2 * radius**2))
        assert found == (2 * best + (products[best] < 0)) * 4 + shell


def test_groups_one_behind_the_other_are_told_apart() -> None:
    away = np.rint(KEY.generator().standard_normal(6) * 1000).astype(np.int64)
    cells = Shells.around(np.zeros((1, 6), np.int64), int(np.linalg.norm(away) * 1.2), 64, KEY)
    ids = cells.locate(np.stack([away // 2, away, away * 3]))[:, 0]
    assert len(set((ids // 4).tolist())) == 1
    assert (ids % 4).tolist() == [0, 1, 3]


def test_only_the_last_shell_clips_and_inner_ones_have_less_noise() -> None:
    middle = np.array([[50_000, -70_000]])
    cells = Shells.around(middle, 1000, 8, KEY)
    vectors = cells.offsets()
    assert vectors.radii[:4].tolist() == [708, 1000, 1415, 2000]
    rows = np.array([[700, 0], [0, -999], [1400, 0], [1900, 0], [0, 100_000]])
    buckets = cells.locate(middle + rows)
    values = vectors.values(middle + rows, buckets)
    back = values * vectors.radii[buckets[:, 0]][:, None] / SCALE
    assert np.allclose(back[:4], rows[:4], atol=0.01)
    assert np.allclose(back[4], [0, 2000], atol=0.01)
    assert abs(cells.cells.around).max() <= NORM

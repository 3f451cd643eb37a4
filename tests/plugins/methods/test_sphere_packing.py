"""Starts that no row has a say in: far apart, and away from the border."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.core.domains import Ball, Box
from cloister.core.randomness import PublicRng
from cloister.plugins.methods.sphere_packing import sphere_packing

SEED = PublicRng(b"p" * 32)
DOMAINS = [
    Box((0.0,), (10.0,)),
    Box((5.0,) * 12, (6.0,) * 12),
    Box((-3.0, 0.0, 1e3), (3.0, 1e-3, 2e3)),
    Ball((7.0,), 0.5),
    Ball((1.0,) * 8, 20.0),
]


def gaps(points: np.ndarray) -> np.ndarray:
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    return distances[np.triu_indices(len(points), 1)]


@pytest.mark.parametrize("k", [2, 10])
def test_on_a_line_the_radius_is_a_good_part_of_the_best_one(k: int) -> None:
    """k intervals of length 2a fill [0, 1] when a = 1 / 2k; candidates drawn one after the other reach most of that."""
    best = 1 / (2 * k)
    for i in range(5):
        gap = gaps(sphere_packing(k, Box((0.0,), (1.0,)), SEED.child(i))).min()
        assert 0.6 * 2 * best < gap < 1.0


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_single_point_stands_in_the_middle(domain: Any) -> None:
    """Within the tolerance of the search: twenty halvings."""
    (point,) = sphere_packing(1, domain, SEED)
    assert (abs(point - domain.middle) <= domain.diameter * 2.0**-20).all()


def test_a_narrow_column_is_left_at_its_middle() -> None:
    """Wide columns set the pace: one narrow one would crowd the starts together."""
    points = sphere_packing(5, Box((0.0, 0.0), (100.0, 1.0)), SEED)
    assert (points[:, 1] == 0.5).all()
    assert gaps(points).min() > 0.6 * 20


def test_starts_do_not_crowd_in_the_corners_of_a_high_dimensional_box() -> None:
    points = sphere_packing(5, Box((-1.0,) * 50, (1.0,) * 50), SEED)
    assert abs(points).max() < 0.5
    assert gaps(points).min() > 1.0

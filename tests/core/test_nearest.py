"""The nearest centre, against integer arithmetic that cannot round."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.core.domains import REACH, Box
from cloister.core.lattice import EXACT as EXACT_BELOW
from cloister.core.nearest import NearestCenter


def nearest(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Brute force in Python's integers: the lowest index of the least distance."""
    out = []
    for row in rows.tolist():
        distances = [sum((a - b) ** 2 for a, b in zip(row, center, strict=True)) for center in centers.tolist()]
        out.append(distances.index(min(distances)))
    return np.array(out)[:, None]


def test_a_row_gets_the_same_centre_alone_in_any_batch_and_in_any_order() -> None:
    """With a float matrix product on raw rows a fifth of the rows near a bisector changed their centre with the
    batch."""
    g = np.random.default_rng(0)
    domain = Box((-1.0,) * 7, (1.0,) * 7)
    centers = domain.snap(g.uniform(-1, 1, (50, 7)))
    one, other = centers[g.integers(0, 50, (2, 600))]
    rows = domain.snap(domain.real((one + other) // 2) + g.normal(0, 1e-6, (600, 7)))
    near = NearestCenter(centers, domain.max_norm, domain.max_norm // 4)
    together = near.locate(rows)
    closest, squares = near.distances(rows)
    assert np.array_equal(squares, ((rows - centers[closest]) ** 2).sum(axis=1))
    assert (together == -1).any()
    assert len(np.unique(together)) > 20
    order = g.permutation(len(rows))
    assert np.array_equal(near.locate(rows[order]), together[order])
    for size in (1, 7, 64, 333):
        assert np.array_equal(np.vstack([near.locate(rows[i : i + size]) for i in range(0, 600, size)]), together)
    assert np.array_equal(near.locate(np.asfortranarray(rows)), together)


def test_the_radius_counts_what_is_exactly_at_it_and_nothing_beyond() -> None:
    for center, within, rows, found in (
        ([0, 0], 5, [[3, 4], [5, 0], [4, 4], [5, 1], [0, 0], [-3, -4]], [0, 0, -1, -1, 0, 0]),
        ([-REACH, 0], 2 * REACH, [[REACH, 0], [REACH - 1, 5]], [0, 0]),
        ([-REACH, 0], 2 * REACH - 1, [[REACH, 0], [REACH - 1, 0]], [-1, 0]),
    ):
        assert NearestCenter(np.array([center]), REACH, within).locate(np.array(rows))[:, 0].tolist() == found


def test_ties_across_blocks_go_to_the_lowest_index() -> None:
    for first, second in ((3, 2048 + 7), (2047, 2048), (2050, 2051)):
        centers = np.full((5000, 2), 100_000)
        centers[[first, second]] = [[10, 0], [0, 10]]
        assert NearestCenter(centers, REACH).locate(np.array([[0, 0], [4, 4]]))[:, 0].tolist() == [first, first]
        centers[second] = [0, 9]
        near = NearestCenter(centers, REACH, 8)
        assert near.locate(np.array([[0, 0], [0, 1], [3, 0], [10, 8]]))[:, 0].tolist() == [-1, second, first, first]


@pytest.mark.parametrize("block", [2, 64])
def test_packed_distances_are_exact_up_to_the_largest_reach_of_a_block(block: int) -> None:
    """Centres opposite to the rows: packed distances come within one part in a hundred of 2^53."""
    reach, g = math.isqrt((2**53 // block - 1) // 3), np.random.default_rng(block)
    assert 0.99 * EXACT_BELOW < block * 3 * reach**2 < EXACT_BELOW
    angle = g.uniform(0, 2 * math.pi, 40)
    for place in np.trunc((reach - 2) * np.stack([np.cos(angle), np.sin(angle)], axis=1)).astype(np.int64):
        opposite = place + g.integers(-1, 2, (10, 2))
        for k in (block, 2 * block + 1):
            centers = -place + g.integers(-1, 2, (k, 2))
            assert np.array_equal(NearestCenter(centers, reach).locate(opposite), nearest(opposite, centers))

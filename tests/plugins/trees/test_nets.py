"""The lattice A*_m: its radii, its nearest points against brute force, its short vectors.

The projection of the net tree: orthogonal, scaled, exact.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.core.types import Ints
from cloister.plugins.trees.nets import RADIUS, Net, Projection, energy
from tests.plugins.trees.test_net_tree import KEY, ball, rows_in


def net(m: int, step: int, seed: int = 0) -> Net:
    return Net(step, np.random.default_rng(seed).integers(0, step, m + 1))


def distances(one: Ints, other: Ints) -> Ints:
    """Squared distances (n,) in the hyperplane, times m + 1."""
    return energy(one - other)


@pytest.mark.parametrize("d", [1, 3, 5, 100])
def test_the_projection_is_a_scaled_orthogonal_projection_up_to_its_rounding(d: int) -> None:
    m = min(4, d)
    projection = Projection.random(ball(d), m, 1.0 if d == m else 2.0, KEY.child("p", d))
    rows = rows_in(ball(d), 500, d)
    images = projection.of(rows).astype(np.float64)
    frame = np.linalg.qr(projection.matrix.astype(np.float64))[0][:, :m]
    expected = np.linalg.norm(rows @ frame, axis=1) / ball(d).max_norm * projection.scale
    inside = expected < 0.9999
    assert np.allclose(np.linalg.norm(images[inside], axis=1) / RADIUS, expected[inside], atol=1e-6)
    assert not images[expected > 1.0001].any()  # Algorithm 3, lines 3-6
    kept = ball(d).real(rows)[inside] @ frame @ frame.T
    assert np.abs(projection.back(projection.of(rows))[inside] - kept).max() < 1e-5


def test_projections_stay_exact_integers_at_the_largest_scale() -> None:
    d = 1000
    projection = Projection.random(ball(d), 2, 4 * math.sqrt(d / 2), KEY.child("large"))
    rows = rows_in(ball(d), 50, 1)
    exact = (rows.astype(object) @ projection.matrix.astype(object)) >> projection.shift
    small = np.array([[abs(int(v)) <= RADIUS for v in row] for row in exact]).all(axis=1)
    images = projection.of(rows)
    held = images.any(axis=1)
    assert (small | ~held).all()
    assert np.array_equal(images[held], exact[held].astype(np.int64))
    assert held.any()

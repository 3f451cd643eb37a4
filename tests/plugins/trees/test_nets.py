"""The lattice A*_m: its radii, its nearest points against brute force, its short vectors.

The projection of the net tree: orthogonal, scaled, exact.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.types import Ints
from cloister.plugins.trees.nets import RADIUS, Net, Projection, covering_radius, energy, packing_radius, short_vectors
from tests.plugins.trees.test_net_tree import KEY, ball, rows_in


def net(m: int, step: int, seed: int = 0) -> Net:
    return Net(step, np.random.default_rng(seed).integers(0, step, m + 1))


def distances(one: Ints, other: Ints) -> Ints:
    """Squared distances (n,) in the hyperplane, times m + 1."""
    return energy(one - other)


def test_the_covering_radius_is_at_most_three_packing_radii_up_to_25_dimensions() -> None:
    ratios = np.array([covering_radius(m) / packing_radius(m) for m in range(1, 26)])
    assert ratios == pytest.approx(np.sqrt((np.arange(1, 26) + 2) / 3))
    assert ratios.max() <= 3 + 1e-12


@pytest.mark.parametrize("m", [1, 2, 5, 8])
def test_every_point_has_a_net_point_within_the_covering_radius_and_the_deep_hole_has_none_nearer(m: int) -> None:
    step = 10**6
    of = net(m, step, m)
    points = np.random.default_rng(m).integers(-(2**26), 2**26, (20_000, m + 1))
    far = np.sqrt(distances(points, of.points(of.nearest(points))) / (m + 1))
    assert far.max() <= covering_radius(m) * step
    hole = of.shift + np.arange(m + 1)[None, ::-1] * step // (m + 1)
    found = math.sqrt(int(distances(hole, of.points(of.nearest(hole)))[0]) / (m + 1))
    assert found == pytest.approx(covering_radius(m) * step, rel=1e-5)


@pytest.mark.parametrize("m", [1, 2, 6])
def test_the_shortest_vectors_are_two_packing_radii_long(m: int) -> None:
    unit = Net(1, np.zeros(m + 1, np.int64))
    lengths = np.sqrt(energy(unit.points(short_vectors(m, 2.5 * packing_radius(m)))) / (m + 1))
    assert lengths[lengths > 0].min() == pytest.approx(2 * packing_radius(m))
    assert (lengths < 2.01 * packing_radius(m)).sum() == 1 + (2 if m == 1 else 2 * (m + 1))  # the kissing number, and 0


@pytest.mark.parametrize(("m", "radius"), [(1, 3.0), (2, 2.0), (4, 1.5)])
def test_short_vectors_are_all_of_them_once(m: int, radius: float) -> None:
    unit = Net(1, np.zeros(m + 1, np.int64))
    box = np.array(list(itertools.product(range(-5, 6), repeat=m)))
    short = energy(unit.points(box)) <= radius**2 * (m + 1)
    found = {tuple(v) for v in short_vectors(m, radius).tolist()}
    assert found == {tuple(v) for v in box[short].tolist()}
    assert len(found) == len(short_vectors(m, radius))


@settings(max_examples=75, deadline=None, derandomize=True)
@given(st.integers(1, 5), st.integers(1, 60), st.integers(0, 2**32), st.integers(0, 3))
def test_the_nearest_point_is_that_of_brute_force_with_ties_and_without(
    m: int, step: int, seed: int, wide: int
) -> None:
    of = net(m, step, seed)
    points = np.random.default_rng(seed).integers(-(10 ** (wide + 1)), 10 ** (wide + 1), (20, m + 1))
    got = distances(points, of.points(of.nearest(points)))
    around = np.array(list(itertools.product((-1, 0, 1, 2), repeat=m + 1)))
    base = (points - of.shift) // step
    for point, low, best in zip(points, base, got, strict=True):
        assert best == distances(point[None, :], of.shift + step * (low + around)).min()


def test_coordinates_at_the_largest_scale_do_not_overflow() -> None:
    of = net(8, 2**25, 3)
    points = np.random.default_rng(4).integers(-(2**28), 2**28, (200, 9))
    nearest = of.points(of.nearest(points))
    apart = (points - nearest).astype(object)
    exact = 9 * (apart**2).sum(axis=1) - apart.sum(axis=1) ** 2
    assert exact.tolist() == distances(points, nearest).tolist()
    assert exact.max() <= 9 * (covering_radius(8) * 2**25) ** 2


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

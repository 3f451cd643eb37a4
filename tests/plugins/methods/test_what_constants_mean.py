"""Constants of grid-means, radius-means, their measuring and zoom, by what they do to figures worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Coreset, Problem
from cloister.core.domains import Box
from cloister.core.registry.making import make
from cloister.plugins.methods.grid_means import measured, stepped
from cloister.plugins.methods.measuring import Moved
from cloister.plugins.methods.zoom import COARSE, SURE, Zoom
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from tests.plugins.tables import Table


def test_a_group_on_a_grid_has_three_tenths_of_a_mean_group_added_to_its_radius_and_at_least_as_many_rows() -> None:
    """100 rows in two groups: pooled with 15 rows of the mean square. A cell of sides 0.6 and 0.8 adds 1 / 12."""
    cells = Coreset(np.array([[0.0, 0.0], [0.0, 2.0], [10.0, 0.0]]), np.array([30.0, 10.0, 5.0]))
    sizes, radii = measured(cells, np.array([[0.0, 0.0], [10.0, 0.0]]), 100, np.array([0.6, 0.8]))
    assert sizes.tolist() == [40.0, 15.0]
    mean = (40 + 45 / 12) / 45
    assert radii[0] == pytest.approx(math.sqrt((40 + 40 / 12 + 15 * mean) / 55))
    assert radii[1] == pytest.approx(math.sqrt((5 / 12 + 15 * mean) / 20))


def test_without_noise_a_step_is_lengthened_for_clipping_by_three_tenths() -> None:
    steps = stepped(np.array([[10.0, 0.0], [0.0, 20.0]]), np.zeros(2), np.array([100.0, 50.0]), np.ones(2))
    np.testing.assert_allclose(steps, [[0.13, 0.0], [0.0, 0.52]])


def test_a_step_in_noise_is_no_longer_than_what_can_be_known_of_the_radius() -> None:
    """1 / (1 + d (noise / radius)^2), here 1 / (1 + 2 x 0.25), where the sums are far above their noise."""
    found = stepped(np.array([[1e6, 0.0]] * 3), np.full(3, 50.0), np.full(3, 100.0), np.ones(3))
    np.testing.assert_allclose(found[0, 0], 1.3 * 1e4 / 1.5, rtol=1e-3)


def moved(**given: Any) -> Moved:
    facts: dict[str, Any] = {
        "sizes": np.array([50.0, 7.0, 20.0]),
        "size_errors": np.full(3, 4.0),
        "means": np.array([[0.3, 0.4]] * 3),
        "noise": np.array([0.0, 0.01, 0.25]),
        "radii": np.full(3, 2.0),
        "usual": 25.0,
        **given,
    }
    return Moved(**facts)


def test_a_mean_is_shrunk_by_its_noise_and_by_what_its_radius_and_size_let_be_known() -> None:
    most = (2 * 625 / (625 + 16)) ** 2
    found = moved().steps
    np.testing.assert_allclose(found[0], [0.3, 0.4])
    np.testing.assert_allclose(found[1], np.array([0.3, 0.4]) * (most / (most + 0.01)) * (1 - 0.01 / 0.25), rtol=1e-6)
    np.testing.assert_allclose(found[2], [0.0, 0.0])  # all of its length may be noise
    long = moved(means=np.array([[30.0, 40.0]] * 3)).steps
    np.testing.assert_allclose(np.linalg.norm(long, axis=1), [2.0, 2.0, 2.0])


def test_points_weigh_less_the_more_of_them_is_noise() -> None:
    points = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = moved(sizes=np.array([30.0, 10.0, -5.0])).coreset(np.array([0, 2]), points)
    scale = (30 * 1.0 + 1e-9 * 0.75) / (30 + 1e-9)
    np.testing.assert_allclose(found.weights, [30.0, 1e-9 * scale / (scale + 0.25)])


# zoom


def found_in(first: int, last: int, method: str = "hst-means", rows: int = 10**6) -> Any:
    """The interval of one column with many rows in each of some of the 16 bins, and of the parts of those."""
    zoom: Any = Zoom(method=make("Method", method), counts=DiscreteGaussian())
    problem = Problem(2, Box((0.0,), (16.0,)), rows, Budget("gaussian", 0.05))
    top = np.where((first <= np.arange(16)) & (np.arange(16) <= last), 1e6, 0.0)
    counts = Table([np.repeat(top, 16**level) for level in range(4)], 1.0)
    return zoom.read(counts, problem, 1.0, problem.domain)[0]


def test_an_interval_has_a_twentieth_added_to_each_side_and_is_left_out_from_four_fifths_of_the_bounds_on() -> None:
    low, high = found_in(4, 11)
    assert [low, high] == pytest.approx([4 - 0.4, 12 + 0.4], abs=1e-3)
    assert found_in(1, 13).tolist() == [0, 16]  # 13 of 16
    assert found_in(2, 13)[0] > 1
    assert found_in(0, 3)[0] == 0


def test_an_interval_is_rough_from_three_quarters_of_a_hundredth_of_the_rows_on() -> None:
    """The bin's standard error is 1 row here."""
    assert (SURE, COARSE) == (0.0075, 0.025)
    fine, rough = found_in(8, 8, rows=134), found_in(8, 8, rows=133)
    assert fine == pytest.approx([8 - 0.05 - 4.75 / 134, 9 + 0.05 + 4.75 / 134], abs=1e-6)
    assert rough == pytest.approx([8 - 3, 9 + 3])
    assert found_in(8, 8, "radius-means", rows=10**6) == pytest.approx([0, 16])  # it stands bounds 16 times too wide


def test_nothing_is_asked_where_a_bins_error_is_above_a_fortieth_of_the_rows() -> None:
    zoom: Any = Zoom(method=make("Method", "hst-means"), counts=DiscreteGaussian())
    problem = Problem(2, Box((0.0, 0.0), (1.0, 1.0)), 9000, Budget("gaussian", 0.05))
    look = problem.split(0.1)[0].budget
    error = math.sqrt(zoom.counts.variance(zoom.columns_of(problem).space, look, problem.context(look)))
    assert zoom.share_of(attrs.evolve(problem, rows=math.ceil(error / 0.025) + 1)) == 0.1
    assert zoom.share_of(attrs.evolve(problem, rows=math.floor(error / 0.025) - 1)) == 0

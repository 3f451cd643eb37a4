"""Frames: rows moved and scaled by released figures, each row by itself, and grades of all numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.domains import Box
from cloister.core.frames import GRADES, UNKNOWN, Reframed, SignLogScale, cube, grade_starts, grades
from cloister.core.nearest import NearestCenter

FRAMES = [
    Reframed((0.0, 0.0), (1.0, 1.0)),
    Reframed((50.0, -3e6), (1e-3, 7e8)),
    Reframed((0.1,) * 5, (1e-19, 0.3, 1.0, 3e18, 1e90)),
]
EXTREMES = [0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1e308, -1.7976931348623157e308, 2.0**63, 0.1, 1e-19]


def rows_of(frame: Reframed, n: int = 100) -> np.ndarray:
    g = np.random.default_rng(3)
    near = frame.real(g.uniform(-1.5, 1.5, (n, frame.dimension)))
    return np.vstack([near, g.choice(EXTREMES, (100, frame.dimension))])


def test_the_cube_goes_from_minus_one_to_one_in_each_column() -> None:
    assert cube(3) == Box((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("graded", [False, True])
def test_a_row_lands_on_the_same_point_alone_and_in_any_batch(frame: Reframed, graded: bool) -> None:
    lattice = SignLogScale(frame, (1,)) if graded else frame
    rows = rows_of(frame)
    whole = lattice.snap(rows)
    order = np.random.default_rng(4).permutation(len(rows))
    assert np.array_equal(lattice.snap(rows[order]), whole[order])
    assert np.array_equal(lattice.snap(np.asfortranarray(rows)), whole)
    assert np.array_equal(np.vstack([lattice.snap(row[None]) for row in rows]), whole)
    assert whole.dtype == np.int64


@pytest.mark.parametrize("frame", [*FRAMES, Reframed((0.0, 1.0), (5e-324, 1e-310))])
def test_every_row_lies_within_the_cube_wherever_the_frame_is(frame: Reframed) -> None:
    """The norm that noise is calibrated to does not depend on where a frame was found."""
    domain, points = cube(frame.dimension), frame.snap(rows_of(frame))
    assert (np.abs(points) <= domain.sides).all()
    assert (np.einsum("ij,ij->i", points, points) <= domain.max_norm**2).all()
    NearestCenter(points[:3], domain.max_norm).locate(points)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=40))
@settings(derandomize=True, deadline=None, max_examples=40)
def test_grades_keep_the_order_of_numbers_and_each_holds_its_own(values: list[float]) -> None:
    numbers = np.sort(np.array(values))
    found = grades(numbers)
    assert (np.diff(found) >= 0).all()
    assert (found >= -GRADES).all()
    assert (found < GRADES).all()
    known = np.abs(numbers) < 2.0**64
    assert (grade_starts(found)[known] <= numbers[known]).all()
    assert (numbers[known] <= grade_starts(found + 1)[known]).all()


def test_a_grade_is_at_most_one_part_in_256_wide_over_128_octaves() -> None:
    every = np.arange(1, GRADES)
    low, high = grade_starts(every), grade_starts(every + 1)
    assert np.array_equal(grades(low), every)
    assert np.array_equal(grades(np.nextafter(low, 0)), every - 1)
    assert np.array_equal(grades(-low), -1 - every)
    assert (high / low <= 1 + 1 / 256).all()
    assert (low[0], high[-1]) == (2.0**-64 * (1 + 1 / 256), 2.0**64)
    assert math.isclose(float(grade_starts([-GRADES])[0]), UNKNOWN[0])

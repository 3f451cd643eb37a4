"""A device puts rows on the lattice as cloister does, bit for bit, at the edges of domains and of numbers too."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from cloister.core.domains import Ball, Box, Domain, Lattice
from cloister.core.frames import UNKNOWN, Reframed, SignLogScale, cube, grade_starts
from cloister.core.types import Floats
from tests.reference_client.comparing import check_snapping

HUGE = sys.float_info.max
ALWAYS = np.array([0.0, -0.0, 5e-324, -5e-324, sys.float_info.min, 1.0, -1.0, 0.1, 1e100, -1e100, HUGE, -HUGE])

BOXES = [
    Box((-1.0,), (1.0,)),
    Box((0.0, 0.0), (1.0, 1.0)),
    Box((-3.0, 7.3, 0.0), (11.1, 7.4, 1e6)),
    Box((1e-50, -1e-49), (3e-50, 1e-49)),
    Box((-1e99,), (1e99,)),
    Box((1e15, -1.0), (1e15 + 4, 1.0)),
    Box((4441101472026316.0,), (4441101472026317.5,)),  # its lower bound lies beyond its lattice
    Box(tuple(np.linspace(-2, 0, 20)), tuple(np.linspace(1, 3, 20))),
]
BALLS = [
    Ball((0.0,), 1.0),
    Ball((0.3, -7.7), 2.1),
    Ball((1e10, 0.0, -0.0), 1e-3),
    Ball((HUGE, -HUGE), 1e90),
    Ball(tuple(np.linspace(-1, 1, 30)), 17.0),
]


def around(values: Floats) -> Floats:
    """These values, and the numbers next to each."""
    return np.concatenate([values, np.nextafter(values, HUGE), np.nextafter(values, -HUGE)])


def repeated(values: Floats, lattice: Lattice) -> Floats:
    """Rows (n, d) of one value each."""
    return np.repeat(values[:, None], lattice.dimension, axis=1)


@pytest.mark.parametrize("domain", BOXES + BALLS, ids=repr)
def test_rows_anywhere_half_way_between_two_points_and_at_the_edges_of_the_domain_and_of_numbers(
    domain: Domain,
) -> None:
    """Edges in each column alone, and in all of them."""
    g, d, middle = np.random.default_rng(7), domain.dimension, domain.middle
    with np.errstate(over="ignore"):
        anywhere = middle + g.uniform(-1.3, 1.3, (500, d)) * domain.diameter / 2
        halves = middle + (g.integers(-(2**20), 2**20, (500, d)) + 0.5) * domain.unit
        ends = middle + np.outer([-1, 0, 1], domain.sides * domain.unit)
    values = around(np.concatenate([ALWAYS, ends.ravel().clip(-HUGE, HUGE)[:12]])).clip(-HUGE, HUGE)
    columns = np.tile(middle, (d, len(values), 1))
    columns[np.arange(d), :, np.arange(d)] = values
    rows = np.concatenate([anywhere, halves, columns.reshape(-1, d), repeated(values, domain)])
    check_snapping(domain, rows.clip(-HUGE, HUGE))


@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_rows_just_outside_a_ball(ball: Ball) -> None:
    g = np.random.default_rng(8)
    away = g.standard_normal((500, ball.dimension))
    away *= ball.radius * g.uniform(1 - 1e-7, 1 + 1e-7, (500, 1)) / np.linalg.norm(away, axis=1, keepdims=True)
    check_snapping(ball, ball.middle + away)


def test_rows_far_outside_a_ball_of_many_columns() -> None:
    """Their squared lengths are above 2^53."""
    ball, g = Ball((0.0,) * 9000, 1.0), np.random.default_rng(10)
    check_snapping(ball, g.choice([-1.0, 1.0, 0.99], (12, 9000)) * g.uniform(0.99, 100.0, (12, 1)))


def test_rows_of_a_frame_and_of_columns_whose_range_nobody_knows() -> None:
    frame = Reframed((0.3, -1e9, 5.0), (2.5, 1e7, 1e-9))
    rows = np.random.default_rng(9).uniform(-1.5, 1.5, (1000, 3)) * np.array(frame.scale) + np.array(frame.offset)
    check_snapping(frame, np.concatenate([rows, repeated(ALWAYS, frame)]))
    graded = SignLogScale(Reframed.of(np.array([UNKNOWN, (-1.0, 1.0), UNKNOWN]), cube(3).half_widths), (0, 2))
    grades = around(grade_starts(np.arange(-32768, 32768, 17)))
    check_snapping(graded, repeated(np.concatenate([grades, ALWAYS]), graded))

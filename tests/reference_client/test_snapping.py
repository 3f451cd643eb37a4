"""A device puts rows on the lattice as cloister does, bit for bit, at the edges of domains and of numbers too."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from cloister.core.domains import Ball, Box, Domain, Lattice
from cloister.core.frames import UNKNOWN, Graded, Reframed, cube, least_of
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
def test_rows_anywhere_at_points_of_the_lattice_and_half_way_between_two(domain: Domain) -> None:
    g, d = np.random.default_rng(7), domain.dimension
    with np.errstate(over="ignore"):
        rows = domain.middle + g.uniform(-1.3, 1.3, (500, d)) * domain.diameter / 2
        halves = domain.middle + (g.integers(-(2**20), 2**20, (500, d)) + 0.5) * domain.unit
    check_snapping(domain, np.clip(np.concatenate([rows, halves]), -HUGE, HUGE))


@pytest.mark.parametrize("domain", BOXES + BALLS, ids=repr)
def test_each_column_at_the_edges_of_the_domain_and_of_numbers(domain: Domain) -> None:
    sides = domain.sides * domain.unit
    ends = np.concatenate([domain.middle - sides, domain.middle, domain.middle + sides])
    values = around(np.concatenate([ALWAYS, np.clip(ends, -HUGE, HUGE)[:12]]).clip(-HUGE, HUGE)).clip(-HUGE, HUGE)
    for j in range(domain.dimension):
        rows = np.repeat(domain.middle[None], len(values), axis=0)
        rows[:, j] = values
        check_snapping(domain, rows)
    check_snapping(domain, repeated(values, domain))


@pytest.mark.parametrize("domain", BALLS, ids=repr)
def test_rows_just_outside_a_ball(domain: Ball) -> None:
    g = np.random.default_rng(8)
    away = g.standard_normal((500, domain.dimension))
    away *= domain.radius * g.uniform(1 - 1e-7, 1 + 1e-7, (500, 1)) / np.linalg.norm(away, axis=1, keepdims=True)
    check_snapping(domain, domain.middle + away)


def test_rows_far_outside_a_ball_of_many_columns() -> None:
    """Their squared lengths are above 2^53."""
    ball, g = Ball((0.0,) * 9000, 1.0), np.random.default_rng(10)
    check_snapping(ball, g.choice([-1.0, 1.0, 0.99], (12, 9000)) * g.uniform(0.99, 100.0, (12, 1)))


def test_rows_of_a_frame_and_of_columns_whose_range_nobody_knows() -> None:
    frame = Reframed((0.3, -1e9, 5.0), (2.5, 1e7, 1e-9))
    rows = np.random.default_rng(9).uniform(-1.5, 1.5, (1000, 3)) * np.array(frame.scale) + np.array(frame.offset)
    check_snapping(frame, np.concatenate([rows, repeated(ALWAYS, frame)]))
    graded = Graded(Reframed.of(np.array([UNKNOWN, (-1.0, 1.0), UNKNOWN]), cube(3).half_widths), (0, 2))
    grades = around(least_of(np.arange(-32768, 32768, 17)))
    check_snapping(graded, repeated(np.concatenate([grades, ALWAYS]), graded))

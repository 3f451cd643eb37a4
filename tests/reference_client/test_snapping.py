"""A device puts rows on the lattice as cloister does, bit for bit, at the edges of domains and of numbers too."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

from cloister.core.domains import Ball, Box, Domain, Lattice
from cloister.core.frames import UNKNOWN, Graded, Reframed, cube, least_of
from cloister.core.types import Floats
from tests.reference_client.comparing import as_devices_read
from tests.reference_client.snapping import snap

HUGE = sys.float_info.max
ALWAYS = [0.0, -0.0, 5e-324, -5e-324, sys.float_info.min, 1.0, -1.0, 0.1, 1e100, -1e100, HUGE, -HUGE]

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


def check(lattice: Lattice, rows: Floats) -> None:
    read = as_devices_read(lattice)
    assert [snap(read, row) for row in rows.tolist()] == lattice.snap(rows).tolist()


def wide(domain: Domain, n: int) -> Floats:
    """Rows (n, d) in the domain and outside, half of them at points of the lattice and half way between two."""
    g, d = np.random.default_rng(7), domain.dimension
    with np.errstate(over="ignore"):
        rows = domain.middle + g.uniform(-1.3, 1.3, (n, d)) * domain.diameter / 2
        halves = domain.middle + (g.integers(-(2**20), 2**20, (n, d)) + 0.5) * domain.unit
    return np.clip(np.concatenate([rows, halves]), -HUGE, HUGE)


@pytest.mark.parametrize("domain", BOXES + BALLS, ids=repr)
def test_rows_anywhere(domain: Domain) -> None:
    check(domain, wide(domain, 1500))


@pytest.mark.parametrize("domain", BOXES + BALLS, ids=repr)
def test_each_column_at_the_edges_of_the_domain_and_of_numbers(domain: Domain) -> None:
    sides = domain.sides * domain.unit
    ends = np.clip(np.concatenate([domain.middle - sides, domain.middle, domain.middle + sides]), -HUGE, HUGE)
    some = [*ALWAYS, *ends[: 3 * 4].tolist()]
    steps = [np.nextafter(value, way) for value in some for way in (-HUGE, HUGE)]
    values = np.array([*some, *steps])
    rows = np.repeat(domain.middle[None], len(values) * domain.dimension, axis=0)
    for j, (i, value) in itertools.product(range(domain.dimension), enumerate(values)):
        rows[j * len(values) + i, j] = value
    check(domain, np.concatenate([rows, np.repeat(values[:, None], domain.dimension, axis=1)]))


@pytest.mark.parametrize("domain", BALLS, ids=repr)
def test_rows_just_outside_a_ball(domain: Ball) -> None:
    g = np.random.default_rng(8)
    away = g.standard_normal((500, domain.dimension))
    away *= domain.radius * g.uniform(1 - 1e-7, 1 + 1e-7, (500, 1)) / np.linalg.norm(away, axis=1, keepdims=True)
    check(domain, domain.middle + away)


def test_rows_far_outside_a_ball_of_many_columns() -> None:
    """Their squared lengths are above 2^53."""
    ball, g = Ball((0.0,) * 9000, 1.0), np.random.default_rng(10)
    rows = g.choice([-1.0, 1.0, 0.99], (20, 9000)) * g.uniform(0.99, 100.0, (20, 1))
    check(ball, rows)


def test_rows_of_a_frame_and_of_columns_whose_range_nobody_knows() -> None:
    frame = Reframed((0.3, -1e9, 5.0), (2.5, 1e7, 1e-9))
    rows = np.random.default_rng(9).uniform(-1.5, 1.5, (2000, 3)) * np.array(frame.scale) + np.array(frame.offset)
    check(frame, rows)
    check(frame, np.repeat(np.array(ALWAYS)[:, None], 3, axis=1))
    graded = Graded(Reframed.of(np.array([UNKNOWN, (-1.0, 1.0), UNKNOWN]), cube(3).half_widths), (0, 2))
    grades = least_of(np.arange(-32768, 32768, 17))
    values = np.concatenate([grades, np.nextafter(grades, HUGE), np.nextafter(grades, -HUGE), np.array(ALWAYS)])
    check(graded, np.repeat(values[:, None], 3, axis=1))

"""Domains: what is clipped, the lattice that rows are put on, and centres that leave."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from cloister.core.domains import REACH, Ball, Box
from cloister.core.errors import InvalidInput
from tests.alarms import Alarm

EXACT = settings(derandomize=True, deadline=None, max_examples=80)

BOXES = [
    Box((-1.0, -1.0), (1.0, 1.0)),
    Box((-5.0, 100.0, 1e-3), (7.0, 101.0, 2e-3)),
    Box((0.0,) * 50, (255.0,) * 50),
    Box((-1e6, 0.0), (3e6, 1e-5)),
    Box((-1e90,), (1e90,)),
    Box((0.0, 0.0), (1e-90, 2e-90)),
]
BALLS = [Ball((3.0,), 0.7), Ball((-1.0, 2.0, 1e3), 17.3), Ball((0.0,) * 60, 1e-5), Ball((1e5, -1e5), 1e6)]


def norm_squared(point: Any) -> int:
    return sum(int(v) ** 2 for v in point)


finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
moderate = st.floats(-1e6, 1e6)
widths = st.floats(1e-3, 1e6)


@given(st.lists(st.tuples(moderate, widths), min_size=1, max_size=8))
@EXACT
def test_the_unit_of_a_domain_is_the_power_of_two_that_fills_the_reach(columns: list[tuple[float, float]]) -> None:
    lower, radius = [low for low, _ in columns], columns[0][1]
    box, ball = Box(lower, [low + width for low, width in columns]), Ball(lower, radius)
    for domain in (box, ball):
        assert math.frexp(domain.unit)[0] == 0.5
        assert REACH / 2 - 2 * math.sqrt(domain.dimension) - 2 <= domain.max_norm <= REACH
    assert (abs(box.sides * box.unit - box.half_widths) < box.unit).all()
    assert norm_squared(box.sides) <= box.max_norm**2
    assert box.max_norm == 1 or norm_squared(box.sides) > (box.max_norm - 1) ** 2
    assert ball.max_norm * ball.unit <= radius < (ball.max_norm + 1) * ball.unit
    assert (ball.sides == ball.max_norm).all()


@pytest.mark.parametrize("d", [1, 4, 10_000])
def test_a_unit_leaves_room_for_rounding_in_every_column_and_no_more(d: int) -> None:
    """Of d columns, each of which may be rounded up by half a unit, the corner stays within the reach."""
    most = (REACH - 1) / math.sqrt(d) - 1  # so that the radius is the reach, less sqrt(d) and 1
    for half, unit in ((most, 1.0), (math.nextafter(most, math.inf) * (1 + 1e-12), 2.0), (most / 2, 0.5)):
        box = Box((-half,) * d, (half,) * d)
        assert box.unit == unit
    worst = math.floor(REACH / math.sqrt(d) - 1) + 0.75  # is rounded up
    box = Box((-worst,) * d, (worst,) * d)
    assert norm_squared(box.sides) <= REACH**2
    assert box.max_norm <= REACH


@pytest.mark.parametrize("box", BOXES)
def test_rows_outside_a_box_are_clipped_to_it(box: Box) -> None:
    rows = box.middle + box.half_widths * np.random.default_rng(1).normal(0, 3, (200, box.dimension))
    rows[0], rows[1] = 1.7e308, -1.7e308
    snapped, inside = box.snap(rows), np.clip(rows, box.lower, box.upper)
    assert snapped.dtype == np.int64
    assert np.array_equal(snapped, box.snap(inside))
    assert np.array_equal(box.truncate(rows), inside)
    assert (abs(snapped) <= box.sides).all()
    upper, lower = box.snap(np.array([box.upper, box.lower]))
    assert np.array_equal(upper, -lower)
    assert (abs(box.sides - upper) <= 1).all()


@pytest.mark.parametrize("domain", BOXES + BALLS)
def test_a_row_snaps_to_the_same_point_alone_in_any_order_in_any_layout_and_once_more(domain: Box | Ball) -> None:
    g = np.random.default_rng(2)
    rows = domain.middle + (domain.diameter / 2) * g.normal(0, 1, (100, domain.dimension))
    before = rows.copy()
    together = domain.snap(rows)
    assert np.array_equal(rows, before)
    assert np.array_equal(np.vstack([domain.snap(row[None]) for row in rows]), together)
    order = g.permutation(len(rows))
    assert np.array_equal(domain.snap(rows[order]), together[order])
    assert np.array_equal(domain.snap(np.asfortranarray(rows)), together)
    assert domain.snap(rows[:0]).shape == (0, domain.dimension)
    assert np.array_equal(domain.snap(domain.real(together)), together)


@pytest.mark.parametrize("box", BOXES)
def test_a_box_moves_an_inner_row_by_at_most_half_a_unit_and_a_border_row_by_less_than_one(box: Box) -> None:
    rows = np.random.default_rng(4).uniform(-1, 1, (500, box.dimension)) * box.half_widths + box.middle
    rows = np.vstack([np.clip(rows, box.lower, box.upper), box.lower, box.upper, box.middle])
    off = abs(box.real(box.snap(rows)) - rows) / box.unit
    rounding = 4 * np.finfo(float).eps * np.abs([box.lower, box.upper]).max(axis=0) / box.unit
    inner = abs(rows - box.middle) <= (box.sides + 0.5) * box.unit
    assert (off <= np.where(inner, 0.5, 1.0) + rounding).all()


@pytest.mark.parametrize("ball", BALLS)
def test_a_ball_moves_inner_rows_by_half_a_unit_and_border_rows_by_a_few(ball: Ball) -> None:
    d, out = ball.dimension, directions(ball, 500) * ball.radius
    rounding = 8 * np.finfo(float).eps * (np.abs(ball.center).max() + ball.radius) / ball.unit
    shares = np.random.default_rng(5).random((500, 1))
    inner = ball.middle + out * shares * (1 - 4 * math.sqrt(d) / ball.max_norm)
    assert (abs(ball.real(ball.snap(inner)) - inner) / ball.unit <= 0.5 + rounding).all()
    border = ball.middle + out
    off = np.linalg.norm(ball.real(ball.snap(border)) - border, axis=1) / ball.unit
    assert (off <= 2 + 2 * math.sqrt(d) + rounding).all()


@given(
    st.lists(st.tuples(finite, finite, finite), min_size=1, max_size=20),
    st.sampled_from([(0.0, 0.0, 0.0), (1.0, -2.0, 5.0), (1e10, 0.0, -1e10)]),
    st.sampled_from([1e-3, 1.0, 12.5, 1e8]),
)
@EXACT
def test_no_row_leaves_a_ball_whatever_it_is(
    rows: list[tuple[float, ...]], center: tuple[float, ...], radius: float
) -> None:
    ball = Ball(center, radius)
    with np.errstate(over="ignore"):
        points = ball.snap(np.array([*rows, (1e308, -1e308, 1e308), (1.7e308, 0.0, 0.0)]))
    assert all(norm_squared(point) <= ball.max_norm**2 for point in points)


def test_the_widest_rows_and_balls_cause_no_warning() -> None:
    """A warning would tell whoever reads the log that such a row is there."""
    Ball((0.0, 0.0), 1e-3).snap(np.array([[1e308, -1e308]]))
    Ball((-1e308, 0.0), 1.0).snap(np.array([[1.7e308, 0.0]]))
    with np.errstate(all="raise"):  # a radius over a norm of zero is beyond 64-bit numbers
        assert Ball((0.0, 0.0), 9e99).truncate(np.zeros((1, 2))).tolist() == [[0.0, 0.0]]


def triangle(x: float, low: float, high: float) -> float:
    """Reflection at both ends, in rational arithmetic."""
    width = Fraction(high) - Fraction(low)
    around = (Fraction(x) - Fraction(low)) % (2 * width)
    return float(Fraction(low) + min(around, 2 * width - around))


@given(st.floats(-1e4, 1e4), st.sampled_from([(-1.0, 1.0), (0.0, 0.3), (-5.0, 7.0), (100.0, 101.0)]))
@EXACT
def test_a_box_folds_by_reflection_with_period_twice_its_width(x: float, bounds: tuple[float, float]) -> None:
    low, high = bounds
    ((folded,),) = Box((low,), (high,)).fold(np.array([[x]]))
    assert low <= folded <= high
    assert folded == pytest.approx(triangle(x, low, high), abs=1e-11 * (1 + abs(x)))


def directions(ball: Ball, n: int) -> np.ndarray:
    found = np.random.default_rng(8).normal(0, 1, (n, ball.dimension))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.mark.parametrize("ball", BALLS)
def test_a_ball_folds_along_the_ray_from_its_centre_and_truncates_there_too(ball: Ball) -> None:
    out = directions(ball, 100) * ball.radius
    for outside, folded in ((0.4, 0.4), (1.0, 1.0), (1.25, 0.75), (1.9, 0.1), (2.3, 0.3)):
        points = ball.middle + out * outside
        for found, inside in ((ball.fold(points), folded), (ball.truncate(points), min(outside, 1.0))):
            assert (abs(found - (ball.middle + out * inside)) <= 1e-9 * ball.radius).all()


def evened(domain: Box | Ball, points: np.ndarray, margin: float) -> np.ndarray:
    """What is uniform in [0, 1] of points that are: the volume of a ball within each; in a box the way along each
    column, but for columns that are narrower than twice the margin."""
    away = points - domain.middle
    if isinstance(domain, Ball):
        return (np.linalg.norm(away, axis=1, keepdims=True) / (domain.radius - margin)) ** domain.dimension
    reach = domain.half_widths - margin
    return (away / reach)[:, reach > 0] / 2 + 0.5


@pytest.mark.alarm(1e-8)
@pytest.mark.parametrize(
    ("domain", "margin"),
    [
        *((ball, 0.5) for ball in (Ball((0.0,), 2.0), Ball((1.0, 2.0), 3.0), Ball((0.0,) * 5, 1.0))),
        (Box((0.0, -1.0, 5.0), (10.0, 1.0, 5.5)), 0.75),
    ],
)
def test_samples_are_uniform_and_keep_their_margin(domain: Box | Ball, margin: float, alarm: Alarm) -> None:
    """Chi-square over 20 shells of equal volume, or slices of each column, and a sign test. A column narrower than
    twice the margin is left at its middle."""
    points = domain.sample(np.random.default_rng(10), 20_000, margin)
    shares, tiny = evened(domain, points, margin), 1e-9
    assert -tiny <= shares.min() <= shares.max() <= 1 + tiny
    counts = (np.histogram(share, 20, (-tiny, 1 + tiny))[0] for share in shares.T)
    signs = stats.binomtest(int((points[:, 0] > domain.middle[0]).sum()), len(points))
    alarm.fits(*(stats.chisquare(count).pvalue for count in counts), signs.pvalue)
    assert isinstance(domain, Ball) or (points[:, 2] == 5.25).all()


@pytest.mark.parametrize(
    ("kind", "figures", "message"),
    [
        (Box, ((0.0, 0.0), (1.0,)), "got 2 and 1"),
        (Box, ((), ()), "at least one"),
        (Box, ((0.0,), (1e-310,)), "another unit"),
        (Ball, ((), 1.0), "centre"),
        (Ball, ((0.0, math.inf), 1.0), "centre"),
    ],
)
def test_a_domain_that_is_none_is_refused(kind: Any, figures: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        kind(*figures)


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e-101, 1e-99, 1e98, 1e101, 1e200, 1e307])
def test_extreme_bounds_are_either_refused_or_right(size: float) -> None:
    try:
        box, ball = Box((0.0, 0.0), (3 * size, 4 * size)), Ball((0.0, 0.0), size)
    except InvalidInput:
        return
    inside = ball.truncate(np.array([[3 * size, 4 * size]]))[0] / size
    found = box.diameter / size, ball.diameter / size, *inside, ball.fold(np.array([[1.25 * size, 0.0]]))[0, 0] / size
    assert found == pytest.approx((5, 2, 0.6, 0.8, 0.75), rel=1e-9)

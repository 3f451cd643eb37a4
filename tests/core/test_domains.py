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

EXACT = settings(derandomize=True, deadline=None, max_examples=200)

BOXES = [
    Box((-1.0, -1.0), (1.0, 1.0)),
    Box((0.0,), (0.3,)),
    Box((-5.0, 100.0, 1e-3), (7.0, 101.0, 2e-3)),
    Box((0.0,) * 50, (255.0,) * 50),
    Box((-1e6, 0.0), (3e6, 1e-5)),
    Box((-1e90,), (1e90,)),
    Box((0.0, 0.0), (1e-90, 2e-90)),
]
BALLS = [
    Ball((0.0, 0.0), 1.0),
    Ball((3.0,), 0.7),
    Ball((-1.0, 2.0, 1e3), 17.3),
    Ball((0.0,) * 60, 1e-5),
    Ball((1e5, -1e5), 1e6),
]


def inside_box(box: Box, n: int, seed: int) -> np.ndarray:
    g = np.random.default_rng(seed)
    rows = g.uniform(-1, 1, (n, box.dimension)) * box.half_widths + box.middle
    return np.vstack([np.clip(rows, box.lower, box.upper), box.lower, box.upper, box.middle])


def norm_squared(point: Any) -> int:
    return sum(int(v) ** 2 for v in point)


finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
moderate = st.floats(-1e6, 1e6)
widths = st.floats(1e-3, 1e6)


@given(st.lists(st.tuples(moderate, widths), min_size=1, max_size=8))
@EXACT
def test_the_unit_of_a_box_is_the_power_of_two_that_fills_the_reach(columns: list[tuple[float, float]]) -> None:
    box = Box([low for low, _ in columns], [low + width for low, width in columns])
    d = box.dimension
    mantissa, _ = math.frexp(box.unit)
    assert mantissa == 0.5
    assert (abs(box.sides * box.unit - box.half_widths) < box.unit).all()
    assert norm_squared(box.sides) <= box.max_norm**2
    assert box.max_norm == 1 or norm_squared(box.sides) > (box.max_norm - 1) ** 2
    assert REACH / 2 - 2 * math.sqrt(d) - 2 <= box.max_norm <= REACH


@given(st.lists(moderate, min_size=1, max_size=8), widths)
@EXACT
def test_the_unit_of_a_ball_is_the_power_of_two_that_fills_the_reach(center: list[float], radius: float) -> None:
    ball = Ball(center, radius)
    mantissa, _ = math.frexp(ball.unit)
    assert mantissa == 0.5
    assert ball.max_norm * ball.unit <= radius < (ball.max_norm + 1) * ball.unit
    assert REACH / 2 - math.sqrt(ball.dimension) - 2 <= ball.max_norm <= REACH
    assert (ball.sides == ball.max_norm).all()


@pytest.mark.parametrize("box", BOXES)
def test_rows_outside_a_box_are_clipped_to_it(box: Box) -> None:
    g = np.random.default_rng(1)
    rows = box.middle + box.half_widths * g.normal(0, 3, (200, box.dimension))
    rows[0], rows[1] = 1.7e308, -1.7e308
    clipped = np.clip(rows, box.lower, box.upper)
    assert not np.array_equal(rows, clipped)
    snapped = box.snap(rows)
    assert snapped.dtype == np.int64
    assert np.array_equal(snapped, box.snap(clipped))
    assert (abs(snapped) <= box.sides).all()
    upper, lower = box.snap(np.array([box.upper, box.lower]))
    assert np.array_equal(upper, -lower)
    assert (abs(box.sides - upper) <= 1).all()


@pytest.mark.parametrize("domain", BOXES + BALLS)
def test_a_row_snaps_to_the_same_point_alone_in_any_order_and_in_any_layout(domain: Box | Ball) -> None:
    g = np.random.default_rng(2)
    rows = domain.middle + (domain.diameter / 2) * g.normal(0, 1, (300, domain.dimension))
    before = rows.copy()
    together = domain.snap(rows)
    assert np.array_equal(rows, before)
    assert np.array_equal(np.vstack([domain.snap(row[None]) for row in rows]), together)
    order = g.permutation(len(rows))
    assert np.array_equal(domain.snap(rows[order]), together[order])
    assert np.array_equal(domain.snap(np.asfortranarray(rows)), together)
    assert domain.snap(rows[:0]).shape == (0, domain.dimension)


def test_numbers_of_every_type_snap_like_the_same_float() -> None:
    whole = np.array([[0, 255, 300], [7, 1, -3]])
    for domain in (Box((0,) * 3, (255,) * 3), Ball((0,) * 3, 200.0)):
        expected = domain.snap(whole.astype(float))
        for dtype in (np.int16, np.int64, np.float32):
            assert np.array_equal(domain.snap(whole.astype(dtype)), expected)
    assert Box([0, 1], [1, 2]) == Box((0.0, 1.0), (1.0, 2.0))


@pytest.mark.parametrize("box", BOXES)
def test_a_box_moves_an_inner_row_by_at_most_half_a_unit_and_a_border_row_by_less_than_one(box: Box) -> None:
    rows = inside_box(box, 500, 4)
    off = abs(box.real(box.snap(rows)) - rows) / box.unit
    rounding = 4 * np.finfo(float).eps * np.abs([box.lower, box.upper]).max(axis=0) / box.unit
    inner = abs(rows - box.middle) <= (box.sides + 0.5) * box.unit
    assert (off <= np.where(inner, 0.5, 1.0) + rounding).all()


@pytest.mark.parametrize("ball", BALLS)
def test_a_ball_moves_inner_rows_by_half_a_unit_and_border_rows_by_a_few(ball: Ball) -> None:
    g, d = np.random.default_rng(5), ball.dimension
    direction = g.normal(0, 1, (500, d))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    rounding = 8 * np.finfo(float).eps * (np.abs(ball.center).max() + ball.radius) / ball.unit
    inner = ball.middle + direction * ball.radius * g.random((500, 1)) * (1 - 4 * math.sqrt(d) / ball.max_norm)
    assert (abs(ball.real(ball.snap(inner)) - inner) / ball.unit <= 0.5 + rounding).all()
    border = ball.middle + direction * ball.radius
    off = np.linalg.norm(ball.real(ball.snap(border)) - border, axis=1) / ball.unit
    assert (off <= 2 + 2 * math.sqrt(d) + rounding).all()


@pytest.mark.parametrize("domain", BOXES + BALLS)
def test_a_lattice_point_that_is_made_real_snaps_back_to_itself(domain: Box | Ball) -> None:
    rows = domain.middle + (domain.diameter / 3) * np.random.default_rng(6).normal(0, 1, (300, domain.dimension))
    points = domain.snap(rows)
    assert np.array_equal(domain.snap(domain.real(points)), points)


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


def test_rows_far_beyond_a_ball_keep_their_direction() -> None:
    ball = Ball((0.0, 0.0), 1.0)
    for length in (1.5, 1e3, 1e15):
        ((x, y),) = ball.snap(np.array([[3.0, -4.0]]) * length) / ball.max_norm
        assert (x, y) == pytest.approx((0.6, -0.8), abs=1e-5)


def test_the_widest_rows_cause_no_warning() -> None:
    """A warning would tell whoever reads the log that such a row is there."""
    Ball((0.0, 0.0), 1e-3).snap(np.array([[1e308, -1e308]]))
    Ball((-1e308, 0.0), 1.0).snap(np.array([[1.7e308, 0.0]]))


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


@pytest.mark.parametrize("ball", BALLS)
def test_a_ball_folds_along_the_ray_from_its_centre(ball: Ball) -> None:
    g = np.random.default_rng(8)
    direction = g.normal(0, 1, (100, ball.dimension))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    for outside, inside in ((0.4, 0.4), (1.0, 1.0), (1.25, 0.75), (1.9, 0.1), (2.3, 0.3)):
        folded = ball.fold(ball.middle + direction * (outside * ball.radius))
        assert (abs(folded - (ball.middle + direction * (inside * ball.radius))) <= 1e-9 * ball.radius).all()


@pytest.mark.parametrize("domain", BOXES + BALLS)
def test_truncation_moves_points_to_the_nearest_point_of_the_domain(domain: Box | Ball) -> None:
    points = domain.middle + domain.diameter * np.random.default_rng(9).normal(0, 1, (200, domain.dimension))
    inside = domain.truncate(points)
    if isinstance(domain, Box):
        assert np.array_equal(inside, np.clip(points, domain.lower, domain.upper))
    else:
        away = points - domain.middle
        length = np.linalg.norm(away, axis=1, keepdims=True)
        nearest = domain.middle + away / length * np.minimum(length, domain.radius)
        assert np.allclose(inside, nearest, rtol=0, atol=1e-9 * domain.radius)
    assert np.allclose(domain.truncate(inside), inside, rtol=1e-12)


@pytest.mark.alarm(1e-8)
@pytest.mark.parametrize("ball", [Ball((0.0,), 2.0), Ball((1.0, 2.0), 3.0), Ball((0.0,) * 5, 1.0)])
def test_samples_of_a_ball_are_uniform_over_its_volume(ball: Ball, alarm: Alarm) -> None:
    """Chi-square over 20 shells of equal volume, and a sign test."""
    points = ball.sample(np.random.default_rng(10), 20_000, 0.5) - ball.middle
    share = (np.linalg.norm(points, axis=1) / (ball.radius - 0.5)) ** ball.dimension
    assert (share <= 1 + 1e-9).all()
    alarm.fits(
        stats.chisquare(np.histogram(share, 20, (0, 1 + 1e-9))[0]).pvalue,
        stats.binomtest(int((points[:, 0] > 0).sum()), len(points)).pvalue,
    )


@pytest.mark.alarm(1e-8)
def test_samples_of_a_box_are_uniform_and_keep_their_margin(alarm: Alarm) -> None:
    """Chi-square over 20 slices per column. A column narrower than twice the margin is left at its middle."""
    box = Box((0.0, -1.0, 5.0), (10.0, 1.0, 5.5))
    points = box.sample(np.random.default_rng(11), 20_000, 0.75)
    for j, (low, high) in enumerate([(0.75, 9.25), (-0.25, 0.25)]):
        assert points[:, j].min() >= low
        assert points[:, j].max() <= high
        alarm.fits(stats.chisquare(np.histogram(points[:, j], 20, (low, high))[0]).pvalue, of=2)
    assert (points[:, 2] == 5.25).all()


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ((1.0,), (0.0,), "column 0 are 1 and 0: the lower one must be smaller"),
        ((0.0, 5.0), (1.0, 5.0), "column 1 are 5 and 5"),
        ((math.nan,), (1.0,), "lower bounds must be finite"),
        ((0.0,), (math.nan,), "upper bounds must be finite"),
        ((0.0,), (math.inf,), "upper bounds must be finite"),
        ((-math.inf, 0.0), (1.0, 1.0), "lower bounds must be finite"),
        ((0.0, 0.0), (1.0,), "got 2 and 1"),
        ((), (), "at least one"),
        ((0.0,), (1e-310,), "another unit"),
    ],
)
def test_a_box_that_is_none_is_refused(lower: Any, upper: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Box(lower, upper)


@pytest.mark.parametrize(
    ("center", "radius"),
    [
        *(((0.0,), radius) for radius in (0.0, -1.0, math.nan, math.inf)),
        ((), 1.0),
        ((math.nan,), 1.0),
        ((0.0, math.inf), 1.0),
    ],
)
def test_a_ball_that_is_none_is_refused(center: Any, radius: float) -> None:
    with pytest.raises(InvalidInput, match=r"positive finite radius|centre"):
        Ball(center, radius)


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e-101, 1e-99, 1e-30, 1e30, 1e98, 1e101, 1e200, 1e307])
def test_extreme_bounds_are_either_refused_or_right(size: float) -> None:
    try:
        box, ball = Box((0.0, 0.0), (3 * size, 4 * size)), Ball((0.0, 0.0), size)
    except InvalidInput:
        return
    expected = {"rel": 1e-9, "abs": 0.0}
    assert box.diameter == pytest.approx(5 * size, **expected)
    assert ball.diameter == pytest.approx(2 * size, **expected)
    assert ball.truncate(np.array([[3 * size, 4 * size]]))[0] == pytest.approx([0.6 * size, 0.8 * size], **expected)
    assert ball.fold(np.array([[1.25 * size, 0.0]]))[0] == pytest.approx([0.75 * size, 0.0], **expected)


def test_a_wide_balls_middle_is_inside_without_a_warning() -> None:
    """Its radius over a norm of zero is beyond 64-bit numbers."""
    with np.errstate(all="raise"):
        assert Ball((0.0, 0.0), 9e99).truncate(np.zeros((1, 2))).tolist() == [[0.0, 0.0]]

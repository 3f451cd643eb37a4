"""Norm bounds and clipping to them, against Python's own integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from cloister.core.domains import REACH
from cloister.core.errors import InvalidInput
from cloister.core.lattice import Bound, shrink, squared_lengths

EXACT = settings(derandomize=True, deadline=None, max_examples=120)
LEAST, MOST = -(2**63), 2**63 - 1

coordinates = st.one_of(
    st.integers(-5, 5), st.integers(-(2**21), 2**21), st.integers(LEAST, MOST), st.sampled_from([LEAST, MOST])
)
norms = st.one_of(st.integers(1, 20), st.integers(1, 2 * REACH), st.sampled_from([1, 2, REACH, 2 * REACH]))


def l1(vector: Any) -> int:
    return sum(abs(int(v)) for v in vector)


def l2_squared(vector: Any) -> int:
    return sum(int(v) ** 2 for v in vector)


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, Bound]:
    """Vectors and a bound of theirs."""
    d, l2 = draw(st.integers(1, 6)), draw(norms)
    vectors = draw(st.lists(st.lists(coordinates, min_size=d, max_size=d), min_size=1, max_size=8))
    implied = math.isqrt(d * l2**2)
    return np.array(vectors, np.int64), Bound(l2, d, draw(st.one_of(st.just(implied), st.integers(1, implied))))


@given(cases())
@example((np.array([[3, 4], [-4, 3], [5, 0], [5, 1]]), Bound(5, 2)))
@example((np.array([[2, -1], [3, 0], [3, 1]]), Bound(3, 2, 3)))
@example((np.array([[REACH, 0], [REACH, 1]]), Bound(REACH, 2)))
@example((np.array([[5, 5, 5]]), Bound(8, 3)))
@example((np.array([[3, 3, 3]]), Bound(100, 3, 7)))
@EXACT
def test_no_vector_is_ever_beyond_its_bound_and_each_is_clipped_once_and_by_itself(case: Any) -> None:
    vectors, bound = case
    kept, together = vectors.copy(), shrink(vectors, bound)
    assert np.array_equal(vectors, kept)
    for before, after in zip(vectors, together, strict=True):
        assert l2_squared(after) <= bound.l2**2
        assert l1(after) <= bound.l1
        assert all(abs(int(a)) <= abs(int(b)) and int(a) * int(b) >= 0 for a, b in zip(after, before, strict=True))
        if l2_squared(before) <= bound.l2**2 and l1(before) <= bound.l1:
            assert np.array_equal(after, before)
        assert np.array_equal(shrink(before[None], bound)[0], after)
    assert np.array_equal(shrink(vectors[::-1], bound), together[::-1])
    assert np.array_equal(shrink(together, bound), together)


@pytest.mark.parametrize("d", [1, 2, 7, 50])
def test_a_clipped_vector_keeps_its_direction_and_nearly_the_whole_bound(d: int) -> None:
    g = np.random.default_rng(d)
    wild = g.integers(-(2**40), 2**40, (500, d))
    bound = Bound(REACH, d)
    for before, after in zip(wild, shrink(wild, bound), strict=True):
        assert math.sqrt(l2_squared(after)) >= bound.l2 * (1 - 2.0**-29) - math.sqrt(d)
        exact = before * (bound.l2 / math.sqrt(l2_squared(before)))
        assert (abs(after - exact) <= 1 + bound.l2 * 2.0**-29).all()


def test_many_large_coordinates_are_clipped_alike_in_every_memory_layout() -> None:
    """Above 2^53 sums of squares are rounded: their order must not depend on how the batch lies in memory."""
    wild = np.random.default_rng(0).integers(LEAST, MOST, (40, 3000))
    bound = Bound(REACH, 3000)
    together = shrink(wild, bound)
    assert all(l2_squared(v) <= bound.l2**2 for v in together)
    assert np.array_equal(shrink(np.asfortranarray(wild), bound), together)
    assert np.array_equal(shrink(wild[5:6], bound), together[5:6])


@pytest.mark.parametrize(("l2", "dimension", "implied"), [(1, 1, 1), (5, 2, 7), (5, 4, 10), (REACH, 3, 1816186)])
def test_the_l1_norm_follows_from_the_l2_norm(l2: int, dimension: int, implied: int) -> None:
    bound = Bound(l2, dimension)
    assert bound.l1 == bound.implied == implied
    assert Bound(l2, dimension, implied) == bound


@pytest.mark.parametrize("arguments", [(5, 2, 8), (5, 2, 0), (5, 2, -1), (0, 2), (-1, 2), (1, 0), (2**30, 2)])
def test_a_bound_that_cannot_be_is_refused(arguments: tuple[int, ...]) -> None:
    with pytest.raises((InvalidInput, ValueError), match=r"L1 bound|>= 1|too large"):
        Bound(*arguments)


@pytest.mark.parametrize(("dimension", "most"), [(3, 2**30), (2**15, 2**23)])
def test_a_squared_length_is_the_double_next_to_it(dimension: int, most: int) -> None:
    """Beyond 2^53 too, where the order of a sum of floats would be seen: no lattice point is longer than 2^61."""
    rows = np.random.default_rng(5).integers(-most, most, (20, dimension))
    rows[0] = most - 1
    exact = [float(l2_squared(row)) for row in rows]
    assert squared_lengths(rows).tolist() == exact
    beside = squared_lengths(np.vstack([rows, np.full(dimension, np.iinfo(np.int64).min)]))
    assert beside[:-1].tolist() == exact, "a row beside one that no lattice has"
    assert beside[-1] >= 2.0**62


def test_a_squared_length_of_2_to_62_and_more_is_that_of_its_row_alone() -> None:
    """No lattice point has one, and a row beside it that is longer still changes nothing."""
    rows = np.random.default_rng(6).integers(2**30, 7 * 2**30 // 5, (20, 4))
    assert all(2**62 <= l2_squared(row) < 2**63 for row in rows)
    beside = squared_lengths(np.vstack([rows, np.full(4, np.iinfo(np.int64).min)]))
    assert squared_lengths(rows).tolist() == beside[:-1].tolist()

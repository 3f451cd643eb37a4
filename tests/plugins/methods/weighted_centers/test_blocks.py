"""The blocks of Stemmer's method: hashing, boxes, regions, assignments; the paper's lemmas as properties.

The conformance kit on the buckets and vectors of Stemmer's method.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.core.domains import Ball, Box, Domain
from cloister.core.errors import InvalidInput
from cloister.plugins.methods.weighted_centers.buckets import Assigned, HashValues, Reassigned, positions
from cloister.plugins.methods.weighted_centers.partitions import Prefixes, PStable, collision, distance_of, inside
from tests.alarms import Alarm
from tests.plugins.methods.weighted_centers.stemmer_cells import (
    BALL,
    SEED,
    assigned,
    centred,
    hash_of,
    intervals_of,
    reassigned,
    some_rows,
)


@pytest.mark.parametrize("distance", [0.1, 0.5, 1.0, 3.0, 20.0])
def test_one_projection_tells_points_apart_as_often_as_the_formula_says(distance: float) -> None:
    """Against the integral of Datar et al., int_0^w (1/s) f(t/s) (1 - t/w) dt, with the density f of |N(0, 1)|."""
    t = np.linspace(0, 1 / distance, 200_001)
    f = math.sqrt(2 / math.pi) * np.exp(-(t**2) / 2) * (1 - t * distance)
    assert collision(distance) == pytest.approx(float(np.trapezoid(f, t)), rel=1e-6)
    assert distance_of(collision(distance)) == pytest.approx(distance, rel=1e-7)


def test_a_family_keeps_its_promise_at_r_and_at_c_r() -> None:
    family = PStable(10.0, 0.7, 0.02, 4)
    assert collision(10.0 / family.width) ** 4 == pytest.approx(0.7)
    assert collision(family.c * 10.0 / family.width) ** 4 == pytest.approx(0.02)
    with pytest.raises(InvalidInput, match="chances"):
        PStable(10.0, 0.02, 0.7, 4)


@pytest.mark.alarm(1e-7)
def test_sampled_functions_collide_as_often_as_the_family_says(alarm: Alarm) -> None:
    """2,000 functions, two pairs of points."""
    family, n, step = PStable(1000.0, 0.7, 0.02, 4), 2000, 1000
    rows = np.array([[0, 0, 0], [step, 0, 0], [0, round(family.c * step), 0]], np.int64)
    found = np.array([family.sample(3, 40, SEED.child("family", i)).of(rows) for i in range(n)])
    for other, chance in ((1, 0.7), (2, 0.02)):
        share = (found[:, 0] == found[:, other]).mean()
        alarm.near(share, chance, math.sqrt(chance * (1 - chance) / n), of=2)


@pytest.mark.alarm(1e-8)
def test_hash_values_are_spread_over_all_their_bits(alarm: Alarm) -> None:
    """Far points fill a range of 2^12 about as balls fill bins: empty bins, by their mean and deviation."""
    domain, n, bins = Ball((0.0,) * 8, 1.0), 8000, 4096
    h = PStable(domain.max_norm / 1e4, 0.5, 0.01, 8).sample(8, 12, SEED.child("spread"))
    empty = bins - len(np.unique(h.of(some_rows(domain, SEED, n))))
    mean = bins * (1 - 1 / bins) ** n
    deviation = math.sqrt(bins * (math.exp(-n / bins) - (1 + n / bins) * math.exp(-2 * n / bins)))
    alarm.near(empty, mean, deviation)


@pytest.mark.parametrize("domain", [BALL, Box((-1.0, 0.0), (1.0, 5.0))], ids=["ball", "box"])
def test_a_box_holds_a_cluster_that_fits_in_an_interval_and_no_row_is_far_from_its_middle(domain: Domain) -> None:
    """Steps 4 to 6: points that differ by at most p on every axis are within one interval of each other's; and a row in
    a box is within half a diagonal of its middle, up to half a lattice step per column."""
    intervals = intervals_of(domain, SEED)
    g = np.random.default_rng(602)
    rows = some_rows(domain, SEED, 4000)
    near = rows + g.integers(-1, 2, rows.shape) * (domain.max_norm // 12 // domain.dimension)
    found, moved = intervals.of_rows(rows), intervals.of_rows(near)
    assert inside(moved, found).all()
    assert (found >= 0).all()
    assert (found < intervals.number).all()
    any_box = found[g.permutation(len(found))]
    boxed = inside(found, any_box)
    assert boxed.any()
    away = np.linalg.norm(rows - intervals.middles(any_box), axis=1)
    assert (away[boxed] <= intervals.half_diagonal + math.sqrt(domain.dimension)).all()


def test_vectors_of_a_region_are_relative_to_its_middle_and_of_other_rows_zero() -> None:
    vectors, rows = centred(BALL, SEED), some_rows(BALL, SEED, 3000)
    ids = vectors.cells.locate(rows)
    values = vectors.values(rows, ids)
    outside = ids[:, 0] < 0
    assert outside.any()
    assert not outside.all()
    assert not values[outside].any()
    assert np.array_equal(values[~outside] + vectors.middles[ids[~outside, 0]], rows[~outside])
    assert np.linalg.norm(values, axis=1).max() <= vectors.bound.l2 + 3


def test_positions_are_those_in_the_list_as_it_is_given() -> None:
    assert positions(np.array([9, 2, 5]), np.array([5, 9, 4, 2, 10])).tolist() == [2, 0, -1, 1, -1]
    assert positions(np.zeros(0, np.int64), np.array([5, 9])).tolist() == [-1, -1]


def test_a_user_is_assigned_to_her_centre_or_to_a_nearer_one_of_a_smaller_radius() -> None:
    """WeightedCenters, step 2, against a loop over rows."""
    a, rows = assigned(BALL, SEED), some_rows(BALL, SEED, 500)
    (one, other), chosen = a.own, a.chosen(rows)
    for row, at in zip(rows, chosen.tolist(), strict=True):
        squares = ((a.places - row) ** 2).sum(axis=1)
        found, wanted = int(other.created.closest(row[None])[0][0]), None
        if found >= 0:
            wanted = other.start + found  # the smallest radius: no centre can be preferred
        else:
            found = int(one.created.closest(row[None])[0][0])
            smaller = np.flatnonzero(a.ranks > 0)
            nearest = int(smaller[squares[smaller].argmin()])
            if found >= 0:
                wanted = nearest if squares[nearest] < squares[found] else found
        assert at == (int(squares.argmin()) if wanted is None else wanted)


def test_reassigned_users_are_at_the_nearest_centre_that_is_left_and_others_stay() -> None:
    b, rows = reassigned(BALL, SEED), some_rows(BALL, SEED, 2000)
    before, after = b.assigned.chosen(rows), b.locate(rows)[:, 0]
    stays = b.kept[before]
    assert (after[stays] == before[stays]).all()
    ids = np.flatnonzero(b.kept)
    squares = ((rows[~stays, None] - b.assigned.places[ids]) ** 2).sum(axis=2)
    assert (after[~stays] == ids[squares.argmin(axis=1)]).all()


def test_where_nothing_was_found_nobody_is_in_a_bucket() -> None:
    none, rows = np.zeros((0, 5), np.int64), some_rows(BALL, SEED, 10)
    cells = Reassigned(Assigned((), none, np.zeros(0, np.int64), BALL.max_norm, 4), np.zeros(0, bool))
    assert (cells.locate(rows) == -1).all()
    assert cells.space.sizes == (4,)


def test_without_procedures_of_their_own_all_are_at_the_nearest() -> None:
    places, rows = some_rows(BALL, SEED.child("places"), 7), some_rows(BALL, SEED, 500)
    cells = Assigned((), places, np.zeros(7, np.int64), BALL.max_norm, 16)
    squares = ((rows[:, None] - places) ** 2).sum(axis=2)
    assert np.array_equal(cells.chosen(rows), squares.argmin(axis=1))


def test_a_hash_value_is_in_the_bucket_of_its_prefix_at_every_level() -> None:
    h, rows = hash_of(BALL, SEED), some_rows(BALL, SEED, 300)
    cells, values = HashValues(h, Prefixes((2, 6))), h.of(rows)
    assert np.array_equal(cells.locate(rows), np.stack([values >> 4, values], axis=1))
    assert cells.space.sizes == (4, 64)

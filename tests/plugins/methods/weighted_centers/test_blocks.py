"""The blocks of Stemmer's method: hash functions that tell points apart, and values that are searched by prefixes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.core.domains import Ball, Box, Domain
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.types import Ints
from cloister.plugins.methods.weighted_centers.partitions import (
    Intervals,
    Prefixes,
    PStable,
    collision,
    distance_of,
    inside,
)
from cloister.plugins.oracles.local.counts.local_hashing import ExplicitHistogram
from tests.alarms import Alarm
from tests.plugins.oracles.local.counts.test_counts import opened, released
from tests.plugins.tables import Counted


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
    """1,000 functions, two pairs of points."""
    family, n, step = PStable(1000.0, 0.7, 0.02, 4), 1000, 1000
    rows = np.array([[0, 0, 0], [step, 0, 0], [0, round(family.c * step), 0]], np.int64)
    found = np.array([family.sample(3, 40, PublicRng.from_seed(600).child("family", i)).of(rows) for i in range(n)])
    for other, chance in ((1, 0.7), (2, 0.02)):
        share = (found[:, 0] == found[:, other]).mean()
        alarm.near(share, chance, math.sqrt(chance * (1 - chance) / n), of=2)


# Searching for heavy values by prefixes


TREE = Prefixes((6, 12, 18, 24, 30, 36, 42, 48))


def test_without_noise_the_heavy_values_come_back_in_order_and_few_buckets_are_looked_at() -> None:
    values = np.repeat(np.array([2**47 + 5, 77, 2**40 + 1, 2**40 + 2]), [900, 500, 40, 20])
    counts = Counted(TREE.of(values), 10.0)
    ids, found = TREE.heavy(counts, most=10)
    assert ids.tolist() == [2**47 + 5, 77, 2**40 + 1]
    assert found.tolist() == [900, 500, 40]
    assert sum(counts.looked) <= 64 * 4 * 8
    assert TREE.heavy(counts, most=1)[0].tolist() == [2**47 + 5]


@pytest.mark.parametrize("bits", [(), (0, 3), (3, 3), (5, 4), (8, 63)])
def test_lengths_that_make_no_tree_are_refused(bits: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="increasing numbers from 1 to 62"):
        Prefixes(bits)


@pytest.mark.alarm(1e-8)
def test_heavy_values_among_2_to_the_48_are_found_in_one_local_round(alarm: Alarm) -> None:
    """Three values, each with over 16 standard errors of rows, and 12,000 users with values of their own. A heavy value
    is lost with chance under 1e-20 at each of 8 levels, and none of the 1,600 others that are looked at passes 6.5
    deviations but with chance 1e-7."""
    n, heavy = 60_000, np.array([2**47 + 12345, 99, 2**33 + 7])
    values = np.concatenate([np.repeat(heavy, 16_000), np.random.default_rng(1).integers(0, 2**48, n - 48_000)])
    table = released(opened(ExplicitHistogram(), TREE.space.sizes, 2.0, n), TREE.of(values))
    error = table.standard_error(heavy[:1], 7)[0]
    assert error * 16 < 16_000
    ids, counts = TREE.heavy(table, most=20, deviations=6.5)
    assert sorted(ids.tolist()) == sorted(heavy.tolist())
    alarm.near(counts, 16_000, np.hypot(error, np.sqrt(7 * 16_000)))


BALL = Ball((0.0,) * 5, 1.0)


SEED = PublicRng.from_seed(600)


def some_rows(domain: Domain, rng: PublicRng, n: int) -> Ints:
    return domain.snap(domain.sample(rng.generator(), n, 0.0))


@pytest.mark.parametrize("domain", [BALL, Box((-1.0, 0.0), (1.0, 5.0))], ids=["ball", "box"])
def test_a_box_holds_a_cluster_that_fits_in_an_interval_and_no_row_is_far_from_its_middle(domain: Domain) -> None:
    """Steps 4 to 6: points that differ by at most p on every axis are within one interval of each other's; and a row in
    a box is within half a diagonal of its middle, up to half a lattice step per column."""
    intervals = Intervals.of(domain, domain.max_norm / 4, SEED.child("intervals"))
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

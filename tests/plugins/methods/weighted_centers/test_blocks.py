"""The blocks of Stemmer's method: hash functions that tell points apart, and values that are searched by prefixes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.plugins.methods.weighted_centers.partitions import (
    Prefixes,
    PStable,
    collision,
    distance_of,
)
from tests.alarms import Alarm
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

"""Searching for heavy values by prefixes."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.core.errors import InvalidInput
from cloister.core.types import Floats, Ints
from cloister.plugins.methods.weighted_centers.partitions import Prefixes
from cloister.plugins.oracles.local.counts.local_hashing import ExplicitHistogram
from tests.alarms import Alarm
from tests.plugins.oracles.local.counts.test_counts import opened, released

TREE = Prefixes((6, 12, 18, 24, 30, 36, 42, 48))


class Exact:
    """Counts without noise, which notes how much it is asked."""

    def __init__(self, buckets: Ints) -> None:
        self.buckets, self.lookups = buckets, 0

    def at(self, ids: Ints, level: int = 0) -> Floats:
        self.lookups += len(ids)
        found, counts = np.unique(self.buckets[:, level], return_counts=True)
        known = dict(zip(found.tolist(), counts.tolist(), strict=True))
        return np.array([known.get(i, 0) for i in ids.tolist()], np.float64)

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), 10.0)


def test_without_noise_the_heavy_values_come_back_in_order_and_few_buckets_are_looked_at():
    values = np.repeat(np.array([2**47 + 5, 77, 2**40 + 1, 2**40 + 2]), [900, 500, 40, 20])
    counts = Exact(TREE.of(values))
    ids, found = TREE.heavy(counts, most=10)
    assert ids.tolist() == [2**47 + 5, 77, 2**40 + 1]
    assert found.tolist() == [900, 500, 40]
    assert counts.lookups <= 64 * 4 * 8
    assert TREE.heavy(Exact(TREE.of(values)), most=1)[0].tolist() == [2**47 + 5]


@pytest.mark.alarm(1e-8)
def test_heavy_values_among_2_to_the_48_are_found_in_one_local_round(alarm: Alarm):
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


def test_nothing_heavy_gives_an_empty_list():
    table = released(opened(ExplicitHistogram(), TREE.space.sizes, 1.0, 500), np.full((500, 8), -1))
    ids, counts = TREE.heavy(table, most=5, deviations=6.0)
    assert len(ids) == len(counts) == 0


@pytest.mark.parametrize("bits", [(), (0, 3), (3, 3), (5, 4), (8, 63)])
def test_lengths_that_make_no_tree_are_refused(bits):
    with pytest.raises(InvalidInput, match="increasing numbers from 1 to 62"):
        Prefixes(bits)

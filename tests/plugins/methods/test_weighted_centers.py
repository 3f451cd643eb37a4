"""Stemmer's method: who is asked what, what it costs, what comes out; and the blocks that it is made of."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from cloister.accounting.composition import Spent
from cloister.core.domains import Ball, Box, Domain
from cloister.core.errors import InvalidInput
from cloister.metrics import nicv
from cloister.plugins.methods.weighted_centers.candidates import in_w
from cloister.plugins.methods.weighted_centers.hashes import PStable
from cloister.plugins.methods.weighted_centers.intervals import Intervals, inside
from cloister.plugins.methods.weighted_centers.prefixes import Prefixes
from cloister.run.request import PreparedRun
from tests.alarms import Alarm
from tests.plugins.methods.runs import SEED, fitted, groups, planned
from tests.plugins.tables import Counted

OPTIONS: dict[str, Any] = {"radii": 2, "repetitions": 2}


def plan(method: str = "weighted-centers", **request: Any) -> PreparedRun:
    return planned(method, 4, 2, **request)


@pytest.mark.parametrize(
    ("method", "k"), [("weighted-centers", 4), ("weighted-centers-median", 3), ("nearest-centers", 4)]
)
def test_clusters_are_found_under_local_trust(method: str, k: int) -> None:
    rows, centers = groups(60_000, k, 3, ball=True)
    result = fitted(method, rows, k, epsilon=4.0)
    assert np.linalg.norm(centers[:, None] - result.centers, axis=2).min(axis=1).max() < 0.15
    assert np.abs(result.weights / (60_000 / k) - 1).max() < 0.25


def test_in_the_papers_form_a_user_is_in_a_part_for_every_radius_and_each_radius_has_everybody_once() -> None:
    """By default she is in the part of the radius that she is asked about alone."""
    prepared = plan(options=OPTIONS | {"assignment": "created-all"})
    method = prepared.composed.value
    groups_of_users = method.groups(prepared.problem, 2, 2, SEED)
    everywhere = [method.creating(group, 2) for group in groups_of_users]
    assert everywhere == [((0, m), (1, m)) for m in (0, 1)] * 2
    asked = plan(options=OPTIONS).composed.value
    assert [asked.creating(group, 2) for group in groups_of_users] == [((r, m),) for r in (0, 1) for m in (0, 1)]
    rows, centers = groups(20_000, 2, 2, 0.01, ball=True)
    result = fitted("weighted-centers", rows, 2, epsilon=8.0, options=OPTIONS | {"assignment": "created-all"})
    assert np.linalg.norm(centers[:, None] - result.centers, axis=2).min(axis=1).max() < 0.15


def test_without_lengths_of_its_own_it_takes_the_papers_from_c() -> None:
    """far_chance sets c: 5 c radii, and 2 c sqrt(ln(d n / beta)) radii over sqrt(d)."""
    options = OPTIONS | {"created_within": None, "interval_length": None}
    near, far = (plan(options=options | {"far_chance": chance}).composed.value for chance in (0.01, 0.1))
    problem = plan().problem
    assert near.family(1.0).c > far.family(1.0).c
    for method in (near, far):
        expected = 2 * method.family(1.0).c * math.sqrt(math.log(2 * 10**6 / 0.05) / 2)
        assert method._interval(problem, 1.0) == pytest.approx(expected)


def test_exact_counts_beside_private_sums_are_refused_before_anything_is_asked() -> None:
    with pytest.raises(InvalidInput, match="or none"):
        plan(components={"counts": "exact", "sums": "discrete-laplace"}, not_private=True)


def test_long_hash_values_are_searched_by_prefix_and_what_is_published_is_plain_data() -> None:
    rows, _ = groups(60_000, 3, 2, 0.02, ball=True)
    result = fitted("weighted-centers", rows, 3, epsilon=4.0, options={"hash_bits": 24, "prefix_bits": 6})
    assert nicv(rows, result.centers) < 0.05
    details = json.loads(json.dumps(result.as_dict()["details"]))
    assert details["candidates"] >= details["weighted"] >= 3
    assert plan(options={"hash_bits": 48, "prefix_bits": 20}).composed.value.prefixes.bits == (8, 28, 48)


@pytest.mark.parametrize(
    "options",
    [{"radii": 20}, {"largest_radius": 1e-7}, {"interval_length": 1e-6}, {"hash_bits": 62}, {"hash_bits": 61}],
)
def test_more_buckets_than_can_be_asked_for_are_refused_before_anybody_pays(options: dict[str, Any]) -> None:
    """A step later the server could not close the first round, which people have paid for, or both sides would run out
    of memory."""
    with pytest.raises(
        InvalidInput, match="use fewer radii, a larger largest_radius or interval_length, or fewer hash_bits"
    ):
        plan(epsilon=8.0, options=OPTIONS | options).forecast(SEED)


def test_w_is_never_empty_where_there_is_a_candidate() -> None:
    assert in_w(np.array([5.0, 1.0]), np.array([3.0, 3.0])).tolist() == [True, False]
    assert in_w(np.array([-5.0, 1.0]), np.array([3.0, 3.0])).tolist() == [False, True]


def test_under_shuffled_trust_steps_share_the_budget() -> None:
    """People draw their role anew in each round, so that a share of them in one round is not disjoint from one in
    another."""
    shuffled = {"delta": 1e-6, "components": {"counts": "amplified-counts", "sums": "amplified-vectors"}}
    rounds = plan(options=OPTIONS, **shuffled).forecast(SEED)
    together = Spent.on([event for asked in rounds for event in asked.events])
    assert sum(Spent.on(asked.events).pure for asked in rounds) == pytest.approx(together.pure) == pytest.approx(1.0)
    with pytest.raises(InvalidInput, match="two rounds"):
        plan(options=OPTIONS | {"divide_steps": "users"}, **shuffled).forecast(SEED)


# Its blocks: hash functions that tell points apart, values that are searched by prefixes, boxes


@pytest.mark.alarm(1e-7)
def test_sampled_functions_collide_as_often_as_the_family_says(alarm: Alarm) -> None:
    """1,000 functions, two pairs of points."""
    family, n, step = PStable(1000.0, 0.7, 0.02, 4), 1000, 1000
    rows = np.array([[0, 0, 0], [step, 0, 0], [0, round(family.c * step), 0]], np.int64)
    found = np.array([family.sample(3, 40, SEED.child("family", i)).of(rows) for i in range(n)])
    for other, chance in ((1, 0.7), (2, 0.02)):
        share = (found[:, 0] == found[:, other]).mean()
        alarm.near(share, chance, math.sqrt(chance * (1 - chance) / n), of=2)


# Searching for heavy values by prefixes


TREE = Prefixes((6, 12, 18, 24, 30, 36, 42, 48))


def test_without_noise_the_heavy_values_come_back_in_order_and_few_buckets_are_looked_at() -> None:
    values = np.repeat(np.array([2**47 + 5, 77, 2**40 + 1, 2**40 + 2]), [900, 500, 40, 20])
    counts = Counted(TREE.of(values), 10.0)
    ids, found = TREE.heavy(counts, max_values=10)
    assert ids.tolist() == [2**47 + 5, 77, 2**40 + 1]
    assert found.tolist() == [900, 500, 40]
    assert sum(counts.looked) <= 64 * 4 * 8
    assert TREE.heavy(counts, max_values=1)[0].tolist() == [2**47 + 5]


def test_lengths_that_make_no_tree_and_chances_that_make_no_family_are_refused() -> None:
    for bits in ((), (0, 3), (3, 3), (5, 4), (8, 63)):
        with pytest.raises(InvalidInput, match="increasing numbers from 1 to 62"):
            Prefixes(bits)
    with pytest.raises(InvalidInput, match="chances"):
        PStable(10.0, 0.02, 0.7, 4)


@pytest.mark.parametrize("domain", [Ball((0.0,) * 5, 1.0), Box((-1.0, 0.0), (1.0, 5.0))], ids=["ball", "box"])
def test_a_box_holds_a_cluster_that_fits_in_an_interval_and_no_row_is_far_from_its_middle(domain: Domain) -> None:
    """Steps 4 to 6: points that differ by at most p on every axis are within one interval of each other's; and a row in
    a box is within half a diagonal of its middle, up to half a lattice step per column."""
    intervals = Intervals.of(domain, domain.max_norm / 4, SEED.child("intervals"))
    g = np.random.default_rng(602)
    rows = domain.snap(domain.sample(g, 4000, 0.0))
    near = rows + g.integers(-1, 2, rows.shape) * (domain.max_norm // 12 // domain.dimension)
    found, moved = intervals.of_rows(rows), intervals.of_rows(near)
    assert inside(moved, found).all()
    any_box = found[g.permutation(len(found))]
    boxed = inside(found, any_box)
    assert boxed.any()
    away = np.linalg.norm(rows - intervals.middles(any_box), axis=1)
    assert (away[boxed] <= intervals.half_diagonal + math.sqrt(domain.dimension)).all()

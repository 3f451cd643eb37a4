"""The method as a whole: who is asked what, what it costs, and what comes out."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from cloister.accounting.composition import Spent
from cloister.core.errors import InvalidInput
from cloister.metrics import nicv
from cloister.plugins.methods.weighted_centers.weighted_centers import in_w
from cloister.run.request import PreparedRun
from tests.plugins.methods.runs import EXACT, SEED, fitted, groups, planned

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
    assert result.privacy.trust == "Local"
    assert result.privacy.simulated


def test_without_noise_as_many_radii_as_there_are_plans_for() -> None:
    rows, centers = groups(3000, 3, 3, 0.02, ball=True)
    result = fitted("weighted-centers", rows, 3, components=EXACT, not_private=True)
    assert result.details["radii"] == 3
    assert np.linalg.norm(centers[:, None] - result.centers, axis=2).min(axis=1).max() < 0.05


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
        InvalidInput, match="take fewer radii, a larger largest_radius or interval_length, or fewer bits"
    ):
        plan(epsilon=8.0, options=OPTIONS | options).forecast(SEED)


def test_w_is_never_empty_where_there_is_a_candidate() -> None:
    assert in_w(np.array([5.0, 1.0]), np.array([3.0, 3.0])).tolist() == [True, False]
    assert in_w(np.array([-5.0, 1.0]), np.array([3.0, 3.0])).tolist() == [False, True]
    assert not len(in_w(np.zeros(0), np.zeros(0)))


def test_under_shuffled_trust_steps_share_the_budget() -> None:
    """People draw their role anew in each round, so that a share of them in one round is not disjoint from one in
    another."""
    shuffled = {"delta": 1e-6, "components": {"counts": "amplified-counts", "sums": "amplified-vectors"}}
    rounds = plan(options=OPTIONS, **shuffled).forecast(SEED)
    together = Spent.on([event for asked in rounds for event in asked.events])
    assert sum(Spent.on(asked.events).pure for asked in rounds) == pytest.approx(together.pure) == pytest.approx(1.0)
    with pytest.raises(InvalidInput, match="two rounds"):
        plan(options=OPTIONS | {"divide_steps": "users"}, **shuffled).forecast(SEED)

"""The method as a whole: who is asked what, what it costs, and what comes out."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from cloister.accounting.composition import Spent
from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.types import Floats
from cloister.metrics import nicv
from cloister.plugins.methods.weighted_centers.candidates import Step, groups_of, of_pair
from cloister.plugins.methods.weighted_centers.weighted_centers import in_w
from cloister.run.fit import fit, source
from cloister.run.request import PreparedRun, Request, prepare

SEED = PublicRng.from_seed(620)
OPTIONS: dict[str, Any] = {"radii": 2, "repetitions": 2}


def plan(k: int = 4, d: int = 2, rows: int = 10**6, **request: Any) -> PreparedRun:
    given = {"method": "weighted-centers", "epsilon": 1.0, "bounds": "ball:1", **request}
    return prepare(Request(k=k, rows=rows, **given), [str(j) for j in range(d)])


def mixture(n: int, k: int, d: int, seed: int, spread: float) -> tuple[Floats, Floats]:
    """Clusters of one size around centres that are far apart."""
    g = np.random.default_rng(seed)
    centers = g.standard_normal((200, d))
    centers *= 0.8 / np.linalg.norm(centers, axis=1, keepdims=True)
    chosen = [centers[0]]
    while len(chosen) < k:
        chosen.append(max(centers, key=lambda c: min(np.linalg.norm(c - other) for other in chosen)))
    at = np.array(chosen)
    return at[np.arange(n) % k] + spread * g.standard_normal((n, d)), at


def run(rows: Floats, k: int, epsilon: float, delta: float = 0.0, **request: Any) -> Any:
    given = {"method": "weighted-centers", "bounds": "ball:1", "rows": len(rows), "seed": 3, **request}
    return fit(
        Request(k=k, epsilon=epsilon, delta=delta, **given), source(rows, None, "refuse"), noise=NoiseRng.for_tests(3)
    )


def test_shares_of_a_pair_are_those_of_its_group() -> None:
    weights: dict[Step, float] = {"hashes": 1.0, "sums": 3.0}
    budget = plan(delta=1e-6, components={"sums": "ldp-average"}).problem.budget
    groups = groups_of(
        budget, weights, 3, 2, radii_by="budget", repetitions_by="users", steps_by="users", failing=["sums"], seed=SEED
    )
    assert [group.pairs for group in groups] == [((0, m), (1, m), (2, m)) for m in range(2)]
    one = of_pair(groups, (2, 1))["sums"]
    assert one.amount == pytest.approx(1 / 3)
    assert one.delta == pytest.approx(1e-6 / 3)
    assert one.user_share is not None
    assert one.user_share.fraction == pytest.approx(3 / 8)  # of the users, in each of two groups
    assert groups[1].spend["sums"].user_share == one.user_share


def test_rounds_are_five_and_four_without_reassignment() -> None:
    assert [len(asked.parts) for asked in plan(options=OPTIONS).forecast(SEED)] == [8, 8, 4, 4, 4]
    assert len(plan(method="nearest-centers").forecast(SEED)) == 4


@pytest.mark.parametrize(
    ("method", "k"), [("weighted-centers", 4), ("weighted-centers-median", 3), ("nearest-centers", 4)]
)
def test_clusters_are_found_under_local_trust(method: str, k: int) -> None:
    rows, centers = mixture(60_000, k, 3, 621, 0.03)
    result = run(rows, k, 4.0, method=method)
    away = np.linalg.norm(centers[:, None] - result.centers, axis=2).min(axis=1)
    assert away.max() < 0.15
    assert result.weights is not None
    assert np.abs(result.weights / (60_000 / k) - 1).max() < 0.25
    assert result.privacy.trust == "Local"
    assert result.privacy.simulated


@pytest.mark.parametrize(
    ("components", "delta"),
    [
        ({"sums": "ldp-average"}, 1e-6),
        ({"counts": "explicit-histogram", "solver": "ward"}, 0.0),
        ({"counts": "discrete-gaussian", "sums": "discrete-gaussian"}, 1e-6),
        ({"counts": "discrete-laplace", "sums": "discrete-laplace"}, 0.0),
    ],
    ids=str,
)
def test_oracles_are_swapped_by_name_under_any_trust(components: dict[str, str], delta: float) -> None:
    """A curator's rows are in every group: radii, repetitions and steps share the budget there."""
    rows, _ = mixture(40_000, 3, 3, 623, 0.03)
    result = run(rows, 3, 4.0, delta, components=components)
    assert nicv(rows, result.centers) < 0.2  # one centre: 0.64


def test_without_noise_as_many_radii_as_there_are_plans_for() -> None:
    rows, centers = mixture(3000, 3, 3, 624, 0.02)
    components = {"counts": "exact", "sums": "exact"}
    result = run(rows, 3, 1.0, components=components, not_private=True)
    assert result.details["radii"] == 3
    assert np.linalg.norm(centers[:, None] - result.centers, axis=2).min(axis=1).max() < 0.05


def test_exact_counts_beside_private_sums_are_refused_before_anything_is_asked() -> None:
    with pytest.raises(InvalidInput, match="or none"):
        plan(components={"counts": "exact", "sums": "discrete-laplace"}, not_private=True)


def test_long_hash_values_are_searched_by_prefix() -> None:
    rows, _ = mixture(60_000, 3, 2, 624, 0.02)
    result = run(rows, 3, 4.0, options={"hash_bits": 24, "prefix_bits": 6})
    assert nicv(rows, result.centers) < 0.05
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


def test_noise_of_an_average_is_in_proportion_to_the_radius_not_to_the_domain() -> None:
    """Bounds of the questions of step 7: halved from radius to radius, and never the domain's."""
    made = plan(options=OPTIONS)
    sums = [part for part in made.forecast(SEED)[1].parts if part.vectors is not None]
    bounds = [part.vectors.bound.l2 for part in sums if part.vectors is not None]
    assert bounds[0] == bounds[1] == pytest.approx(2 * bounds[2], abs=2)
    assert bounds[0] < made.problem.domain.max_norm


def test_what_is_published_is_plain_data_of_a_public_length() -> None:
    result = run(mixture(20_000, 3, 2, 625, 0.02)[0], 3, 4.0)
    assert set(result.details) >= {"candidates", "weighted"}
    assert json.loads(json.dumps(result.as_dict()["details"]))["weighted"] >= 3
    spaces = [part.cells.space for asked in plan().forecast(SEED)[1:] for part in asked.parts]
    assert all(len(space.sizes) == 1 for space in spaces)
    assert math.prod(spaces[0].sizes) == plan().composed.value.max_hash_values


def test_under_shuffled_trust_steps_share_the_budget() -> None:
    """People draw their role anew in each round, so that a share of them in one round is not disjoint from one in
    another."""
    components = {"counts": "amplified-counts", "sums": "amplified-vectors"}
    made = plan(delta=1e-6, components=components, options=OPTIONS)
    events = [event for asked in made.forecast(SEED) for event in asked.events]
    by_round = [Spent.on(asked.events).pure for asked in made.forecast(SEED)]
    assert sum(by_round) == pytest.approx(Spent.on(events).pure) == pytest.approx(1.0)
    with pytest.raises(InvalidInput, match="two rounds"):
        plan(delta=1e-6, components=components, options=OPTIONS | {"divide_steps": "users"}).forecast(SEED)

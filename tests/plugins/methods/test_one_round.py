"""One-round k-means: who is asked what, what it costs, and what comes out."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.buckets import Space
from cloister.core.clustering import Coreset, Errors, Leaves
from cloister.core.errors import WrongComposition
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import registry
from cloister.core.trust import Local
from cloister.core.types import Floats, Ints
from cloister.metrics import nicv
from cloister.plugins.methods.one_round import Cells, OneRoundMeans
from cloister.run.fit import fit, source
from cloister.run.request import PreparedRun, Request, prepare

SEED = PublicRng.from_seed(11)


def plan(k: int = 8, d: int = 100, rows: int = 10**6, **request: Any) -> PreparedRun:
    given = {"method": "one-round", "epsilon": 1.0, "bounds": "ball:1", **request}
    return prepare(Request(k=k, rows=rows, **given), [str(j) for j in range(d)])


def mixture(n: int, k: int, d: int, seed: int, spread: float = 0.01) -> tuple[Floats, Floats]:
    g = np.random.default_rng(seed)
    centers = g.standard_normal((k, d))
    centers *= 0.9 / np.linalg.norm(centers, axis=1, keepdims=True)
    return centers[np.arange(n) % k] + spread * g.standard_normal((n, d)), centers


@pytest.mark.parametrize(
    ("epsilon", "q", "v"), [(0.5, 0.073, 0.177), (1, 0.070, 0.0444), (2, 0.062, 0.0113), (4, 0.040, 0.0030)]
)
def test_share_of_the_counts_and_expected_error_are_those_of_the_study(epsilon: float, q: float, v: float) -> None:
    made = plan(epsilon=epsilon, options={"partitions": 1})
    counts, vectors = made.forecast(SEED)[0].parts
    assert counts.user_share is not None
    assert counts.user_share.fraction == pytest.approx(q, abs=0.002)
    assert vectors.user_share is not None
    assert vectors.user_share.fraction == pytest.approx(1 - counts.user_share.fraction)
    assert made.composed.value.expected_error(made.problem) == pytest.approx(v, rel=0.03)


def test_shares_of_the_budget_add_up_to_epsilon() -> None:
    (asked,) = plan(method="one-round-lsh").forecast(SEED)
    assert [event.spent.epsilon for event in asked.events] == pytest.approx([0.1, 0.9])
    assert all(part.user_share is None for part in asked.parts)


def test_two_partitions_only_where_little_noise_is_expected() -> None:
    assert len(plan(rows=10**6).forecast(SEED)[0].parts) == 4
    assert len(plan(rows=10**5).forecast(SEED)[0].parts) == 2


def test_in_few_dimensions_only_counts_are_asked() -> None:
    for d in (1, 2, 3):
        (asked,) = plan(d=d, k=4).forecast(SEED)
        assert [part.vectors for part in asked.parts] == [None]
    assert len(plan(d=4, k=4).forecast(SEED)[0].parts) == 4


def test_clusters_are_found_from_one_report_each() -> None:
    rows, centers = mixture(60_000, 4, 8, 1)
    result = fit(
        Request(k=4, method="one-round", epsilon=3.0, bounds="ball:1", rows=60_000, seed=1),
        source(rows, None, "refuse"),
        noise=NoiseRng.for_tests(1),
    )
    assert nicv(rows, result.centers) < nicv(rows, centers) + 0.06
    assert result.weights is not None
    assert np.abs(result.weights - 15_000).max() < 2500
    assert result.privacy.trust == "Local"
    assert result.privacy.simulated


@pytest.mark.parametrize(
    "components",
    [
        {"counts": "hadamard-response"},
        {"counts": "subset-selection", "sums": "explicit-histogram-vector"},
        {"counts": "explicit-histogram"},
        {"tree": "simhash", "solver": "kmeans++"},
        {"counts": "discrete-gaussian", "sums": "discrete-gaussian"},
    ],
    ids=str,
)
def test_oracles_trees_and_solvers_are_swapped_by_name(components: dict[str, str]) -> None:
    """Also for central ones: the same skeleton then splits the budget, not the users."""
    rows, _ = mixture(40_000, 3, 6, 2)
    result = fit(
        Request(
            k=3,
            method="one-round",
            epsilon=4.0,
            delta=1e-6 if "discrete-gaussian" in components.values() else 0.0,
            bounds="ball:1",
            rows=40_000,
            seed=2,
            components=components,
        ),
        source(rows, None, "refuse"),
        noise=NoiseRng.for_tests(2),
    )
    assert nicv(rows, result.centers) < 0.3  # one centre: 0.7


def test_centres_are_as_good_as_those_who_report_allow_however_many_were_planned() -> None:
    """Errors of all planned users would call the cells of a tenth of them insignificant: a cost of 0.18 to 0.65."""
    rows, _ = mixture(15_000, 4, 20, 3)

    def found(planned: int) -> Floats:
        request = Request(k=4, method="one-round", epsilon=2.0, bounds="ball:1", rows=planned, seed=0)
        return fit(request, source(rows, None, "refuse"), noise=NoiseRng.for_tests(0)).centers

    few = found(150_000)
    assert few == pytest.approx(found(15_000), abs=1e-9)
    assert nicv(rows, few) < 0.1


def test_oracles_of_different_trust_are_refused() -> None:
    with pytest.raises(WrongComposition, match="'counts'"):
        compose(registry(), "Method", "one-round", {"counts": "discrete-laplace"}, {})


def test_the_paper_s_method_finds_clusters() -> None:
    rows, _ = mixture(200_000, 2, 10, 3)
    result = fit(
        Request(k=2, method="one-round-lsh", epsilon=4.0, bounds="ball:1", rows=200_000, seed=3),
        source(rows, None, "refuse"),
        noise=NoiseRng.for_tests(3),
    )
    assert nicv(rows, result.centers) < 0.2  # one centre: about 0.5


@attrs.frozen
class Table:
    digest_tag = "tests.test_one_round.Table"

    values: Floats

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return self.values[ids] * (level + 1)

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), 1.0 + level)


def test_sums_of_leaves_are_looked_up_at_their_own_level() -> None:
    leaves = Leaves(np.array([1, 0, 1]), np.array([2, 0, 1]))
    grown = Coreset(
        np.zeros((3, 2)), np.array([4.0, 0.5, -2.0]), leaves=leaves, errors=Errors(np.full(3, 0.5), np.zeros(3))
    )
    cells = Cells.of([grown, grown], [Table(np.arange(8.0).reshape(4, 2))] * 2)
    assert cells.sums[:3].tolist() == [[8, 10], [0, 1], [4, 6]]
    assert cells.errors.sums.tolist() == [2, 1, 2] * 2
    assert cells.means(None).points[:3].tolist() == [[2, 2.5], [0, 1], [4, 6]]
    groups = np.array([0, 1, 0, 1, 1, 1])
    assert cells.of_groups(groups, 2)[0].tolist() == [6.0, 8.0]  # (8 + 4, 10 + 6) / (4 - 2)


def test_group_centers_divide_by_at_least_one_row() -> None:
    """Algorithm 4, line 13."""
    grown = Coreset(np.zeros((1, 2)), np.array([-7.0]), leaves=Leaves(np.zeros(1, np.int64), np.zeros(1, np.int64)))
    cells = Cells.of([grown], [Table(np.array([[3.0, 4.0]]))])
    assert cells.of_groups(np.zeros(1, np.int64), 2).tolist() == [[3.0, 4.0], [0.0, 0.0]]


def test_share_follows_the_trust_model() -> None:
    central = prepare(
        Request(
            k=3,
            method="one-round",
            epsilon=1.0,
            delta=1e-6,
            bounds="ball:1",
            rows=1000,
            components={"counts": "discrete-gaussian", "sums": "discrete-gaussian"},
        ),
        [str(j) for j in range(6)],
    )
    (asked,) = central.forecast(SEED)
    assert all(part.user_share is None for part in asked.parts)
    assert math.isclose(sum(event.spent.amount for event in asked.events), central.problem.budget.amount)


def test_partitions_are_independent() -> None:
    made = plan(rows=10**6, d=20, k=4)
    cells = [part.cells for part in made.forecast(SEED)[0].parts]
    assert cells[0] is cells[2]
    assert cells[1] is cells[3]
    assert not np.array_equal(cells[0].around, cells[1].around)  # type: ignore[attr-defined]  # spread cells have directions


def test_variances_scale_with_the_users_that_are_asked() -> None:
    made = plan(d=10, rows=10**5, k=4)
    method: OneRoundMeans[Local] = made.composed.value
    budget = made.problem.budget
    half, _ = budget.split_users(SEED, 1, 1)
    whole = method.variances(made.problem, Space((256,)), budget, budget)
    halves = method.variances(made.problem, Space((256,)), half, half)
    assert halves == pytest.approx([2 * w for w in whole], rel=1e-4)

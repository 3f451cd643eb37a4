"""evolution: clusters found from counts alone; its exact privacy loss; who answers what under Local trust."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Ball, Box, Domain
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import built_in
from cloister.core.session import Session, forecast
from cloister.core.trust import Aggregated, Local, Shuffled
from cloister.core.types import Floats
from cloister.metrics import nicv
from cloister.plugins.methods.evolution import MOST, fittest, levy
from cloister.plugins.populations.arrays import Arrays
from tests.plugins.methods.everybody import check_that_all_answer_all

SEED = PublicRng.from_seed(90)


def box(d: int) -> Box:
    return Box((-1.0,) * d, (1.0,) * d)


def made(counts: str = "discrete-gaussian", **values: Any) -> Any:
    return compose(built_in(), "Method", "evolution", {"counts": counts}, values).value


def ran(rows: Floats, k: int, mu2: float, seed: int, domain: Domain, n: int = 0, **values: Any) -> tuple[Any, Any]:
    measure: Any = "exact" if values.get("counts") == "exact" else "gaussian"
    problem = Problem(k, domain, n or len(rows), Budget(measure, mu2))
    session: Any = Session(problem, SEED.child(seed), Arrays(rows), noise=NoiseRng.for_tests(seed))
    return made(**values).cluster(problem, session, SEED.child("method", seed)), session


def clumps(d: int, k: int = 5, n: int = 10_000) -> tuple[Floats, Floats]:
    g = np.random.default_rng(d)
    centers = g.uniform(-0.7, 0.7, (k, d))
    return np.clip(centers[g.integers(0, k, n)] + g.normal(0, 0.1, (n, d)), -1, 1), centers


@pytest.mark.parametrize("d", [2, 8])
def test_clear_clusters_are_found_from_counts_alone(d: int) -> None:
    rows, truth = clumps(d)
    found = min(nicv(rows, ran(rows, 5, 1.0, seed, box(d))[0].centers) for seed in range(2))
    assert found < 1.5 * nicv(rows, truth)


def odd_rows() -> dict[str, Floats]:
    g = np.random.default_rng(4)
    return {
        "nobody": np.zeros((0, 4)),
        "one": np.ones((1, 4)),
        "all on a point": np.full((500, 4), 0.25),
        "all beyond the bounds": 1e6 * g.standard_normal((500, 4)),
        "at two corners": np.repeat([[-1.0] * 4, [1.0] * 4], 250, axis=0),
    }


@pytest.mark.parametrize("counts", ["discrete-gaussian", "exact"])
@pytest.mark.parametrize("name", odd_rows())
def test_a_run_on_odd_rows_asks_what_was_forecast(name: str, counts: str) -> None:
    found, session = ran(odd_rows()[name], 3, 0.5, 1, box(4), n=500, counts=counts)
    foreseen = forecast(made(counts), session.problem, SEED.child(1))
    assert len(foreseen) == len(session.rounds) == 8
    for asked, expected in zip(session.rounds, foreseen, strict=True):
        assert asked.events == expected.events
        assert [part.cells.space for part in asked.parts] == [part.cells.space for part in expected.parts]
    assert np.isfinite(found.centers).all()


@pytest.mark.parametrize("domain", [box(6), Ball((0.5,) * 6, 2.0)], ids=["box", "ball"])
def test_every_row_costs_the_whole_budget_wherever_it_is_and_no_row_more(domain: Domain) -> None:
    """The exact loss: one bucket of one count per round, in standard deviations of its noise, added up in squares."""
    g = np.random.default_rng(5)
    rows = domain.sample(g, 2000, 0.0)
    _, session = ran(rows, 3, 0.5, 0, domain)
    for row in (*rows[:20], domain.middle + domain.diameter):
        located = [(p.cells.locate(r.domain.snap(row[None])), p) for r in session.rounds for p in r.parts]
        assert all(where.shape == (1, 1) and 0 <= where[0, 0] < part.cells.space.sizes[0] for where, part in located)
        assert sum(part.channel.deviation**-2 for _, part in located) == pytest.approx(0.5, rel=1e-3)


@pytest.mark.thorough
def test_the_number_of_points_is_public_and_bounded() -> None:
    rows, _ = clumps(4, n=2000)
    asked = [
        {part.cells.space.sizes for round in session.rounds for part in round.parts}
        for _, session in (ran(x, 5, 0.05, seed, box(4), n=2000) for seed, x in enumerate([rows, -rows, rows[:100]]))
    ]
    assert asked[0] == asked[1] == asked[2]
    for k, mu2, points in ((5, 1e4, 5 * (MOST // 5)), (5, 1e-9, 25), (300, 1.0, 1500)):
        problem = Problem(k, box(4), 2000, Budget("gaussian", mu2))
        assert forecast(made(), problem, SEED)[0].parts[0].cells.space.sizes == (points,)


def test_under_local_trust_every_user_answers_one_question_with_all_of_her_epsilon() -> None:
    problem = Problem(4, box(5), 100_000, Budget("pure", 1.0))
    rounds = forecast(made("optimised-local-hashing"), problem, SEED)
    asked = [part.user_share for round in rounds for part in round.parts]
    assert {round.trust for round in rounds} == {Local}
    assert all(event.spent.amount == 1.0 for round in rounds for event in round.events)
    users = np.arange(5000, dtype=np.uint64)
    assert (np.sum([share.holds(users) for share in asked if share], axis=0) == 1).all()


@pytest.mark.parametrize(("counts", "trust"), [("skellam", Aggregated), ("split-and-mix-counts", Shuffled)])
def test_under_aggregated_and_shuffled_trust_everybody_answers_every_round(counts: str, trust: type) -> None:
    check_that_all_answer_all(made(counts), trust)


def test_with_a_budget_worth_nothing_all_centres_are_in_the_middle() -> None:
    rows = np.random.default_rng(2).uniform(0.2, 0.9, (150, 3))
    for seed in range(5):
        found, _ = ran(rows, 3, 0.0003**2, seed, box(3))
        assert np.linalg.norm(found.centers, axis=1).max() < 0.1


class _Exactly:
    def __init__(self, values: list[float]) -> None:
        self.values = np.array(values)

    def at(self, ids: Any, level: int = 0) -> Floats:
        return np.asarray(self.values[ids], np.float64)

    def standard_error(self, ids: Any, level: int = 0) -> Floats:
        return np.ones(len(ids))


def test_the_largest_counts_are_kept_until_they_hold_the_rows() -> None:
    points = np.arange(8.0).reshape(4, 2)
    kept = fittest(points, _Exactly([1.0, 7.0, -3.0, 5.0]), 10)
    assert kept.points.tolist() == [[2.0, 3.0], [6.0, 7.0]]
    assert kept.weights.tolist() == [7.0, 3.0]
    nothing = fittest(points, _Exactly([-1.0, -1.0, -1.0, 0.0]), 10)
    assert len(nothing.points) == 4
    assert not nothing.weights.any()


def test_most_mutations_are_small_and_a_few_are_far() -> None:
    steps = np.abs(levy((20_000,), SEED))
    assert np.median(steps) < 1
    assert 0.003 < (steps > 10).mean() < 0.03

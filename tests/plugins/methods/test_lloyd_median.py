"""k-median by noisy rounds: its schedule, plain Weiszfeld without noise, and a start that asks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.accounting import Accountant, Total
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Box
from cloister.core.encoding import absorb, encode_rows
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Round, count
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import registry
from cloister.core.session import Session, forecast
from cloister.core.trust import Central
from cloister.core.types import Floats
from cloister.metrics import k_median_cost
from cloister.plugins.methods.lloyd_median import LloydMedian
from cloister.plugins.methods.sphere_packing import SpherePacking, sphere_packing
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.plugins.oracles.central.exact import Exact
from cloister.testing import parametrize

SEED = PublicRng(b"q" * 32)
CUBE = Box((-1.0,) * 3, (1.0,) * 3)


def gauss(**options: Any) -> LloydMedian[Central]:
    return LloydMedian(start=SpherePacking(), counts=DiscreteGaussian(), sums=DiscreteGaussian(), **options)


def laplace(**options: Any) -> LloydMedian[Central]:
    return LloydMedian(start=SpherePacking(), counts=DiscreteLaplace(), sums=DiscreteLaplace(), **options)


def exact(**options: Any) -> LloydMedian[Central]:
    return LloydMedian(start=SpherePacking(), counts=Exact(), sums=Exact(), **options)


def problem_of(k: int, n: int, measure: Any = "gaussian", eps: float = 1.0) -> Problem:
    return Problem(k, CUBE, n, Total(eps, 1e-6).measured({measure}))


class Rows:
    """Rows in one piece."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        return absorb(round, encode_rows(round, self.rows, np.arange(len(self.rows), dtype=np.uint64), rng))


def run(method: Any, problem: Problem, rows: Floats) -> Clustering:
    session: Session[Any] = Session(problem, SEED, Rows(rows), noise=NoiseRng.for_tests(3))
    found: Clustering = method.cluster(problem, session, SEED)
    return found


def clumps(n: int, k: int) -> Floats:
    g = np.random.default_rng(4)
    middles = CUBE.sample(g, k, 0.3)
    return np.clip(middles[g.integers(0, k, n)] + 0.05 * g.standard_normal((n, 3)), -1, 1)


@pytest.mark.thorough
@parametrize(gauss(), laplace(), gauss(radius_scale=0.8, rounds=2), role="Method")
def test_lloyd_for_k_median_conforms(component: Any, check: Any) -> None:
    check(component)


def test_it_is_found_by_name() -> None:
    method = compose(registry(), "Method", "private-lloyd-median", {}, {"rounds": "3"}).value
    assert isinstance(method, LloydMedian)
    assert len(forecast(method, problem_of(4, 1000), SEED)) == 3


@pytest.mark.parametrize("rounds", [1, 4, 7])
def test_rounds_spend_the_same_and_all_of_the_budget(rounds: int) -> None:
    problem = problem_of(4, 10_000)
    asked = forecast(gauss(rounds=rounds), problem, SEED)
    spent = [sum(event.spent.amount for event in round.events) for round in asked]
    assert len(asked) == rounds
    assert spent == pytest.approx([problem.budget.amount / rounds] * rounds)


class Asking:
    """A start that spends all it is given on one count."""

    def cluster(self, problem: Problem, session: Session[Central], rng: PublicRng) -> Clustering:
        centers = sphere_packing(problem.k, problem.domain, rng)
        near = NearestCenter(problem.domain.snap(centers), problem.domain.max_norm)
        session.ask(count(near, oracle=DiscreteGaussian(), budget=problem.budget))
        return Clustering(centers, None, {"asked": 1})


def test_a_start_that_asks_has_its_share_and_no_more() -> None:
    method = LloydMedian(start=Asking(), counts=DiscreteGaussian(), sums=DiscreteGaussian(), start_share=0.6, rounds=2)
    total, problem = Total(1.0, 1e-6), problem_of(4, 10_000)
    asked = forecast(method, problem, SEED)
    Accountant(total, problem.budget).forecast([round.events for round in asked])
    spent = [sum(event.spent.amount for event in round.events) for round in asked]
    assert spent == pytest.approx([problem.budget.amount * share for share in (0.6, 0.2, 0.2)])
    found = run(method, problem, clumps(100, 4))
    assert {name: found.details[name] for name in ("asked", "rounds")} == {"asked": 1, "rounds": 2}


def test_without_noise_the_cost_falls_from_round_to_round() -> None:
    rows, problem = clumps(3000, 5), problem_of(5, 3000, "exact")
    costs = [k_median_cost(rows, run(exact(rounds=t), problem, rows).centers) for t in (1, 2, 4, 8)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < 0.7 * costs[0]


def test_with_little_noise_it_comes_near_what_it_finds_without() -> None:
    """One seeded run."""
    rows = clumps(30_000, 5)
    without = k_median_cost(rows, run(exact(), problem_of(5, 30_000, "exact"), rows).centers)
    noisy = k_median_cost(rows, run(gauss(), problem_of(5, 30_000), rows).centers)
    assert noisy < 1.1 * without

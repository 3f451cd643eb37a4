"""k-median by noisy rounds: its schedule, plain Weiszfeld without noise, and a start that asks.

One round of k-median: what a row adds, what it may change, and where the centres go.
"""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.accounting import Accountant, Total
from cloister.core.budget import Budget
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Ball, Box, Domain
from cloister.core.nearest import NearestCenter
from cloister.core.questions import count
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Session, forecast
from cloister.core.trust import Central
from cloister.core.types import Floats
from cloister.plugins.methods.lloyd_median import STEPS, TOP, LloydMedian, Pulls, weiszfeld
from cloister.plugins.methods.sphere_packing import SpherePacking, sphere_packing
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.plugins.oracles.central.exact import Exact
from cloister.plugins.populations.arrays import Arrays

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


def run(method: Any, problem: Problem, rows: Floats) -> Clustering:
    session: Session[Any] = Session(problem, SEED, Arrays(rows), noise=NoiseRng.for_tests(3))
    found: Clustering = method.cluster(problem, session, SEED)
    return found


def clumps(n: int, k: int) -> Floats:
    g = np.random.default_rng(4)
    middles = CUBE.sample(g, k, 0.3)
    return np.clip(middles[g.integers(0, k, n)] + 0.05 * g.standard_normal((n, 3)), -1, 1)


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


KEY = PublicRng(b"m" * 32)
SQUARE = Box((-1.0, -1.0), (1.0, 1.0))
SHIFTED = Box((5.0, -20.0, 100.0), (6.0, 0.0, 101.0))


def session_of(domain: Domain, rows: Floats, k: int, budget: Budget | None = None) -> Session[Any]:
    frame = Problem(k, domain, max(len(rows), k), budget or Total(1.0, 1e-6).measured({"exact"}))
    return Session(frame, KEY, Arrays(rows), noise=NoiseRng.for_tests(1))


@attrs.frozen
class Given:
    """A start that finds these centres."""

    centers: Floats

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        return Clustering(self.centers)


def one_round(session: Session[Any], method: LloydMedian[Any]) -> tuple[Floats, Floats]:
    found = method.cluster(session.problem, session, KEY)
    assert found.weights is not None
    return found.centers, found.weights


def without_noise(session: Session[Any], centers: Floats, **step: float) -> tuple[Floats, Floats]:
    return one_round(session, LloydMedian(start=Given(centers), counts=Exact(), sums=Exact(), rounds=1, **step))


def move(sums: list[list[float]], error: float, *, shrink: float = 1.0) -> Floats:
    return weiszfeld(np.array(sums), np.full(1, error), smoothing=0.5, stretch=1.0, shrink=shrink)


def smoothed_cost(rows: Floats, centers: Floats, s: float) -> float:
    """What Weiszfeld's steps with weights 1 / max(r, s) lower: r beyond s, (r^2 + s^2) / 2s within (Huber)."""
    r = np.sqrt(((rows[:, None] - centers) ** 2).sum(axis=2)).min(axis=1)
    return float(np.where(r >= s, r, (r**2 + s**2) / (2 * s)).sum())


# What a row adds


def test_a_far_row_pulls_by_a_unit_vector_and_weighs_as_its_distance_says() -> None:
    pulls = Pulls(NearestCenter(np.array([[100, 0]]), SQUARE.max_norm), 50)
    values = pulls.values(np.array([[400, 400]]), np.zeros((1, 1), np.int64))[0]
    assert np.abs(values - [0.6 * STEPS, 0.8 * STEPS, TOP * 50 / 500]).max() <= 1


def test_a_near_row_pulls_in_proportion_and_weighs_most() -> None:
    pulls = Pulls(NearestCenter(np.array([[100, 0]]), SQUARE.max_norm), 50)
    values = pulls.values(np.array([[110, 0], [100, 0]]), np.zeros((2, 1), np.int64))
    assert np.abs(values - [[STEPS / 5, 0, TOP], [0, 0, TOP]]).max() <= 1


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(-(2**20), 2**20), min_size=3, max_size=3), st.integers(1, 2**21), st.integers(-1, 1))
def test_no_row_exceeds_the_joint_bound(row: list[int], smoothing: int, at: int) -> None:
    """Also where r is the smoothing length or next to it, and pull and weight are both largest."""
    rows = np.array([row])
    exact = math.isqrt(int((rows**2).sum()))
    for s in (smoothing, max(1, exact + at)):
        pulls = Pulls(NearestCenter(np.zeros((1, 3), np.int64), 2**21), s)
        values = pulls.values(rows, np.zeros((1, 1), np.int64))[0]
        assert sum(int(v) ** 2 for v in values) <= STEPS**2 + TOP**2 <= pulls.bound.l2**2
        assert np.abs(values).sum() <= pulls.bound.l1
        assert 0 <= values[-1] <= TOP


def test_the_bound_is_that_of_the_docstring() -> None:
    pulls = Pulls(NearestCenter(np.zeros((1, 4), np.int64), 2**20), 1)
    assert pulls.bound.l2 == math.ceil(math.sqrt(1.25) * STEPS)
    assert pulls.bound.dimension == 5
    assert pulls.bound.l1 == min(pulls.bound.implied, 2 * STEPS + TOP)


# Where centres go


@pytest.mark.parametrize("domain", [SQUARE, SHIFTED, Ball((3.0, -3.0), 0.01)], ids=["box", "shifted box", "small ball"])
def test_without_noise_rounds_find_the_geometric_median(domain: Domain) -> None:
    from scipy.optimize import minimize

    g = np.random.default_rng(2)
    rows = domain.sample(g, 400, 0.0)
    rows[:90] = rows[0] + 1e-3 * (rows[:90] - rows[0])
    found = domain.sample(g, 1, 0.0)
    session = session_of(domain, rows, 1)
    for _ in range(60):
        found, _ = without_noise(session, found, smoothing=1e-4)

    def mean_distance(c: Floats) -> float:
        return float(np.sqrt(((rows - c) ** 2).sum(axis=1)).mean())

    best = minimize(mean_distance, rows.mean(axis=0), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    assert mean_distance(found[0]) <= best.fun * (1 + 1e-3)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 6), st.floats(0.01, 1.0), st.floats(0.1, 1.9))
def test_without_noise_no_round_raises_the_smoothed_cost(seed: int, k: int, smoothing: float, stretch: float) -> None:
    """Majorise and minimise, over-relaxed by less than 2. The slack is truncation: 2^-15 of the smoothing length per
    row."""
    g = np.random.default_rng(seed)
    rows, centers = SQUARE.sample(g, 60, 0.0), SQUARE.sample(g, k, 0.0)
    s = smoothing * SQUARE.diameter / 2
    moved, _ = without_noise(session_of(SQUARE, rows, k), centers, smoothing=smoothing, stretch=stretch)
    assert smoothed_cost(rows, moved, s) <= smoothed_cost(rows, centers, s) * (1 + 1e-3)


def test_counts_are_those_of_the_centres_that_were_given() -> None:
    rows = np.array([[-0.5, 0.0]] * 3 + [[0.5, 0.0]] * 5)
    _, weights = without_noise(session_of(SQUARE, rows, 2), np.array([[-0.4, 0.0], [0.4, 0.0]]))
    assert weights.tolist() == [3.0, 5.0]


def test_rows_beyond_the_radius_pull_nobody_and_no_step_is_longer() -> None:
    rows = np.array([[0.0, 0.05]] * 2 + [[0.9, 0.0]] * 50)
    session = session_of(SQUARE, rows, 1)
    scale = 0.1 / (SQUARE.diameter / 2)
    near, weights = without_noise(session, np.zeros((1, 2)), radius_scale=scale, stretch=2.0)
    assert weights.tolist() == [2.0]
    assert abs(near[0, 0]) < 1e-4
    assert near[0, 1] > 0.04
    far, _ = without_noise(session_of(SQUARE, rows[2:] * 0.105, 1), np.zeros((1, 2)), radius_scale=scale, stretch=2.0)
    assert np.linalg.norm(far) <= 0.1 * (1 + 1e-6)


def test_a_step_is_the_pull_over_the_weight() -> None:
    exact = move([[30.0, 40.0, 10.0]], 0.0)
    assert exact.tolist() == [[0.25 * 3.0, 0.25 * 4.0]]
    noisy = move([[30.0, 40.0, 10.0]], 5.0)
    assert noisy == pytest.approx(exact * (1 - 2 * 25 / 2500))


def test_what_may_be_noise_alone_moves_nothing() -> None:
    assert np.abs(move([[3.0, -4.0, 10.0]], 4.0)).max() == 0.0


@pytest.mark.parametrize("weight", [-100.0, 0.0, 1e-30])
def test_a_small_or_negative_weight_flips_no_step(weight: float) -> None:
    step = move([[100.0, 0.0, weight]], 1.0, shrink=0.0)
    assert step.tolist() == [[0.25 * 100 / 2, 0.0]]


# What it costs


def noisy_from(centers: Floats, **options: Any) -> LloydMedian[Any]:
    return LloydMedian(start=Given(centers), counts=DiscreteGaussian(), sums=DiscreteGaussian(), **options)


def test_a_round_spends_its_shares_and_its_noise_has_the_joint_norm() -> None:
    session = session_of(SQUARE, np.zeros((10, 2)), 2, Budget("gaussian", 0.75))
    one_round(session, noisy_from(np.zeros((2, 2)), rounds=3, count_share=0.2))
    assert [event.spent.amount for event in session.released] == pytest.approx([0.05, 0.2] * 3)
    channel: Any = session.rounds[0].parts[1].channel
    assert channel.deviation / (SQUARE.unit * STEPS) == pytest.approx(math.sqrt(1.25) / math.sqrt(0.2), rel=1e-4)

"""k-means on a grid: who is asked what, what answers cannot change, rows of every kind, and the worst noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cloister.accounting.total import Total
from cloister.core.budget import Budget
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Ball, Box, Domain
from cloister.core.encoding import encode_lattice
from cloister.core.errors import InvalidInput
from cloister.core.lattice import Bound
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import built_in
from cloister.core.session import Session, forecast
from cloister.core.types import Floats
from cloister.metrics import k_median_cost, nicv
from cloister.plugins.methods.clipping import SCALE
from cloister.plugins.methods.grid_means import STEP, GridMeans, stepped
from cloister.plugins.populations.arrays import Arrays
from cloister.testing.stubs import SCRIPTS, Invented

SEED = PublicRng.from_seed(33)
EXACT = {"counts": "exact", "sums": "exact"}
LOCAL = {"counts": "optimised-local-hashing", "sums": "hadamard-vector"}
POOLED = {"counts": "skellam", "sums": "skellam"}


def method(components: dict[str, str] | None = None) -> GridMeans[Any]:
    made: GridMeans[Any] = compose(built_in(), "Method", "grid-means", components or {}, {}).value
    return made


def cube(d: int) -> Box:
    return Box((-1.0,) * d, (1.0,) * d)


def problem_of(
    rows: int, k: int = 3, domain: Domain | None = None, budget: Budget | None = None, epsilon: float = 1.0
) -> Problem:
    gaussian = Total(epsilon, 1 / (rows * math.log(rows + 2))).measured({"gaussian"})
    return Problem(k, domain or cube(2), rows, budget or gaussian)


def run(
    rows: Floats, problem: Problem, seed: int = 0, components: dict[str, str] | None = None
) -> tuple[Clustering, list[Round[Any]]]:
    session: Session[Any] = Session(problem, SEED, Arrays(rows), noise=NoiseRng.for_tests(seed))
    found = method(components).cluster(problem, session, SEED.child("method"))
    return found, session.rounds


def groups(n: int, k: int, d: int = 2, spread: float = 0.03, seed: int = 0) -> tuple[Floats, Floats]:
    g = np.random.default_rng(seed)
    places = np.stack(np.meshgrid(*[np.linspace(-0.8, 0.8, math.ceil(k ** (1 / d)))] * d), -1).reshape(-1, d)
    truth = places[g.choice(len(places), k, replace=False)]
    return np.clip(truth[np.arange(n) % k] + spread * g.standard_normal((n, d)), -1, 1), truth


@pytest.mark.parametrize(("d", "k"), [(1, 4), (2, 15), (3, 8), (4, 5), (5, 3)])
def test_clear_groups_are_found(d: int, k: int) -> None:
    rows, truth = groups(8000, k, d)
    found, _ = run(rows, problem_of(8000, k, cube(d)))
    assert nicv(rows, found.centers) < 1.5 * nicv(rows, truth)
    assert found.weights is not None
    assert np.abs(found.weights - 8000 / k).max() < 0.15 * 8000 / k + 60


def test_two_rounds_of_one_question_each_spend_the_budget() -> None:
    problem = problem_of(5000)
    asked = forecast(method(), problem, SEED)
    spent = [event.spent.amount for round in asked for event in round.events]
    assert [len(round.parts) for round in asked] == [1, 1]
    assert spent == pytest.approx([0.8 * problem.budget.amount, 0.2 * problem.budget.amount])


def test_under_local_trust_each_user_answers_one_question_with_all_of_epsilon() -> None:
    problem = problem_of(4000, budget=Budget("pure", 1.0))
    users, answered = np.arange(4000, dtype=np.uint64), list[int]()
    for round in forecast(method(LOCAL), problem, SEED):
        assert {event.spent.epsilon for event in round.events} == {1.0}
        lattice = np.zeros((4000, 2), np.int64)
        for report in encode_lattice(round, lattice, users, NoiseRng.for_tests(0)):
            answered += report.users.tolist()
    assert sorted(answered) == users.tolist()


@pytest.mark.parametrize("components", [None, LOCAL, {"counts": "discrete-laplace", "sums": "discrete-laplace"}])
def test_other_trust_models_and_noise_laws_find_the_groups_too(components: dict[str, str] | None) -> None:
    rows, _ = groups(40_000, 4)
    measure = method(components).counts.measure
    problem = problem_of(40_000, 4, budget=Total(4.0, 1e-6 if measure != "pure" else 0.0).measured({measure}))
    found, _ = run(rows, problem, components=components)
    assert nicv(rows, found.centers) < 0.05  # one centre: about 0.6


def test_answers_change_no_event_and_no_bound() -> None:
    """The adversary answers the counts so that radii are as large and as small as can be, or not numbers at all."""
    for domain in (cube(2), Ball((3.0,) * 3, 1e-3), Box((0.0, 0.0), (100.0, 1.0))):
        problem = problem_of(2000, 5, domain)
        foreseen = [[part.channel.events for part in r.parts] for r in forecast(method(), problem, SEED)]
        for script in SCRIPTS:
            session = Invented(problem, SEED, script)
            method().cluster(problem, session, SEED)
            assert [[part.channel.events for part in r.parts] for r in session.rounds] == foreseen
            vectors = session.rounds[1].parts[0].vectors
            assert vectors is not None
            assert vectors.bound == Bound(SCALE, domain.dimension)


def test_one_row_changes_one_cell_by_one_and_one_sum_by_the_bound_at_most() -> None:
    """The worst neighbours: a row at the far corner, where radii were released that are as small as can be."""
    rows, _ = groups(3000, 4)
    problem = problem_of(3000, 4)
    _, rounds = run(rows, problem)
    far = problem.domain.snap(np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [0.0, 0.0]]))
    cells, vectors = rounds[0].parts[0].cells, rounds[1].parts[0].vectors
    assert cells.locate(far).shape == (5, 1)
    assert vectors is not None
    near = vectors.cells.locate(far)
    assert near.shape == (5, 1)
    assert ((vectors.values(far, near).astype(object) ** 2).sum(axis=1) <= SCALE**2).all()
    sigma = rounds[1].events[0].sigma
    assert sigma >= SCALE / math.sqrt(0.2 * problem.budget.amount) * (1 - 1e-6)
    assert rounds[0].events[0].sigma >= 1 / math.sqrt(0.8 * problem.budget.amount) * (1 - 1e-6)


@pytest.mark.parametrize(("epsilon", "most"), [(0.001, 1.0), (0.01, 1.2)])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_no_noise_makes_it_worse_than_one_centre_at_the_domains_middle(d: int, epsilon: float, most: float) -> None:
    """Rows in the middle, uniform, and in groups: n = 150, means of 30 seeded runs, of 0.81 to 0.94 times the middle's
    cost at epsilon = 0.001, of 0.64 to 1.10 at 0.01."""
    g = np.random.default_rng(d)
    middle = 0.3 * g.standard_normal((150, d)).clip(-3, 3)
    for rows in (middle, g.uniform(-1, 1, (150, d)), groups(150, 3, d)[0]):
        cost = np.mean(
            [nicv(rows, run(rows, problem_of(150, 3, cube(d), epsilon=epsilon), s)[0].centers) for s in range(30)]
        )
        assert cost < most * nicv(rows, np.zeros((1, d)))


@pytest.mark.parametrize(
    ("rows", "k"),
    [
        (np.zeros((50, 2)), 1),
        (np.zeros((50, 2)), 7),
        (np.full((3, 2), 0.9), 3),
        (np.array([[0.5, -0.5]]), 1),
        (np.linspace(-1, 1, 10)[:, None], 10),
        (np.linspace(-1, 1, 40)[:, None], 1),
        (np.ones((30, 6)), 2),
    ],
)
def test_few_rows_equal_rows_and_a_centre_for_every_row_are_answered(rows: Floats, k: int) -> None:
    for components, budget in (
        (None, Budget("gaussian", 0.01)),
        (None, Budget("gaussian", 1e4)),
        (EXACT, Budget("exact", 1.0)),
    ):
        found, _ = run(rows, problem_of(len(rows), k, cube(rows.shape[1]), budget), components=components)
        assert found.centers.shape == (k, rows.shape[1])
        assert (np.abs(found.centers) <= 1).all()


def test_without_noise_equal_rows_are_found_where_they_are() -> None:
    found, _ = run(np.full((500, 2), 0.37), problem_of(500, 1, budget=Budget("exact", 1.0)), components=EXACT)
    assert found.centers[0] == pytest.approx([0.37, 0.37], abs=1e-3)


def test_columns_of_very_different_width_get_nearly_square_cells() -> None:
    g = np.random.default_rng(5)
    truth = np.stack([np.linspace(5, 95, 10), np.full(10, 0.5)], axis=1)
    rows = truth[np.arange(5000) % 10] + g.standard_normal((5000, 2)) * [1.0, 0.1]
    problem = problem_of(5000, 10, Box((0.0, 0.0), (100.0, 1.0)))
    found, rounds = run(rows, problem)
    assert nicv(rows, found.centers) < 1.2 * nicv(rows, truth)
    assert rounds[0].parts[0].cells.parts[1] < 5  # type: ignore[attr-defined]


def test_the_grid_has_the_cells_of_the_formula() -> None:
    """15 groups of 5,000 rows in two columns: cells of a standard error of 1 / (mu sqrt 0.8)."""
    problem = problem_of(5000, 15, budget=Budget("gaussian", 0.25))
    q = 5000 / 15 * 0.5 * math.sqrt(0.8)
    per_count, _ = method().shares(problem.budget, SEED)
    side = 1.35 * math.sqrt(15) * q ** (1 / 3)
    assert method().grid(problem, per_count).parts == (round(side), round(side))


def test_more_rows_and_more_budget_never_raise_the_expected_error() -> None:
    for components, measure in ((None, "gaussian"), (LOCAL, "pure"), (POOLED, "gaussian")):
        errors = [
            [
                method(components).expected_error(problem_of(n, 5, budget=Budget(measure, amount)))
                for n in (100, 10**4, 10**6)
            ]
            for amount in (0.01, 0.5, 2.0)
        ]
        assert (np.diff(errors, axis=0) < 0).all()
        assert (np.diff(errors, axis=1) < 0).all()


def test_the_expected_error_is_the_measured_one_to_a_factor_of_ten() -> None:
    for n, k, epsilon in ((1500, 8, 0.1), (5000, 15, 0.1), (3000, 20, 0.1)):
        rows, truth = groups(n, k, spread=0.1)
        problem = problem_of(n, k, epsilon=epsilon)
        cost = np.mean([nicv(rows, run(rows, problem, s)[0].centers) for s in range(8)])
        measured = (cost - nicv(rows, truth)) / 2
        assert 0.1 < measured / method().expected_error(problem) < 10


def test_a_step_is_never_longer_than_what_clipping_leaves_of_an_offset() -> None:
    """Sums of pure noise, as large as can be: the step is within 1.3 radii all the same, and without noise it is 1.3 S
    / N."""
    g, radii, sizes = np.random.default_rng(1), np.array([0.1, 0.5]), np.array([20.0, 5.0])
    for scale in (1.0, 1e3, 1e9):
        steps = np.array(
            [stepped(g.standard_normal((2, 3)) * scale, np.full(2, scale), sizes, radii) for _ in range(200)]
        )
        assert (np.sqrt((steps**2).sum(axis=2)).mean(axis=0) <= STEP * radii).all()
    exact = stepped(np.array([[1.0, 0.0], [0.0, 2.0]]), np.zeros(2), sizes, radii)
    assert exact == pytest.approx(STEP * np.array([[0.05, 0.0], [0.0, 0.4]]))


def test_many_columns_are_refused_with_a_way_out() -> None:
    with pytest.raises(InvalidInput, match="at most 6 columns, not 7: use 'hst-means'"):
        forecast(method(), problem_of(1000, 3, cube(7)), SEED)


def test_pictures_get_the_cells_that_the_rows_are_in() -> None:
    rows, _ = groups(5000, 4)
    found, _ = run(rows, problem_of(5000, 4))
    cells, weights = found.details["cells"], found.details["cell_weights"]
    assert cells.shape == (len(weights), 2, 2)
    inside = ((cells[:, 0] <= rows[:200, None]) & (rows[:200, None] <= cells[:, 1])).all(axis=2)
    assert inside.any(axis=1).mean() > 0.95


def test_grid_median_beats_the_tree_s_where_noise_is_large() -> None:
    """k-median cost, the sum of three seeded runs each."""
    rows, _ = groups(4000, 9)
    costs = []
    for name in ("grid-median", "hst-median"):
        problem, made = problem_of(4000, 9, epsilon=0.1), compose(built_in(), "Method", name, {}, {}).value
        sessions = [Session(problem, SEED, Arrays(rows), noise=NoiseRng.for_tests(s)) for s in range(3)]
        found = [made.cluster(problem, session, SEED.child("method")).centers for session in sessions]
        costs.append(sum(k_median_cost(rows, centers) for centers in found))
    assert costs[0] < 0.8 * costs[1]

"""radius-means: clusters found, whatever the bounds; its exact privacy loss; what it does with too little budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Ball, Box, Domain
from cloister.core.encoding import encode_rows
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import built_in
from cloister.core.session import Session, forecast
from cloister.core.trust import Aggregated, Local, Shuffled
from cloister.core.types import Floats, Ints
from cloister.metrics import nicv
from cloister.plugins.methods.measuring import Moved
from cloister.plugins.methods.radius_means import LAW, RadiusMeans, candidates, shares
from cloister.plugins.populations.arrays import Arrays
from tests.plugins.methods.everybody import check_that_all_answer_all

SEED = PublicRng.from_seed(80)
LOCAL = {"counts": "optimised-local-hashing", "sums": "hadamard-vector"}


def box(d: int, scale: float = 1.0) -> Box:
    return Box((-scale,) * d, (scale,) * d)


def made(**wires: str) -> Any:
    return compose(built_in(), "Method", "radius-means", wires, {}).value


def clumps(d: int, k: int = 6, n: int = 6000) -> tuple[Floats, Floats]:
    g = np.random.default_rng(d)
    centers = g.uniform(-0.8, 0.8, (k, d))
    return np.clip(centers[g.integers(0, k, n)] + g.normal(0, 0.03, (n, d)), -1, 1), centers


def ran(rows: Floats, k: int, mu2: float, seed: int, domain: Domain, n: int = 0, **wires: str) -> tuple[Floats, Any]:
    problem = Problem(k, domain, n or len(rows), Budget("gaussian", mu2))
    session: Any = Session(problem, SEED.child(seed), Arrays(rows), noise=NoiseRng.for_tests(seed))
    found = made(**wires).cluster(problem, session, SEED.child("method", seed))
    return found.centers, session


@pytest.mark.parametrize("d", [2, 5, 20, 60])
def test_clear_clusters_are_found_in_any_number_of_columns(d: int) -> None:
    rows, truth = clumps(d)
    found = min(nicv(rows, ran(rows, 6, 1.0, s, box(d))[0]) for s in range(3))
    assert found < 1.5 * nicv(rows, truth) + 0.002 * d


def test_bounds_a_thousand_times_too_wide_cost_little() -> None:
    rows, truth = clumps(8, n=20_000)
    found = min(nicv(rows, ran(rows, 6, 1.0, s, box(8, 1000.0))[0]) for s in range(3))
    assert found < 2 * nicv(rows, truth)


def test_a_group_behind_another_is_found() -> None:
    """Seen from the mean of all rows, two of the five groups lie in one direction."""
    g = np.random.default_rng(1)
    middles = np.array([[0.0] * 6, [0.45] + [0.0] * 5, [0.9] + [0.0] * 5, [0, 0.4, 0, 0, 0, 0], [0, 0, -0.4, 0, 0, 0]])
    groups = g.choice(5, 20_000, p=[0.5, 0.08, 0.02, 0.2, 0.2])
    rows = middles[groups] + 0.03 * g.standard_normal((20_000, 6))
    for seed in range(3):
        assert nicv(rows, ran(rows, 5, 0.25, seed, box(6))[0]) < 1.3 * nicv(rows, middles)


@pytest.mark.thorough
@pytest.mark.parametrize("k", [1, 3, 150])
@pytest.mark.parametrize("d", [1, 3, 20])
def test_with_a_budget_worth_nothing_all_centres_are_in_the_middle(d: int, k: int) -> None:
    """150 rows in a corner at mu = 0.0003, an epsilon of about 0.001: never worse than one centre at the middle."""
    rows = np.random.default_rng(2).uniform(0.2, 0.9, (150, d))
    for seed in range(10):
        centers, _ = ran(rows, k, 0.0003**2, seed, box(d))
        assert np.linalg.norm(centers, axis=1).max() < 0.05 * np.sqrt(d)
        assert nicv(rows, centers) < 1.02 * nicv(rows, np.zeros((1, d)))


@pytest.mark.thorough
@pytest.mark.parametrize("mu", [0.003, 0.01, 0.03])
def test_with_little_budget_it_is_hardly_ever_worse_than_the_middle(mu: float) -> None:
    """On average over forty runs of 150 rows around the middle, which is then the best centre."""
    rows = np.random.default_rng(3).normal(0, 0.3, (150, 4)).clip(-1, 1)
    costs = [nicv(rows, ran(rows, 3, mu**2, seed, box(4))[0]) for seed in range(40)]
    assert np.mean(costs) < 1.05 * nicv(rows, np.zeros((1, 4)))


def test_without_noise_it_is_k_means() -> None:
    rows, truth = clumps(5)
    centers, _ = ran(rows, 6, 1.0, 0, box(5), counts="exact", sums="exact")
    best = np.array(
        [rows[((rows[:, None] - truth) ** 2).sum(axis=2).argmin(axis=1) == j].mean(axis=0) for j in range(6)]
    )
    assert nicv(rows, centers) < 1.01 * nicv(rows, best)


def odd_rows() -> dict[str, Floats]:
    g = np.random.default_rng(4)
    return {
        "nobody": np.zeros((0, 4)),
        "one": np.ones((1, 4)),
        "all on a point": np.full((500, 4), 0.25),
        "all beyond the bounds": 1e6 * g.standard_normal((500, 4)),
        "at two corners": np.repeat([[-1.0] * 4, [1.0] * 4], 250, axis=0),
    }


@pytest.mark.parametrize("name", odd_rows())
def test_a_run_on_odd_rows_asks_what_was_forecast(name: str) -> None:
    problem = Problem(3, box(4), 500, Budget("gaussian", 0.5))
    centers, session = ran(odd_rows()[name], 3, 0.5, 1, box(4), n=500)
    foreseen = forecast(made(), problem, SEED.child(1))
    assert len(foreseen) == 9
    assert [round.events for round in session.rounds] == [round.events for round in foreseen]
    sizes = [[[part.cells.space for part in round.parts] for round in rounds] for rounds in (session.rounds, foreseen)]
    assert sizes[0] == sizes[1]
    assert np.isfinite(centers).all()


def contributions(session: Any, row: Floats) -> list[float]:
    """What this row adds to each answer, in standard deviations of its noise: the exact privacy loss of the run, since
    centres and radii of every round are those that this run released."""
    found = []
    for round in session.rounds:
        rows: Ints = round.domain.snap(row[None])
        for part in round.parts:
            size = 1.0
            if part.vectors is not None:
                values = part.vectors.values(rows, part.cells.locate(rows))
                size = float(np.linalg.norm(values)) * round.domain.unit
            found.append(size / part.channel.deviation)
    return found


@pytest.mark.parametrize("domain", [box(6), Ball((0.5,) * 6, 2.0)], ids=["box", "ball"])
def test_the_row_that_is_farthest_from_all_others_costs_the_whole_budget_and_no_row_more(domain: Domain) -> None:
    """Gaussian releases add up in squares, whatever the later ones are made of. The adversary's row is at the border,
    all others near the middle. Noise too small by a factor of 1.2 would cost 1.44 budgets."""
    g = np.random.default_rng(5)
    rows = domain.middle + 0.05 * g.standard_normal((2000, 6))
    border = domain.middle + domain.diameter / 2 / np.sqrt(6)
    for seed in range(3):
        _, session = ran(np.vstack([rows, border[None]]), 3, 0.5, seed, domain)
        assert sum(c**2 for c in contributions(session, border)) == pytest.approx(0.5, rel=1e-3)
        for row in (*rows[:20], *domain.sample(g, 20, 0.0)):
            assert sum(c**2 for c in contributions(session, row)) <= 0.5 * (1 + 1e-9)


def test_shares_of_the_budget_add_up_to_it() -> None:
    for rounds in range(9):
        for d in (1, 64):
            given = shares(d, rounds)
            assert min(given) > 0
            assert sum(given) == pytest.approx(1.0 if rounds else 0.62)


def test_under_local_trust_every_user_answers_one_question() -> None:
    problem = Problem(4, box(5), 100_000, Budget("pure", 1.0))
    method = made(**LOCAL)
    rounds = forecast(method, problem, SEED)
    asked = [part.user_share for round in rounds for part in round.parts]
    assert all(part.channel.events[0].spent.amount == 1.0 for round in rounds for part in round.parts)
    users = np.arange(5000, dtype=np.uint64)
    assert (np.sum([share.holds(users) for share in asked if share], axis=0) == 1).all()
    assert rounds[0].trust is Local
    reports = encode_rows(rounds[0], np.zeros((10, 5)), users[:10], NoiseRng.for_tests(1))
    assert len(reports) == 1


@pytest.mark.parametrize(
    ("counts", "sums", "trust"),
    [("skellam", "skellam", Aggregated), ("split-and-mix-counts", "split-and-mix", Shuffled)],
)
def test_under_aggregated_and_shuffled_trust_everybody_answers_with_a_share_of_the_budget(
    counts: str, sums: str, trust: type
) -> None:
    check_that_all_answer_all(made(counts=counts, sums=sums), trust)


def test_candidates_beyond_those_that_count_repeat_the_first_and_are_as_many_in_every_run() -> None:
    ones = np.ones(1024)
    for significant in (0, 30, 1024):
        sizes = np.where(np.arange(1024) < significant, 100.0, 0.0)
        cells = Moved(sizes, ones, np.arange(2048.0).reshape(1024, 2), ones, ones, 50.0)
        found, offsets = candidates(cells, 4)
        assert len(offsets) == 64
        assert found == min(max(20, significant), 64)
        assert (offsets[found:] == offsets[0]).all()


def test_the_expected_error_falls_with_rows_and_budget_and_grows_with_centres() -> None:
    method = made()

    def error(n: int = 10_000, mu2: float = 0.1, k: int = 8, domain: Domain | None = None) -> float:
        return float(method.expected_error(Problem(k, domain or box(6), n, Budget("gaussian", mu2))))

    assert error(20_000) == pytest.approx(error() / 2**LAW.power)
    assert error(mu2=0.4) == pytest.approx(error(20_000), rel=1e-3)
    assert error(k=16) > 2 * error()
    assert error(domain=box(6, 100.0)) == pytest.approx(error(), rel=1e-2)
    assert error(domain=box(24)) > error()
    assert made(**LOCAL).expected_error(Problem(8, box(6), 10_000, Budget("pure", 1.0))) > 10 * error(mu2=0.06)
    assert isinstance(method, RadiusMeans)


def test_the_expected_error_is_about_the_cost_that_is_measured() -> None:
    """Four overlapping groups in ten columns: within a factor of twenty either way, over a hundredfold range."""
    g, d = np.random.default_rng(6), 10
    rows = np.clip(g.uniform(-0.5, 0.5, (4, d))[g.integers(0, 4, 4000)] + 0.25 * g.standard_normal((4000, d)), -1, 1)
    best = min(nicv(rows, ran(rows, 4, 1e6, seed, box(d))[0]) for seed in range(3))
    for mu in (0.05, 0.5):
        cost = np.mean([nicv(rows, ran(rows, 4, mu**2, seed, box(d))[0]) for seed in range(6)]) - best
        v = made().expected_error(Problem(4, box(d), 4000, Budget("gaussian", mu**2)))
        assert v / 20 < cost / d < 20 * v

"""Lloyd's rounds: the papers' formulas, plain k-means without noise, and what one row can change."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.accounting import Accountant, Total
from cloister.core.budget import Budget
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Ball, Box
from cloister.core.encoding import absorb, encode_rows
from cloister.core.errors import InvalidInput
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Session, forecast
from cloister.core.trust import Central
from cloister.noise.dense import TensorChannel
from cloister.noise.laws import Gaussian, Laplace
from cloister.plugins.methods.lloyd import Lloyd
from cloister.plugins.methods.sphere_packing import SpherePacking, sphere_packing
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.plugins.oracles.central.exact import Exact

SEED = PublicRng(b"l" * 32)
SQUARE = Box((-1.0, -1.0), (1.0, 1.0))
RHO = 0.225
ABSOLUTE: dict[str, Any] = {"updates": "absolute", "radius": "none", "clip_steps": False, "keep_below": 1.0}
PLAIN: dict[str, Any] = {"radius": "none", "clip_steps": False, "border": "none"}

DIMENSIONS, ROWS, CENTRES, EPSILONS = (
    (1, 2, 3, 8, 20, 50),
    (10**3, 10**4, 10**5, 10**6),
    (1, 2, 3, 5, 15),
    (0.05, 0.3, 1.0, 2.0),
)
GRID = [(d, n, k, eps) for d in DIMENSIONS for n in ROWS for k in CENTRES for eps in EPSILONS]


def cube(d: int) -> Box:
    return Box((-1.0,) * d, (1.0,) * d)


def gauss(**options: Any) -> Lloyd[Central]:
    return Lloyd(start=SpherePacking(), counts=DiscreteGaussian(), sums=DiscreteGaussian(), **options)


def laplace(**options: Any) -> Lloyd[Central]:
    return Lloyd(start=SpherePacking(), counts=DiscreteLaplace(), sums=DiscreteLaplace(), **options)


def exact(**options: Any) -> Lloyd[Central]:
    return Lloyd(start=SpherePacking(), counts=Exact(), sums=Exact(), **options)


def problem_of(method: Lloyd[Central], k: int, domain: Any, n: int, eps: float = 1.0) -> Problem:
    return Problem(k, domain, n, Total(eps, 1e-6).measured([method.counts.measure, method.sums.measure]))


class Rows:
    """Rows in one piece."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        return absorb(round, encode_rows(round, self.rows, np.arange(len(self.rows), dtype=np.uint64), rng))


def run(method: Any, problem: Problem, population: Any, noise: int = 0) -> tuple[Clustering, list[Round[Any]]]:
    if isinstance(population, np.ndarray):
        population = Rows(population)
    session: Session[Any] = Session(problem, SEED, population, noise=NoiseRng.for_tests(noise))
    return method.cluster(problem, session, SEED), session.rounds


# The schedule


def clip_rounds(rounds: float) -> tuple[int, bool]:
    """Between two and seven, and whether it is so close to a whole number that the lattice's rounding may decide."""
    return max(2, min(7, math.floor(rounds))), abs(rounds - round(rounds)) < 1e-4 * rounds


def agree(expected: float, chosen: int) -> bool:
    """Whether this many rounds follow from the formula; off by one only exactly where it turns."""
    rounds, close = clip_rounds(expected)
    return chosen == rounds or (close and abs(chosen - rounds) == 1)


def test_fastlloyd_follows_equations_7_19_and_21() -> None:
    inner = 0
    for d, n, k, eps in GRID:
        problem = problem_of(gauss(), k, cube(d), n, eps)
        schedule = gauss().schedule(problem)
        sigma, eta = 1 / problem.budget.mu, 0.8 * 2 * math.sqrt(d) / (2 * k ** (1 / d))
        rounds = 4 * n**2 * 0.004 / (k**3 * eta**2 * sigma**2 * (1 + math.sqrt(4 * d)) ** 2)
        assert agree(rounds, schedule.rounds), (d, n, k, eps, rounds)
        inner += 2 < rounds < 7
        assert schedule.per_sum.amount / schedule.per_count.amount == pytest.approx(math.sqrt(4 * d), rel=1e-5)
        of_count, of_sum = (math.sqrt(schedule.rounds) * s.mu for s in (schedule.per_count, schedule.per_sum))
        assert 1 / of_count == pytest.approx(sigma * math.sqrt(1 + math.sqrt(4 * d)), rel=1e-5)
        assert 1 / of_sum == pytest.approx(sigma * math.sqrt(1 + math.sqrt(4 * d)) / (4 * d) ** 0.25, rel=1e-5)
    assert inner > 20


def test_gauss_lloyd_follows_equations_31_and_33_without_the_misprinted_t() -> None:
    """Equation 33 as printed has T on both sides."""
    inner = 0
    for d, n, k, eps in GRID:
        method = gauss(**ABSOLUTE)
        problem = problem_of(method, k, cube(d), n, eps)
        schedule = method.schedule(problem)
        rounds = n**2 * 0.004 * problem.budget.amount / (k**3 * d * (2 * RHO + math.sqrt(d)) ** 2)
        assert agree(rounds, schedule.rounds), (d, n, k, eps, rounds)
        inner += 2 < rounds < 7
        ratio = math.sqrt(math.sqrt(d) / (2 * RHO))
        assert schedule.per_sum.mu / schedule.per_count.mu == pytest.approx(ratio, rel=1e-5)
    assert inner > 20


def test_su_lloyd_shares_by_cube_roots_and_chooses_the_rounds_of_su_et_al() -> None:
    """The formulas are for real Laplace noise, which discrete noise is close to on the grid."""
    inner = 0
    for d, n, k, eps in GRID:
        method = laplace(**ABSOLUTE)
        schedule = method.schedule(problem_of(method, k, cube(d), n, eps))
        root = (4 * d * RHO**2) ** (1 / 3)
        rounds = eps / math.sqrt(500 * k**3 / n**2 * (d + root) ** 3)
        assert agree(rounds, schedule.rounds), (d, n, k, eps, rounds)
        inner += 2 < rounds < 7
        assert schedule.per_sum.amount / schedule.per_count.amount == pytest.approx(d / root, rel=1e-4)
    assert inner > 20


@pytest.mark.parametrize("scale", [2.0**-20, 0.25, 1024.0])
@pytest.mark.parametrize("options", [{}, ABSOLUTE])
def test_the_schedule_does_not_depend_on_the_unit_of_the_columns(scale: float, options: dict[str, Any]) -> None:
    for method in (gauss(**options), laplace(**options)):
        for n in (2_000, 6_000, 20_000):
            small, large = (
                method.schedule(problem_of(method, 4, Box((-b, 0.0, -b), (b, 2 * b, b)), n)) for b in (1.0, scale)
            )
            assert small.rounds == large.rounds
            assert small.per_count.amount == pytest.approx(large.per_count.amount, rel=1e-9)


def test_options_change_the_schedule_as_they_say() -> None:
    problem = problem_of(gauss(), 5, cube(3), 20_000)
    assert gauss(rounds=12).schedule(problem).rounds == 12
    assert gauss(rounds=1).schedule(problem).rounds == 1
    assert gauss(error_target=1e-30).schedule(problem).rounds == 2
    assert gauss(error_target=1e30).schedule(problem).rounds == 7
    assert gauss(error_target=1e-30, fewest_rounds=4).schedule(problem).rounds == 4
    assert gauss(error_target=1e30, most_rounds=9).schedule(problem).rounds == 9
    assert gauss(fewest_rounds=3, most_rounds=3).schedule(problem).rounds == 3


@pytest.mark.parametrize(
    "method", [gauss(), gauss(**ABSOLUTE), laplace(**ABSOLUTE), laplace(), gauss(rounds=1), laplace(rounds=9)]
)
@pytest.mark.parametrize("domain", [SQUARE, Box((0.0,), (5.0,)), Ball((0.0, 1.0, 2.0), 3.0)])
@pytest.mark.parametrize("eps", [0.1, 1.0, 8.0])
def test_the_events_of_a_run_add_up_to_the_budget(method: Lloyd[Central], domain: Any, eps: float) -> None:
    problem = problem_of(method, 4, domain, 1000, eps)
    rounds = forecast(method, problem, SEED)
    amounts = [event.spent.amount for round in rounds for event in round.events]
    assert math.fsum(amounts) == pytest.approx(problem.budget.amount, rel=1e-12)
    Accountant(Total(eps, 1e-6), problem.budget).forecast([round.events for round in rounds])
    _, asked = run(method, problem, np.random.default_rng(0).normal(0, 1, (50, domain.dimension)))
    assert [round.events for round in asked] == [round.events for round in rounds]


def test_mixed_oracles_share_a_budget_in_rho() -> None:
    method: Lloyd[Central] = Lloyd(start=SpherePacking(), counts=DiscreteLaplace(), sums=DiscreteGaussian())
    problem = problem_of(method, 3, SQUARE, 5000)
    assert problem.budget.measure == "zcdp"
    accountant = Accountant(Total(1.0, 1e-6), problem.budget)
    spent = accountant.forecast([round.events for round in forecast(method, problem, SEED)])
    assert spent.all_rho == pytest.approx(problem.budget.amount, rel=1e-9)


# The radius


def radius(domain: Any, k: int, alpha: float = 0.8) -> float:
    """Equation 25."""
    return alpha * domain.diameter / (2 * k ** (1 / domain.dimension))


@pytest.mark.parametrize("domain", [SQUARE, Box((0.0, -3.0, 1.0), (1.0, 3.0, 1.5)), Ball((0.0,) * 4, 2.0)])
@pytest.mark.parametrize("k", [1, 2, 7])
def test_radii_are_those_of_equation_25(domain: Any, k: int) -> None:
    eta, half = radius(domain, k), domain.diameter / 2
    problem = problem_of(gauss(), k, domain, 1000)
    assert gauss(rounds=4).schedule(problem).radii == pytest.approx([half, eta, eta, eta])
    assert gauss(rounds=3, radius="constant").schedule(problem).radii == pytest.approx([eta] * 3)
    assert gauss(rounds=2, radius="none").schedule(problem).radii == [math.inf] * 2
    assert gauss(rounds=2, radius_scale=0.3).schedule(problem).radii == pytest.approx([half, eta * 3 / 8])
    assert gauss(rounds=1).schedule(problem).radii == pytest.approx([half])


def test_each_round_asks_within_its_radius_and_its_noise_is_that_of_equations_8_and_9() -> None:
    problem = problem_of(gauss(), 5, SQUARE, 100_000)
    rounds = forecast(gauss(), problem, SEED)
    sigma, d = 1 / problem.budget.mu, 2
    assert len(rounds) == 7
    for round, reach in zip(rounds, gauss().schedule(problem).radii, strict=True):
        counts, sums = round.parts
        cells: Any = counts.cells
        assert cells.within == int(reach / SQUARE.unit)
        assert sums.vectors is not None
        assert sums.vectors.bound.l2 == cells.within
        deviation = sigma * math.sqrt(1 + math.sqrt(4 * d)) * math.sqrt(7)
        assert counts.channel.deviation == pytest.approx(deviation, rel=1e-5)  # type: ignore[attr-defined]
        assert sums.channel.deviation == pytest.approx(deviation / (4 * d) ** 0.25 * reach, rel=1e-5)  # type: ignore[attr-defined]


def test_absolute_updates_have_the_domain_as_their_sensitivity() -> None:
    for domain, l1 in ((cube(3), 3 * 1.0), (Ball((0.0,) * 3, 1.0), math.sqrt(3))):
        method = laplace(**ABSOLUTE, rounds=2)
        round = forecast(method, problem_of(method, 2, domain, 1000), SEED)[0]
        vectors = round.parts[1].vectors
        assert vectors is not None
        assert vectors.bound.l2 == domain.max_norm
        assert vectors.bound.l1 * domain.unit == pytest.approx(l1, rel=1e-5)
        assert round.parts[0].cells.within is None  # type: ignore[attr-defined]


def test_a_row_farther_than_the_radius_counts_nowhere() -> None:
    rows = np.random.default_rng(1).uniform(-1, 1, (2000, 2))
    method = exact(radius="constant", rounds=1, radius_scale=0.4)
    problem = problem_of(method, 4, SQUARE, 2000)
    start = SQUARE.real(SQUARE.snap(sphere_packing(4, SQUARE, SEED.child("start"))))
    distance = np.linalg.norm(rows[:, None] - start[None], axis=2)
    nearest, counted = distance.argmin(axis=1), distance.min(axis=1) <= radius(SQUARE, 4, 0.4)
    assert 400 < counted.sum() < 1600
    found, _ = run(method, problem, rows)
    assert found.weights is not None
    assert found.weights.tolist() == [(counted & (nearest == j)).sum() for j in range(4)]
    means = np.array([rows[counted & (nearest == j)].mean(axis=0) for j in range(4)])
    assert np.allclose(found.centers, means, atol=2 * SQUARE.unit)
    every, _ = run(exact(radius="none", rounds=1), problem, rows)
    assert every.weights is not None
    assert every.weights.sum() == 2000


# Without noise


def plain(points: np.ndarray, start: np.ndarray, rounds: int, domain: Any) -> np.ndarray:
    """Lloyd's algorithm on lattice points, in NumPy; an empty cluster keeps its centre."""
    centers = start.copy()
    for _ in range(rounds):
        on_lattice = np.rint((centers - domain.middle) / domain.unit)
        near = ((points[:, None] - on_lattice[None]) ** 2).sum(axis=2).argmin(axis=1)
        for j in range(len(centers)):
            inside = points[near == j]
            mean = inside.mean(axis=0) if len(inside) else on_lattice[j]
            centers[j] = domain.middle + mean * domain.unit
    return centers


def blobs(domain: Any, n: int, seed: int) -> np.ndarray:
    g = np.random.default_rng(seed)
    means = domain.sample(g, 5, 0.0)
    return means[g.integers(0, 5, n)] + g.normal(0, domain.diameter / 20, (n, domain.dimension))


@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize(
    "domain", [SQUARE, Box((0.0,), (10.0,)), Box((5.0,) * 6, (6.0,) * 6), Ball((1.0, 2.0, 3.0), 4.0)]
)
def test_without_noise_relative_and_absolute_updates_are_plain_lloyd(domain: Any, k: int) -> None:
    rows = blobs(domain, 400, k)
    expected = plain(domain.snap(rows).astype(float), sphere_packing(k, domain, SEED.child("start")), 6, domain)
    problem = problem_of(exact(), k, domain, 400)
    relative, _ = run(exact(**PLAIN, rounds=6), problem, rows)
    absolute, _ = run(exact(**{**ABSOLUTE, "border": "none"}, rounds=6), problem, rows)
    assert np.allclose(relative.centers, expected, rtol=0, atol=1e-9 * domain.diameter)
    assert np.allclose(absolute.centers, expected, rtol=0, atol=1e-9 * domain.diameter)


def test_the_fastlloyd_defaults_without_noise_lower_the_cost_like_plain_lloyd() -> None:
    rows = blobs(SQUARE, 500, 3)
    problem = problem_of(exact(), 5, SQUARE, 500)

    def cost(centers: np.ndarray) -> float:
        return float(((rows[:, None] - centers[None]) ** 2).sum(axis=2).min(axis=1).sum())

    start = sphere_packing(5, SQUARE, SEED.child("start"))
    ours, _ = run(exact(rounds=7), problem, rows)
    theirs = plain(SQUARE.snap(rows).astype(float), start, 7, SQUARE)
    assert cost(ours.centers) < cost(start) / 2
    assert cost(ours.centers) < 1.5 * cost(theirs)


# One update, from answers that are told


@attrs.frozen
class Table:
    """Answers that were told."""

    values: np.ndarray
    error: float

    def at(self, ids: np.ndarray, level: int = 0) -> np.ndarray:
        return self.values[ids].copy()

    def standard_error(self, ids: np.ndarray, level: int = 0) -> np.ndarray:
        return np.full(len(ids), self.error)


@attrs.frozen
class Told:
    """A channel and an oracle that answer what a test says, whatever the rows."""

    values: tuple[Any, ...]
    error: float = 0.0
    trust = Central
    measure = "exact"
    uses_delta = asks_all_users = biased = False
    events = ()

    def open(self, *_: Any) -> Any:
        return self

    def variance(self, *_: Any) -> float:
        return 0.0

    def decode(self, summary: Any, rng: Any) -> Table:
        return Table(np.array(self.values, float), self.error)


class Nobody:
    """No rows are needed."""

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        return (None,) * len(round.parts)


START = SQUARE.real(SQUARE.snap(sphere_packing(3, SQUARE, SEED.child("start"))))


def one_update(
    counts: Any, sums: Any, *, count_error: float = 0.0, sum_error: float = 0.0, **options: Any
) -> tuple[np.ndarray, Clustering]:
    """Where three centres go in one round on the square, before they are moved to its middle by their noise."""
    method: Lloyd[Central] = Lloyd(
        start=SpherePacking(),
        counts=Told(tuple(counts), count_error),
        sums=Told(tuple(map(tuple, sums)), sum_error),
        rounds=1,
        **options,
    )
    found, _ = run(method, Problem(3, SQUARE, 100, Budget("exact", math.inf)), Nobody())
    return found.details["iterates"][-1] - START, found


def test_a_centre_moves_by_sum_over_count() -> None:
    sums = np.array([[3.0, -1.0], [0.5, 0.25], [-2.0, 2.0]]) * 0.1
    steps, found = one_update([10, 4, 8], sums, border="none")
    assert np.allclose(steps, sums / [[10], [4], [8]], atol=1e-12)
    assert found.weights is not None
    assert found.weights.tolist() == [10, 4, 8]
    moved, _ = one_update([10, 4, 8], sums, **{**ABSOLUTE, "border": "none"})
    assert np.allclose(moved + START, sums / [[10], [4], [8]], atol=1e-12)


@pytest.mark.parametrize("count", [-50.0, -0.5, 0.0, 1e-12, 2.0])
def test_a_small_or_negative_count_flips_no_step_and_is_floored(count: float) -> None:
    sums = np.array([[0.3, -0.1]] * 3)
    steps, found = one_update([count] * 3, sums, count_error=2.5, floor=2.0, border="none")
    assert np.allclose(steps, sums / 5.0, atol=1e-12)
    assert found.weights is not None
    assert found.weights.tolist() == [max(count, 0.0)] * 3


def test_counts_of_zero_without_noise_move_nothing_anywhere_strange() -> None:
    steps, _ = one_update([0, 0, 0], np.zeros((3, 2)))
    assert np.allclose(steps, 0.0, atol=1e-12)
    steps, _ = one_update([-4, 0, 1], np.ones((3, 2)), count_error=0.0, floor=0.0)
    assert np.isfinite(steps).all()


def test_weights_are_never_negative() -> None:
    _, found = one_update([-7.25, 3.5, -0.0], np.zeros((3, 2)), count_error=1.0)
    assert found.weights is not None
    assert found.weights.tolist() == [0.0, 3.5, 0.0]
    problem = problem_of(laplace(), 9, SQUARE, 20, 0.05)
    for noise in range(5):
        weights = run(laplace(), problem, np.zeros((5, 2)), noise)[0].weights
        assert weights is not None
        assert (weights >= 0).all()
        assert (weights == 0).any()


def test_a_centre_below_the_threshold_keeps_its_place() -> None:
    steps, _ = one_update([4.9, 5.0, -3.0], np.ones((3, 2)), keep_below=5.0, border="none")
    assert (steps[[0, 2]] == 0).all()
    assert np.allclose(steps[1], 0.2)
    steps, _ = one_update([4.9, 5.0, 1.0], np.ones((3, 2)), border="none")
    assert (steps != 0).all()


def test_no_centre_moves_farther_than_the_radius() -> None:
    sums = np.array([[300.0, -400.0], [0.0, 1.0], [-5.0, 0.0]])
    eta = radius(SQUARE, 3)
    steps, _ = one_update([1, 10, 1], sums, radius="constant", border="none")
    assert np.allclose(steps, [[0.6 * eta, -0.8 * eta], [0.0, 0.1], [-eta, 0.0]])
    free, _ = one_update([1, 10, 1], sums, radius="constant", border="none", clip_steps=False)
    assert np.allclose(free, sums / [[1], [10], [1]])


@pytest.mark.parametrize(("border", "expected"), [("none", 1.3), ("truncate", 1.0), ("fold", 0.7)])
def test_a_centre_that_leaves_the_domain_is_left_moved_or_reflected(border: str, expected: float) -> None:
    target = np.array([[1.3, 0.0], [0.0, -1.3], [0.5, 0.5]])
    steps, _ = one_update([1, 1, 1], target - START, border=border, clip_steps=False)
    assert np.allclose(steps + START, [[expected, 0.0], [0.0, -expected], [0.5, 0.5]])


def test_steps_are_clipped_before_the_border() -> None:
    eta = radius(SQUARE, 3)
    steps, _ = one_update([1] * 3, [[1e6, 0.0]] * 3, radius="constant", border="truncate")
    assert np.allclose(steps[:, 0], np.minimum(eta, 1 - START[:, 0]))


def test_a_step_is_shortened_by_its_expected_noise() -> None:
    """James and Stein: 1 - s d (error / size)^2 / |step|^2, never less than nothing."""
    sums = np.array([[30.0, 40.0], [3.0, 4.0], [0.3, 0.4]])
    steps, _ = one_update([100] * 3, sums, sum_error=2.0, shrink=0.5, border="none")
    kept = [1 - 0.5 * 2 * 0.02**2 / 0.5**2, 1 - 0.5 * 2 * 0.02**2 / 0.05**2, 0.0]
    assert np.allclose(steps, sums / 100 * np.array(kept)[:, None], atol=1e-12)
    free, _ = one_update([100] * 3, sums, sum_error=2.0, shrink=0.0, border="none")
    assert np.allclose(free, sums / 100, atol=1e-12)


@pytest.mark.parametrize("shrink", [0.0, 0.5, 1.0])
def test_the_last_centres_are_moved_to_the_middle_by_their_noise(shrink: float) -> None:
    """R^2 / (R^2 + s d (error / size)^2) with R^2 a third of the squared half diagonal, 2."""
    sums, counts = np.array([[30.0, 40.0], [3.0, 4.0], [0.3, 0.4]]), np.array([100.0, 20.0, 10.0])
    steps, found = one_update(counts, sums, sum_error=6.0, shrink=shrink, border="none")
    kept = (2 / 3) / (2 / 3 + shrink * 2 * (6 / counts) ** 2)
    assert np.allclose(found.centers, (steps + START) * kept[:, None], rtol=1e-12)


# What is released


@pytest.mark.parametrize("method", [gauss(rounds=5), laplace(rounds=4, shrink=0.0, **ABSOLUTE)])
def test_every_iterate_is_released_and_the_next_round_starts_from_it(method: Lloyd[Central]) -> None:
    rows = blobs(SQUARE, 300, 5)
    problem = problem_of(method, 4, SQUARE, 300)
    found, rounds = run(method, problem, rows)
    iterates = found.details["iterates"]
    assert found.details["rounds"] == len(rounds) == method.rounds
    assert iterates.shape == (len(rounds), 4, 2)
    assert np.array_equal(iterates[-1], found.centers) == (method.shrink == 0)
    starts = [sphere_packing(4, SQUARE, SEED.child("start")), *iterates]
    for round, before in zip(rounds, starts, strict=False):
        cells: Any = round.parts[0].cells
        assert np.array_equal(cells.centers, SQUARE.snap(before))
        assert round.parts[1].cells is cells


@pytest.mark.parametrize("average", [1, 2, 3, 50])
def test_the_last_iterates_may_be_averaged(average: int) -> None:
    rows = blobs(SQUARE, 300, 6)
    problem = problem_of(gauss(), 3, SQUARE, 300)
    found, _ = run(gauss(rounds=4, average=average, shrink=0.0), problem, rows)
    base, _ = run(gauss(rounds=4, shrink=0.0), problem, rows)
    assert np.array_equal(found.details["iterates"], base.details["iterates"])
    assert np.allclose(found.centers, base.details["iterates"][-average:].mean(axis=0), rtol=1e-12)


def test_the_run_is_a_function_of_its_key_its_noise_and_its_rows() -> None:
    rows = blobs(SQUARE, 300, 7)
    problem = problem_of(gauss(), 3, SQUARE, 300)
    one, again, other = (run(gauss(), problem, rows, noise)[0].centers for noise in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    session: Session[Any] = Session(problem, SEED, Rows(rows), noise=NoiseRng.for_tests(1))
    assert not np.array_equal(gauss().cluster(problem, session, SEED.child("another start")).centers, one)


@pytest.mark.parametrize(
    "method", [gauss(), laplace(), gauss(**ABSOLUTE), laplace(**ABSOLUTE), gauss(radius="constant", shrink=1.0)]
)
@pytest.mark.parametrize(
    "domain", [SQUARE, Box((3.0,), (7.0,)), Box((0.0,) * 9, (1e-3,) * 9), Ball((5.0, 5.0), 0.1), Ball((0.0,), 1e6)]
)
@pytest.mark.parametrize("n", [0, 1, 200])
def test_centres_are_finite_and_inside_whatever_the_domain_and_the_rows(
    method: Lloyd[Central], domain: Any, n: int
) -> None:
    for k in (1, 4):
        problem = problem_of(method, k, domain, 100)
        found, _ = run(method, problem, blobs(domain, n, 8), n)
        assert found.centers.shape == (k, domain.dimension)
        assert found.weights is not None
        assert found.weights.shape == (k,)
        assert np.isfinite(found.centers).all()
        assert np.allclose(domain.truncate(found.centers), found.centers, rtol=1e-9)


def test_rows_outside_the_bounds_are_the_clipped_rows() -> None:
    rows = np.random.default_rng(9).normal(0.3, 2, (500, 2))
    for domain in (SQUARE, Box((0.0, -0.25), (0.3, 0.5))):
        for method in (gauss(), laplace(**ABSOLUTE)):
            problem = problem_of(method, 3, domain, 500)
            wild, _ = run(method, problem, rows)
            tame, _ = run(method, problem, np.clip(rows, domain.lower, domain.upper))
            assert np.array_equal(wild.details["iterates"], tame.details["iterates"])
            assert np.array_equal(wild.weights, tame.weights)
    ball = Ball((0.0, 0.0), 1.0)
    problem = problem_of(gauss(), 3, ball, 500)
    wild, _ = run(gauss(), problem, rows)
    tame, _ = run(gauss(), problem, ball.real(ball.snap(rows)))
    assert np.array_equal(wild.centers, tame.centers)


# One row more


def vectors(round: Round[Any], rows: np.ndarray) -> list[np.ndarray]:
    """The exact summaries: what the noise is added to."""
    users = np.arange(len(rows), dtype=np.uint64)
    return [s.vector for s in absorb(round, encode_rows(round, rows, users, NoiseRng.for_tests(0)))]


def places(domain: Any, round: Round[Any], g: np.random.Generator) -> np.ndarray:
    """Rows of every kind: anywhere, beyond the bounds, on centres, in corners, and around the radius of each centre."""
    cells: Any = round.parts[0].cells
    centers, d = domain.real(cells.centers), domain.dimension
    direction = g.normal(0, 1, (len(centers), 12, d))
    direction /= np.linalg.norm(direction, axis=2, keepdims=True)
    within = (cells.within or domain.max_norm) * domain.unit
    rim = centers[:, None] + direction * (within * np.array([1 - 1e-6, 1, 1 + 1e-6] * 4)[:, None])
    far = domain.middle + domain.diameter * g.choice([-1.0, 0.0, 1.0], (20, d)) * g.choice([0.5, 1.0, 1e9], (20, 1))
    return np.vstack([domain.sample(g, 40, 0.0), far, centers, rim.reshape(-1, d)])


@pytest.mark.parametrize(
    "method",
    [
        gauss(),
        laplace(),
        gauss(radius="constant"),
        gauss(radius="none", clip_steps=False),
        gauss(**ABSOLUTE),
        laplace(**ABSOLUTE),
    ],
)
@pytest.mark.parametrize(
    "domain", [SQUARE, Box((0.0, 0.0, 5.0), (1.0, 0.3, 5.7)), Ball((1.0, -1.0), 0.3), Box((-2.0,), (1.0,))]
)
def test_one_row_changes_no_more_than_the_events_say(method: Lloyd[Central], domain: Any) -> None:
    """Over all rounds of a run: one bucket, one count, a vector within the bound, and in all no more than the
    budget."""
    g = np.random.default_rng(10)
    rows = blobs(domain, 60, 11)
    problem = problem_of(method, 4, domain, 60)
    _, rounds = run(method, problem, rows)
    price = 0.0
    for round in rounds:
        before, worst = vectors(round, rows), 0.0
        for row in places(domain, round, g):
            paid = 0.0
            for part, old, new in zip(round.parts, before, vectors(round, np.vstack([rows, row])), strict=True):
                change = [abs(int(v)) for v in new - old]
                channel: TensorChannel = part.channel  # type: ignore[assignment]
                (event,) = channel.events
                buckets = np.flatnonzero(np.array(change).reshape(4, -1).any(axis=1))
                assert len(buckets) <= 1
                assert sum(c > 0 for c in change) <= event.l0_sensitivity
                l1, l2 = sum(change), sum(c**2 for c in change)
                if part.vectors is None:
                    assert l1 <= 1
                else:
                    assert l2 <= part.vectors.bound.l2**2
                    assert l1 <= part.vectors.bound.l1
                cost = cost_of(channel, l1, l2)
                assert cost <= event.spent.amount * (1 + 1e-12)
                paid += cost
            worst = max(worst, paid)
        price += worst
    # offsets without a radius are bounded by the diameter, which rows near their centre do not come close to
    least = 0.2 if method.radius == "none" and method.updates == "relative" else 0.5
    assert least * problem.budget.amount < price <= problem.budget.amount * (1 + 1e-9)


def cost_of(channel: TensorChannel, l1: int, l2_squared: int) -> float:
    """Epsilon of discrete Laplace noise, mu^2 of Gaussian noise, for a change of this size in shifted integers."""
    if isinstance(channel.law, Laplace):
        return l1 * 2**channel.shift / channel.law.scale
    assert isinstance(channel.law, Gaussian)
    return l2_squared * 4**channel.shift / channel.law.sigma**2


# Options that cannot be


def made_or_refused_by_name(**options: Any) -> Lloyd[Central] | None:
    """The method, or None if the last of the options was refused by its name."""
    try:
        return gauss(**options)
    except InvalidInput as error:
        told = str(error)
    assert [*options][-1] in told
    return None


def test_more_fewest_than_most_rounds_are_refused() -> None:
    with pytest.raises(InvalidInput, match="rounds"):
        gauss(fewest_rounds=8).schedule(problem_of(gauss(), 3, SQUARE, 1000))


def test_an_offset_of_nothing_is_refused_by_name_or_runs() -> None:
    method = made_or_refused_by_name(**ABSOLUTE, offset=0.0)
    assert method is None or method.schedule(problem_of(method, 3, SQUARE, 1000)).rounds >= 2


@pytest.mark.parametrize("scale", [1e6, 1e300])
def test_a_radius_beyond_the_domain_is_refused_by_name_or_takes_every_row(scale: float) -> None:
    method = made_or_refused_by_name(radius_scale=scale)
    if method is not None:
        found, _ = run(method, problem_of(method, 3, SQUARE, 1000), np.zeros((5, 2)))
        assert np.isfinite(found.centers).all()


def test_a_radius_below_one_lattice_step_is_refused_by_name_or_runs() -> None:
    method = made_or_refused_by_name(radius_scale=1e-200)
    assert method is None or method.schedule(problem_of(method, 3, SQUARE, 1000)).rounds >= 2


def test_half_a_round_is_refused() -> None:
    with pytest.raises(InvalidInput, match="rounds"):
        gauss(rounds=2.5).schedule(problem_of(gauss(), 3, SQUARE, 1000))


@pytest.mark.parametrize(
    "wrong",
    [
        {"updates": "sideways"},
        {"radius": "wide"},
        {"border": "wrap"},
        {"radius_scale": 0.0},
        {"rounds": 0},
        {"fewest_rounds": 0},
        {"most_rounds": -1},
        {"error_target": 0.0},
        {"offset": -0.1},
        {"floor": -1.0},
        {"shrink": -0.5},
        {"average": 0},
        {"radius_scale": math.nan},
        {"floor": math.nan},
    ],
)
def test_an_option_out_of_its_bounds_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=f"option '{next(iter(wrong))}'"):
        gauss(**wrong)

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
from cloister.core.errors import InvalidInput
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Session, forecast
from cloister.core.trust import Central
from cloister.plugins.methods.lloyd import Lloyd
from cloister.plugins.methods.sphere_packing import SpherePacking, sphere_packing
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.plugins.oracles.central.exact import Exact
from cloister.plugins.populations.arrays import Arrays

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


def run(method: Any, problem: Problem, population: Any, noise: int = 0) -> tuple[Clustering, list[Round[Any]]]:
    if isinstance(population, np.ndarray):
        population = Arrays(population)
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


@pytest.mark.parametrize(
    ("options", "rounds"),
    [
        ({"rounds": 12}, 12),
        ({"rounds": 1}, 1),
        ({"error_target": 1e-30}, 2),
        ({"error_target": 1e30}, 7),
        ({"error_target": 1e-30, "fewest_rounds": 4}, 4),
        ({"error_target": 1e30, "most_rounds": 9}, 9),
        ({"fewest_rounds": 3, "most_rounds": 3}, 3),
    ],
)
def test_options_change_the_schedule_as_they_say(options: dict[str, Any], rounds: int) -> None:
    assert gauss(**options).schedule(problem_of(gauss(), 5, cube(3), 20_000)).rounds == rounds


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


# Options that cannot be


def test_more_fewest_than_most_rounds_are_refused() -> None:
    with pytest.raises(InvalidInput, match="rounds"):
        gauss(fewest_rounds=8).schedule(problem_of(gauss(), 3, SQUARE, 1000))

"""radius-means: wide bounds, its shares and candidates, cells around a point; and the clipped offsets and bins that it
and others measure with."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import REACH
from cloister.core.errors import InvalidInput
from cloister.core.nearest import NearestCenter
from cloister.core.registry.making import make
from cloister.core.session import forecast
from cloister.core.types import Floats
from cloister.metrics import nicv
from cloister.plugins.methods.clipping import SCALE, ClippedOffsets, DistanceBins
from cloister.plugins.methods.measuring import Moved, Shells
from cloister.plugins.methods.radius_means import candidates, shares
from cloister.plugins.trees.directions import NORM
from tests.plugins.methods.runs import LAPLACE, SEED, cube, groups, made, run
from tests.plugins.tables import Table


def ran(rows: Floats, k: int, mu2: float, seed: int, half: float = 1.0) -> Floats:
    problem = Problem(k, cube(rows.shape[1], half), len(rows), Budget("gaussian", mu2))
    return run(made("radius-means"), rows, problem, seed)[0].centers


def test_bounds_a_thousand_times_too_wide_cost_little() -> None:
    rows, truth = groups(20_000, 6, 8)
    assert min(nicv(rows, ran(rows, 6, 1.0, seed, 1000.0)) for seed in range(3)) < 2 * nicv(rows, truth)


def test_a_group_behind_another_is_found() -> None:
    """Seen from the mean of all rows, two of the five groups lie in one direction."""
    g, middles = np.random.default_rng(1), np.zeros((5, 6))
    middles[[1, 2], 0], middles[3, 1], middles[4, 2] = (0.45, 0.9), 0.4, -0.4
    rows = middles[g.choice(5, 20_000, p=[0.5, 0.08, 0.02, 0.2, 0.2])] + 0.03 * g.standard_normal((20_000, 6))
    for seed in range(3):
        assert nicv(rows, ran(rows, 5, 0.25, seed)) < 1.3 * nicv(rows, middles)


def test_shares_of_the_budget_are_those_of_its_study_and_add_up_to_it() -> None:
    """In four columns, with two rounds: the mean, the radius, cells 1 : 2, a radius, the lift 1 : 4; then per round a
    radius and 1 : 16, a fifth more in the second."""
    last = [0.02, 0.2 / 17, 3.2 / 17, 0.02, 0.24 / 17, 3.84 / 17]
    np.testing.assert_allclose(shares(4, 2), [0.03, 0.02, 0.25 / 3, 0.5 / 3, 0.02, 0.04, 0.16, *last])
    for rounds in range(9):
        for d in (1, 64):
            given = shares(d, rounds)
            assert min(given) > 0
            assert sum(given) == pytest.approx(1.0 if rounds else 0.52)


@pytest.mark.parametrize(("rows", "rounds"), [(4 * 195, 8), (4 * 205, 2)])
def test_groups_of_fewer_than_200_standard_errors_have_eight_rounds(rows: int, rounds: int) -> None:
    """Two questions more are of distances."""
    problem = Problem(4, cube(3), rows, Budget("gaussian", 1.0))
    asked = forecast(made("radius-means"), problem, SEED)
    assert len(asked) == 5 + rounds + 2
    assert made("radius-means").last(problem) == rounds
    assert made("radius-means", LAPLACE).last(attrs.evolve(problem, budget=Budget("pure", 1.0))) == 2


@pytest.mark.parametrize(("k", "heavy", "most"), [(2, 0, 10), (2, 12, 12), (4, 3, 20), (4, 60, 60), (30, 300, 300)])
def test_candidates_are_three_errors_above_zero_and_the_others_repeat_the_first(k: int, heavy: int, most: int) -> None:
    """At least five per centre, and as many in every run."""
    sizes, ones = np.where(np.arange(400) < heavy, 12.1, 11.9), np.ones(400)
    cells = Moved(sizes, 4 * ones, np.arange(800.0).reshape(400, 2), 0.1 * ones, ones, 10.0)
    found, offsets = candidates(cells, k)
    assert found == most
    assert len(offsets) == max(64, 12 * k)
    assert (offsets[found:] == offsets[0]).all()


def test_only_the_last_shell_clips_and_inner_ones_have_less_noise() -> None:
    middle = np.array([[50_000, -70_000]])
    cells = Shells.around(middle, 1000, 8, SEED)
    vectors = cells.offsets()
    assert vectors.radii[:4].tolist() == [708, 1000, 1415, 2000]
    rows = np.array([[700, 0], [0, -999], [1400, 0], [1900, 0], [0, 100_000]])
    buckets = cells.locate(middle + rows)
    mine, totals = buckets[:, 0], np.zeros((cells.space.sizes[0], 2))
    totals[mine] = vectors.values(middle + rows, buckets)
    sums, errors = vectors.read(Table(totals, SCALE))
    assert np.allclose(sums[mine], [*rows[:4], [0, 2000]], atol=0.01)
    assert errors.tolist() == vectors.radii.tolist()
    assert abs(cells.cells.around).max() <= NORM


# Measured groups, by figures worked out by hand


MOVED = Moved(
    sizes=np.array([50.0, 7.0, 20.0]),
    size_errors=np.full(3, 4.0),
    means=np.array([[0.3, 0.4]] * 3),
    noise=np.array([0.0, 0.01, 0.25]),
    radii=np.full(3, 2.0),
    usual=25.0,
)


def test_a_mean_is_shrunk_by_its_noise_and_by_what_its_radius_and_size_let_be_known() -> None:
    most = (2 * 625 / (625 + 16)) ** 2
    found = MOVED.steps
    np.testing.assert_allclose(found[0], [0.3, 0.4])
    np.testing.assert_allclose(found[1], np.array([0.3, 0.4]) * (most / (most + 0.01)) * (1 - 0.01 / 0.25), rtol=1e-6)
    np.testing.assert_allclose(found[2], [0.0, 0.0])  # all of its length may be noise
    long = attrs.evolve(MOVED, means=np.array([[30.0, 40.0]] * 3)).steps
    np.testing.assert_allclose(np.linalg.norm(long, axis=1), [2.0, 2.0, 2.0])


def test_points_weigh_less_the_more_of_them_is_noise() -> None:
    points = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = attrs.evolve(MOVED, sizes=np.array([30.0, 10.0, -5.0])).coreset(np.array([0, 2]), points)
    scale = (30 * 1.0 + 1e-9 * 0.75) / (30 + 1e-9)
    np.testing.assert_allclose(found.weights, [30.0, 1e-9 * scale / (scale + 0.25)])


# Clipped offsets and bins of distances: exact, of each row alone, and of one cost whatever was released


@pytest.mark.parametrize("radius", [1, 3, 1000, REACH, 2 * REACH])
@pytest.mark.parametrize("d", [1, 2, 7])
def test_no_vector_is_longer_than_the_bound_also_at_the_ends_of_the_lattice(d: int, radius: int) -> None:
    """The adversary chooses rows and origins as far apart as they can be, one lattice step apart, and equal."""
    g = np.random.default_rng(d)
    ends = g.standard_normal((500, d))
    ends = np.trunc(ends * (REACH - d) / np.linalg.norm(ends, axis=1, keepdims=True)).astype(np.int64)
    rows = np.concatenate([ends, -ends[:1] + 1, ends[:1], ends[:1] + np.eye(d, dtype=np.int64)[0]])
    for origin in (-ends[:1], ends[:1], np.zeros((1, d), np.int64)):
        vectors = ClippedOffsets(NearestCenter(origin, REACH), origin, np.array([radius]))
        values, offsets = vectors.values(rows, np.zeros((len(rows), 1), np.int64)), rows - origin
        lengths = np.linalg.norm(offsets, axis=1)[:, None]
        assert ((values**2).sum(axis=1) <= SCALE**2).all()
        assert (abs(values) * np.maximum(radius, np.floor(lengths)) <= abs(offsets) * SCALE).all()
        assert abs(values - offsets * SCALE / np.maximum(radius, lengths)).max() <= 1 + 2.0**-9


@pytest.mark.parametrize("name", ["discrete-gaussian", "masked-gaussian", "skellam"])
def test_what_a_round_costs_is_the_same_whatever_radii_were_released(name: str) -> None:
    """The adversary releases the widest and the narrowest radii, and centres on one point or far apart."""
    domain, oracle, events = cube(3), make("VectorSumOracle", name), []
    apart, together = domain.snap(domain.sample(SEED.generator(), 5, 0.0)), np.zeros((5, 3), np.int64)
    for radii in (np.full(5, 1e-300), np.full(5, 0.3), np.full(5, 1e300), np.array([1.0, 0.1, 1e-9, 2.0, 0.3])):
        for centers in (apart, together):
            vectors = ClippedOffsets.around(NearestCenter(centers, domain.max_norm), radii, domain)
            context = QuestionContext(100, domain.unit, SEED)
            events.append(oracle.open(Space((5,)), Budget("gaussian", 0.5), context, vectors.bound).events)
    assert all(event == events[0] for event in events)


def test_radii_below_a_step_and_origins_off_the_lattice_are_refused() -> None:
    cells = NearestCenter(np.zeros((1, 2), np.int64), REACH)
    for origin, radius in (([[0, 0]], 0), ([[REACH, 1]], 5)):
        with pytest.raises(InvalidInput, match="at least one step"):
            ClippedOffsets(cells, np.array(origin), np.array([radius]))


def test_the_quantile_lies_within_its_bin_as_far_as_rows_of_it_are_needed() -> None:
    domain = cube(1)
    cells = DistanceBins(NearestCenter(np.zeros((1, 1), np.int64), REACH), 2 * REACH, number=8)
    values = np.array([0.0, 10, 70, 16, 4, 0, 0, 0])
    found = [cells.quantile(values, share, 100, domain) for share in (0.1, 0.45, 0.8, 0.92, 1.0)]
    wanted = cells.edges[[1, 2, 2, 3, 4]] * 2.0 ** np.array([0, -0.5, 0, -0.25, 0])
    assert np.allclose(np.square(found) / domain.unit**2, wanted)

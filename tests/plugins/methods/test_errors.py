"""Errors that are stated after a run: of counts as their tables state them, of noise as it spreads, of approximations
by their formulas; and predicted before one: they fall with every row and every bit of budget."""

from __future__ import annotations

import itertools
import math
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.accounting import PrivacyTarget
from cloister.core.budget import Budget
from cloister.core.capabilities import PredictsError, predicted_error
from cloister.core.clustering import Coreset, Errors, Problem
from cloister.core.domains import Box
from cloister.core.nearest import NearestCenter
from cloister.core.questions import count
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.making import make
from cloister.core.session import Session
from cloister.plugins.methods.error_law import strength
from cloister.plugins.methods.errors import (
    BORDER,
    CLIPPED,
    LEFT_OUT,
    OF_POINTS,
    UNFINISHED,
    cluster_errors,
    count_error,
    hidden_by_noise,
    missing_rows,
    own_row_errors,
    rows_beyond,
    sizes_from_cells,
    step_errors,
    volume_shares,
)
from cloister.plugins.methods.grid_means import MAX_COLUMNS
from cloister.plugins.populations.arrays import Arrays
from tests.plugins.methods.runs import cube, made
from tests.plugins.tables import coreset

PAIR = np.array([[-1.0, 0.0], [1.0, 0.0]])
WIDE = cube(2, 10.0)


@pytest.mark.parametrize(
    ("name", "budget"), [("discrete-gaussian", Budget("gaussian", 0.3)), ("discrete-laplace", Budget("pure", 0.5))]
)
def test_the_error_of_a_count_is_the_one_that_its_table_states(name: str, budget: Budget) -> None:
    oracle, problem = make("FrequencyOracle", name), Problem(2, cube(2), 100, budget)
    session: Any = Session(problem, PublicRng.from_seed(1), Arrays(np.zeros((100, 2))), noise=NoiseRng.for_tests(1))
    near = NearestCenter(problem.domain.snap(PAIR), problem.domain.max_norm)
    (table,) = session.ask(count(near, oracle=oracle, budget=budget))
    assert count_error(oracle, 2, budget, problem) == pytest.approx(table.standard_error(np.arange(1))[0], rel=1e-3)


@pytest.mark.parametrize(("name", "spreads"), [("optimised-local-hashing", 7.0), ("discrete-gaussian", 3.0)])
def test_rows_of_a_bucket_add_noise_where_users_are_divided_or_answer_for_themselves(name: str, spreads: float) -> None:
    """A quarter of the users: a binomial of n / 4 counted four times, and 4 n for reports that hold by chance 1/2."""
    oracle: Any = make("FrequencyOracle", name)
    (quarter, _) = Budget("pure", 1.0).split_users(PublicRng.from_seed(1), 0.25, 0.75)
    assert own_row_errors(np.array([100.0, -5.0]), oracle, quarter) == pytest.approx([math.sqrt(100 * spreads), 0.0])
    whole = own_row_errors(np.array([100.0]), oracle, Budget("pure", 1.0))
    assert whole == pytest.approx([10.0 if spreads == 7 else 0.0])


def steps(**changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"centers": PAIR, "steps": 0 * PAIR, "noise": np.array([0.1, 0.2]), "radii": np.zeros(2)}
    sizes = np.array([100.0, 400.0])
    return step_errors(**{"sizes": sizes, "counted": sizes, "count_errors": 7.0, **given, **changes})


def test_where_nothing_moves_and_nothing_is_clipped_errors_are_those_of_noise() -> None:
    found = steps()
    assert found["weights_error"] == pytest.approx([LEFT_OUT * 7.0] * 2)
    assert found["centers_error"].tolist() == [[0.1, 0.1], [0.2, 0.2]]


def test_each_approximation_adds_its_own_part() -> None:
    moved = steps(counted=np.array([70.0, 400.0]))["weights_error"]
    assert moved == pytest.approx([LEFT_OUT * math.hypot(7, 30), LEFT_OUT * 7.0])
    clipped = steps(radii=np.array([5.0, 0.0]))["centers_error"]
    assert clipped[0] == pytest.approx(np.full(2, math.hypot(0.1, CLIPPED * 5)))
    stepped = steps(steps=np.array([[0.4, 0.0], [0.0, 0.0]]))
    border = 2 * 0.4 / 2 / 2  # half of the step, half of the way, and the square root of four times as many rows
    assert stepped["centers_error"][0, 0] == pytest.approx(
        np.linalg.norm([0.1, UNFINISHED * 0.4 * math.sqrt(0.75), border])
    )
    assert stepped["weights_error"] == pytest.approx(
        LEFT_OUT * np.hypot(7.0, [200 * 0.1, 200 * 0.1])
    )  # sqrt(n m) shift / D


def test_what_clipping_cut_off_counts_by_half_and_mostly_along_the_step() -> None:
    along = np.array([[1e-6, 0.0], [0.0, 1e-6]])
    found = steps(steps=along, noise=np.zeros(2), cut=np.array([0.4, 0.8]))["centers_error"]
    assert found[0] == pytest.approx(0.2 * np.sqrt([0.875, 0.125]), rel=1e-3)
    assert found[1] == pytest.approx(0.4 * np.sqrt([0.125, 0.875]), rel=1e-3)


def test_without_a_step_nobody_knows_in_which_direction_clipping_cut_off() -> None:
    found = steps(noise=np.zeros(2), cut=np.array([0.4, 0.8]))["centers_error"]
    assert found == pytest.approx(np.sqrt(0.5) * np.array([[0.2, 0.2], [0.4, 0.4]]))
    half = {"steps": np.array([[1e-6, 0.0]] * 2), "shortened": np.array([[1e-6, 0.0]] * 2)}
    found = steps(**half, noise=np.zeros(2), cut=np.full(2, 0.4))["centers_error"]
    assert found[0] == pytest.approx(0.2 * np.sqrt([0.375 + 0.3125, 0.3125]), rel=1e-3)


def test_what_shrinking_took_off_a_step_counts_beyond_its_noise() -> None:
    found = steps(shortened=np.array([[0.5, 0.05], [0.0, -0.6]]))["centers_error"]
    assert found[0] == pytest.approx([0.5, 0.1])
    assert found[1] == pytest.approx([0.2, 0.6])


def test_of_a_group_that_noise_may_hide_no_more_is_known_than_how_far_rows_are_from_centres() -> None:
    found = steps(sizes=np.array([10.0, 400.0]), counted=np.array([10.0, 400.0]), spread=3.0)["centers_error"]
    assert found[0].min() > 3 / math.sqrt(2)
    assert found[1] == pytest.approx([0.2, 0.2], rel=1e-3)
    near = steps(sizes=np.array([10.0, 400.0]), counted=np.array([10.0, 400.0]), spread=0.1)["centers_error"]
    assert near[0].min() > 1 / math.sqrt(2)  # half way to the next centre


def test_a_centre_that_jumped_from_an_empty_place_may_have_met_rows() -> None:
    jump = {"sizes": np.array([0.0, 400.0]), "counted": np.array([-3.0, 400.0]), "steps": np.array([[0.4, 0], [0, 0]])}
    assert steps(**jump)["weights_error"][0] == pytest.approx(
        LEFT_OUT * math.hypot(7, math.sqrt(7 * 400) * 0.2 / 2), rel=0.02
    )


def test_rows_beyond_a_radius_are_missing_and_without_one_none_are() -> None:
    sizes = np.array([60.0, 20.0])
    assert rows_beyond(sizes, 100, math.inf).tolist() == [0.0, 0.0]
    assert rows_beyond(sizes, 100, 1.0) == pytest.approx([20 * (0.75 + 0.5), 20 * (0.25 + 0.5)])
    assert missing_rows(sizes, 50).tolist() == [0.0, 0.0]


def grid(weights: Any, error: float) -> Coreset:
    at = np.array([-1.5, -0.5, 0.5, 1.5])
    corners = np.stack([np.column_stack([at - 0.5, at * 0 - 1]), np.column_stack([at + 0.5, at * 0 + 1])], axis=1)
    return coreset(corners.mean(axis=1), weights, error, cells=corners)


def test_the_noise_of_cells_spreads_sizes_as_much_as_is_stated() -> None:
    """Sizes are linear in counts: each count is moved by its error in turn."""
    none = np.empty((0, 2)), np.empty(0), np.empty(0)
    sizes, stated = sizes_from_cells(grid(100.0, 10.0), PAIR, *none)
    moved = [sizes_from_cells(grid(100 + error, 10.0), PAIR, *none)[0] - sizes for error in 10 * np.eye(4)]
    assert stated == pytest.approx(np.full(2, LEFT_OUT * 10 * math.sqrt(2)))
    assert LEFT_OUT * np.linalg.norm(moved, axis=0) == pytest.approx(stated)


def test_a_cell_as_wide_as_centres_are_apart_holds_all_rows_of_a_group_at_its_border() -> None:
    none = np.empty((0, 2)), np.empty(0), np.empty(0)
    at = np.array([[0.0, 0.0], [1.0, 0.0]])
    corners = np.array([[[0.0, -1.0], [1.0, 0.0]], [[0.0, 0.0], [1.0, 1.0]]])  # both are cut in halves
    cells = coreset(corners.mean(axis=1), 100.0, 0.0, cells=corners)
    assert sizes_from_cells(cells, at, *none)[1] == pytest.approx(
        np.full(2, LEFT_OUT * 2 * 100 * BORDER * 0.5), rel=0.02
    )
    apart = coreset(np.array([[-3.0, 0.0]]), 100.0, 5.0, cells=np.array([[[-4.0, -1.0], [-2.0, 1.0]]]))
    assert sizes_from_cells(apart, PAIR, *none)[1] == pytest.approx([LEFT_OUT * 5] * 2)  # the second has no cell


def test_a_cell_at_a_border_and_cells_left_out_add_to_the_error() -> None:
    none = np.empty((0, 2)), np.empty(0), np.empty(0)
    cut = sizes_from_cells(grid(100.0, 0.0), np.array([[0.0, 0.0], [1.0, 0.0]]), *none)[1]  # half of the third cell
    assert cut == pytest.approx(np.full(2, LEFT_OUT * 100 * BORDER * 0.5), rel=0.02)
    out = np.array([[-1.0, 0.5], [-1.0, 0.7]]), np.array([4.0, -9.0]), np.full(2, 10.0)
    sizes, more = sizes_from_cells(grid(100.0, 10.0), PAIR, *out)
    assert sizes == pytest.approx([195.0, 200.0])  # kept cells are those whose noise is positive
    assert more == pytest.approx([LEFT_OUT * 10 * math.sqrt(4), LEFT_OUT * 10 * math.sqrt(2)])


@pytest.mark.parametrize("cells", [1, 49, 1300, 1600, 2979])
def test_cells_that_nobody_shares_leave_no_error_and_none_that_is_not_a_number(cells: int) -> None:
    """Parts of a cell are counted, not added up: with hardly any noise a little more than 1 made a root of less than
    0."""
    at = np.linspace(1.0, 2.0, cells)  # of each as many points as 2^15 allows: 32, or 25, 20, 11
    corners = np.stack([np.column_stack([at, at * 0]), np.column_stack([at + 0.1, at * 0 + 1])], axis=1)
    some = coreset(corners.mean(axis=1), 100.0, 0.0, cells=corners)
    assert volume_shares(corners, PAIR).tolist() == [[0.0, 1.0]] * cells
    assert sizes_from_cells(some, PAIR, np.empty((0, 2)), np.empty(0), np.empty(0))[1].tolist() == [0.0, 0.0]


def test_points_between_two_centres_are_in_doubt_and_nothing_is_ever_infinite() -> None:
    between = Coreset(np.array([[-1.0, 0.0], [0.0, 0.1], [1.0, 0.0]]), np.array([100.0, 50.0, 100.0]))
    found = cluster_errors(between, PAIR, PAIR, WIDE, missing=np.array([0.0, 40.0]))
    assert found["weights_error"].max() > 50
    assert found["weights_error"][1] >= 40
    for empty, k in itertools.product((np.zeros(3), np.array([0.0, 1.0, -4.0])), (1, 2)):
        some = cluster_errors(Coreset(between.points, empty), PAIR[:k], PAIR[:k], WIDE)
        assert all(np.isfinite(figure).all() and (figure >= 0).all() for figure in some.values())


def test_what_one_group_may_lose_another_may_gain() -> None:
    points = Coreset(np.array([[-1.0, 0.0], [-0.1, 0.0], [1.0, 0.0]]), np.array([100.0, 300.0, 0.0]))
    first, second = cluster_errors(points, PAIR, PAIR, WIDE)["weights_error"]
    assert second == pytest.approx(first, rel=0.05)
    noisy = attrs.evolve(points, errors=Errors(np.zeros(3), np.array([50.0, 0.0, 0.0])))
    assert (
        cluster_errors(noisy, PAIR, PAIR, WIDE)["weights_error"][0] > first
    )  # a point in doubt stands for rows around it


@pytest.mark.parametrize("d", [1, 2, 5])
def test_rows_in_doubt_move_a_mean_by_the_distance_of_the_next_centre_in_one_column_of_many(d: int) -> None:
    """One point at each centre, 2 apart: the rows that may be the other centre's are as far as that from their own,
    in all columns together, and the noise of a sum is stated by column."""
    at = np.zeros((2, d))
    at[:, 0] = -1.0, 1.0
    sizes, sums = np.array([100.0, 400.0]), np.array([30.0, 500.0])
    found = cluster_errors(coreset(at, sizes, 0.0, sums), at, at, cube(d, 10.0))
    doubt = found["weights_error"] / OF_POINTS
    assert (doubt > 0).all()
    expected = np.sqrt(sums**2 + doubt**2 * 2**2 / d) / sizes
    assert found["centers_error"] == pytest.approx(np.repeat(expected[:, None], d, axis=1))


def test_a_centre_without_any_point_has_an_error_all_the_same() -> None:
    centers = np.concatenate([PAIR, [[9.0, 9.0]]])
    found = cluster_errors(coreset(PAIR, 100.0, [5.0, 6.0], 30.0), centers, centers, WIDE)
    assert found["weights_error"][2] == OF_POINTS * 6.0
    assert found["centers_error"][2].tolist() == [WIDE.diameter / 2] * 2


LLOYDS = ["fastlloyd", "gauss-lloyd", "su-lloyd", "shrunk-lloyd"]
METHODS = [*LLOYDS, "hst-means", "radius-means", "tree-coreset", "grid-means"]


def problem_of(name: str, k: int, d: int, rows: int, epsilon: float) -> Problem:
    measure = {"pure"} if name == "su-lloyd" else {"gaussian"}
    return Problem(k, cube(d), rows, PrivacyTarget(epsilon, 1e-6).measured(measure))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(("k", "d"), [(1, 1), (3, 2), (16, 40)])
def test_it_falls_with_rows_and_with_budget_whatever_the_number_of_rounds(name: str, k: int, d: int) -> None:
    """And it is in units of the domain."""
    d, method = min(d, MAX_COLUMNS) if name == "grid-means" else d, made(name)
    assert isinstance(method, PredictsError)
    for problems in (
        [problem_of(name, k, d, rows, 0.5) for rows in (100, 1000, 5000, 10**5, 10**7)],
        [problem_of(name, k, d, 3000, epsilon) for epsilon in (0.02, 0.1, 0.3, 1.0, 3.0)],
    ):
        figures = [method.expected_error(problem) for problem in problems]
        assert all(math.isfinite(v) and v >= 0 for v in figures)
        assert figures == sorted(figures, reverse=True)
        assert figures[-1] < figures[0]
        moved = attrs.evolve(problems[2], domain=Box((7.0,) * d, (1e4,) * d))
        assert method.expected_error(moved) == pytest.approx(figures[2], rel=1e-3)


@pytest.mark.parametrize(
    ("k", "d", "rows", "better"), [(100, 2, 100_000, "grid-means"), (5, 4, 20_000, "radius-means")]
)
def test_many_groups_in_two_columns_are_left_to_a_grid_whatever_the_budget(
    k: int, d: int, rows: int, better: str
) -> None:
    """Candidates miss some of many."""
    errors = {
        name: predicted_error(made(name), problem_of(name, k, d, rows, 4.0)) for name in ("grid-means", "radius-means")
    }
    assert min(errors, key=errors.__getitem__) == better


def strength_in(columns: int, counts: str, sums: str) -> float:
    problem = Problem(1, cube(columns), 1000, PrivacyTarget(1.0, 0.0).measured({"pure"}))
    return strength(problem, make("FrequencyOracle", counts), make("VectorSumOracle", sums))


@pytest.mark.parametrize(("sums", "more"), [("discrete-laplace", math.sqrt(9)), ("l2-mechanism", math.sqrt(5))])
def test_in_pure_noise_a_group_is_measured_in_errors_of_a_coordinate_of_its_sum(sums: str, more: float) -> None:
    """What people report stays in those of a count."""
    assert strength_in(9, "discrete-laplace", sums) == pytest.approx(strength_in(1, "discrete-laplace", sums) / more)
    assert strength_in(1, "discrete-laplace", sums) == pytest.approx(1000 / math.sqrt(2), rel=1e-3)
    local = "optimised-local-hashing", "hadamard-vector"
    assert strength_in(9, *local) == strength_in(1, *local)


def test_cells_are_divided_by_volume() -> None:
    cells = np.array([[[-2.0, -1.0], [-1.0, 1.0]], [[-0.5, -1.0], [0.5, 1.0]], [[-0.25, -1.0], [0.75, 1.0]]])
    assert volume_shares(cells, PAIR) == pytest.approx(np.array([[1, 0], [0.5, 0.5], [0.25, 0.75]]), abs=0.05)


def test_noise_hides_a_group_up_to_three_standard_errors_and_a_sixteenth_of_one_of_four() -> None:
    assert hidden_by_noise(np.array([0.0, 1.0, 3.0, 4.0]), 1.0) == pytest.approx([1.0, 1.0, 1.0, 1 / 16])

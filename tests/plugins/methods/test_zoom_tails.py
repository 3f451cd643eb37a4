"""What zoom may leave outside: the tails' estimates against linear algebra, z against exact laws, and the promise over
shapes that try to break it."""

from __future__ import annotations

import itertools
import math
from typing import Any

import attrs
import numpy as np
import pytest
from scipy import stats

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.frames import GROUP
from cloister.core.registry.making import make
from cloister.plugins.methods.zoom import Zoom
from cloister.plugins.methods.zoom_ranges import CODES, interval
from cloister.plugins.methods.zoom_tails import EASE, RISK, Promise, Tail, certain, total_variance, worst
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.plugins.oracles.central.thresholded import ThresholdedCounts
from tests.plugins.methods.runs import cube
from tests.plugins.methods.zoom_shapes import SETTINGS, SHAPES, Noisy, exact_counts, repeated, third, zoom_of
from tests.plugins.tables import Table

LOST = 9
"""Of 1,000 runs, where one is expected at most: more is a false alarm once in 10^7."""


def zoom(oracle: Any = None, **given: Any) -> Zoom[Any]:
    return Zoom(method=make("Method", "hst-means"), counts=oracle or DiscreteGaussian(), **given)


def wide(d: int) -> Box:
    return cube(d, 1000.0)


# estimates


def path(counts: list[np.ndarray], others: float, steps: list[int], columns: int, variance: float = 1.0) -> Tail:
    """The tail of an edge in the bins of three levels (16,), each of one bin of the level above."""
    tail = Tail(0.0, 0.0, 0.0, others, total_variance(columns, variance))
    for level, step in enumerate(steps):
        tail = tail.edges(counts[level], variance)[step]
    return tail


@pytest.mark.parametrize("columns", [1, 6])
@pytest.mark.parametrize("steps", [[5], [0, 9], [7, 15, 14], [3, 0, 15]])
def test_a_tail_is_unbiased_and_its_variance_is_that_of_its_weights(columns: int, steps: list[int]) -> None:
    """Weights are read off by adding one to each count in turn."""
    leaves = np.random.default_rng(1).integers(0, 50, 16**3).astype(float)
    counts, first = list[np.ndarray](), 0
    for level, step in enumerate(steps):
        counts.append(leaves.reshape(16 ** (level + 1), -1).sum(axis=1)[16 * first :][:16])
        first = 16 * first + step
    tail = path(counts, leaves.sum(), steps, columns)
    assert tail.rows == pytest.approx(leaves[: first * 16 ** (3 - len(steps))].sum())
    squares = 0.0
    for level, one in itertools.product(range(len(steps)), np.eye(16)):
        moved = [c + one * (j == level) for j, c in enumerate(counts)]
        squares += (path(moved, leaves.sum(), steps, columns).rows - tail.rows) ** 2
    if columns > 1:
        share = path(counts, leaves.sum() + 1, steps, columns).rows - tail.rows
        squares += share**2 * 16 / (columns - 1)
    assert tail.variance == pytest.approx(squares)
    assert path(counts, leaves.sum(), steps, columns, 9.0).variance == pytest.approx(9 * squares)


@pytest.mark.parametrize(("columns", "depth"), [(1, 2), (2, 3), (6, 3)])
def test_the_worst_variance_is_that_of_the_worst_edge(columns: int, depth: int) -> None:
    tails = [Tail(0.0, 0.0, 0.0, 0.0, total_variance(columns, 1.0))]
    for _ in range(depth):
        tails = [part for tail in tails for part in tail.edges(np.zeros(16), 1.0)]
    assert worst(columns, depth) == pytest.approx(max(tail.variance for tail in tails))


# z


def test_z_leaves_half_of_one_in_a_thousand_over_all_sides_levels_and_columns() -> None:
    assert RISK == 0.0005
    for events in (6, 36, 360):
        assert events * stats.norm.sf(certain(events, False)) == pytest.approx(0.0005)


@pytest.mark.parametrize("bins", [1, 4, 12])
def test_z_for_pure_noise_covers_the_sum_of_discrete_laplace_noise(bins: int) -> None:
    """The exact law of the sum, by convolution."""
    values = np.arange(-600, 601)
    one = stats.dlaplace(0.2).pmf(values)
    law, error = one, math.sqrt(float((one * values**2).sum()))
    for _ in range(bins - 1):
        law = np.convolve(law, one)
    sums = np.arange(len(law)) - len(law) // 2
    least = certain(36, True, bins) * math.sqrt(bins) * error
    chance = float(law[sums >= least].sum())
    assert RISK / 36 / 40 < chance < RISK / 36
    assert certain(36, False) < certain(36, True, bins)


# the promise


def counted(*runs: tuple[float, int]) -> Table:
    """Counts of one level: so many bins of each number of rows."""
    return Table(np.repeat([rows for rows, _ in runs], [bins for _, bins in runs]), 10.0)


def test_an_end_goes_no_further_than_what_noise_could_hide_allows() -> None:
    """Nothing is counted before the twelfth bin. With a standard error of 10, five bins can be told to hold fewer than
    80 rows, and a sixth cannot; without a promise nobody asks."""
    counts = counted((0.0, 11), (5000.0, 1), (0.0, 4))
    z = certain(2, False)
    assert 10 * z * math.sqrt(5) < 80 < 10 * z * math.sqrt(6)
    before = counted((20.0, 3), (0.0, 8), (5000.0, 1), (0.0, 4))  # 60 that no bin and no window shows
    for given, promise, first in (
        (counts, None, 11),
        (counts, Promise(80.0, 2, False), 5),
        (before, None, 11),
        (before, Promise(80.0, 2, False), 1),
    ):
        assert interval(given, 0, [10.0], promise) == (first * CODES // 16, 12 * CODES // 16)


def test_edges_are_passed_in_order_and_the_first_that_may_not_be_ends_it() -> None:
    promise = Promise(100.0, 36, False)
    z = certain(36, False)
    tails = [Tail(rows, 4.0, 0.0, 0.0, 1.0) for rows in (0.0, 10.0, 99.9 - 2 * z, 100.1 - 2 * z, 0.0)]
    assert promise.passed(tails, 1.0) == 2
    assert promise.passed(tails[:3], 1.0) == 2
    assert promise.passed([tails[0], tails[3]], 1.0) == 0


def test_columns_without_rows_that_show_keep_what_may_hold_them() -> None:
    """Of unknown range, with many rows but none that shows: the interval is not around 0."""
    counts = counted((11.0, 16))
    assert interval(counts, 0, [10.0]) is None
    assert interval(counts, 0, [10.0], Promise(60.0, 2, False)) == (0, CODES)
    assert interval(counted((0.0, 16)), 0, [10.0], Promise(400.0, 2, False)) is None


def test_what_is_stated_follows_from_public_figures_and_is_4_percent_where_noise_allows() -> None:
    problem = Problem(2, wide(2), 10**6, Budget("gaussian", 0.05))
    assert zoom().unseen_of(problem) == GROUP == 0.04
    few = attrs.evolve(problem, rows=20_000)
    most = (certain(16, False) + EASE) * math.sqrt(worst(2, 4)) * math.sqrt(8 / (0.1 * 0.05))
    assert zoom().share_of(few) == 0.1
    assert zoom().unseen_of(few) == pytest.approx(2 * most / 20_000, rel=1e-3)
    assert 0.04 < zoom().unseen_of(few) < 0.15
    assert zoom(share=0.0).unseen_of(problem) == 0
    assert zoom(share=0.0001).unseen_of(few) == 1


def test_pure_noise_is_stated_to_hide_more_and_noise_of_unknown_law_anything() -> None:
    problem = Problem(2, wide(2), 20_000, Budget("pure", 1.0))
    pure, budget = zoom(DiscreteLaplace(), share=0.3), problem.split(0.3)[0].budget
    variance = pure.counts.variance(pure.columns_of(problem).space, budget, problem.context(budget))
    most = (certain(16, True, worst(2, 4)) + EASE) * math.sqrt(worst(2, 4) * variance)
    assert pure.unseen_of(problem) == pytest.approx(2 * most / 20_000, rel=1e-6)
    local = Zoom(method=make("Method", "hst-means"), counts=make("FrequencyOracle", "explicit-histogram"), share=0.3)
    assert local.unseen_of(attrs.evolve(problem, rows=10**9)) == 1


def test_nothing_is_promised_on_counts_of_which_small_ones_are_released_as_nothing() -> None:
    """Thinly spread rows are below every bin's threshold: no sum of such counts tells that they are there."""
    problem = Problem(2, wide(2), 40_000, Budget("pure", 1.0, delta=1e-6))
    assert zoom(DiscreteLaplace(), share=0.3).unseen_of(problem) < 1
    assert zoom(ThresholdedCounts(), share=0.3).unseen_of(problem) == 1


def test_a_method_that_stands_wide_bounds_keeps_them_and_others_are_cut() -> None:
    """Found within an eighth, and a twentieth, of the bounds."""
    for width, kept in ((125.0, True), (40.0, False)):
        for method, always in (("radius-means", kept), ("hst-means", False)):
            made, problem = zoom_of(method, 1.0, None, wide(2))
            look = problem.split(made.share_of(problem))[0]
            rows = np.random.default_rng(2).uniform(-width, width, (40_000, 2))
            counts = Noisy(exact_counts(made.columns_of(look), wide(2), rows), 20.0, np.random.default_rng(3))
            found = made.read(counts, look, made.unseen_of(problem), wide(2))
            assert ((found == [-1000, 1000]).all()) == always


def test_ends_are_read_with_the_promise_that_was_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the stated share of the public number of rows, over both sides of every level of every column."""
    from cloister.plugins.methods import zoom as module

    made, problem = zoom_of("hst-means", 1.0, None, wide(2))
    asked: list[Any] = []
    monkeypatch.setattr(
        module, "interval", lambda counts, j, errors, promise, others, certain: asked.append((promise, others))
    )
    for stated in (0.3, 1.0):
        made.read(counted((0.0, 16)), problem, stated, wide(2))
    promise = Promise(0.15 * 40_000, 16, False)
    assert asked == [(promise, (1,)), (promise, (0,)), (None, (1,)), (None, (0,))]


def test_no_group_of_the_stated_share_is_lost_in_the_settings_that_lost_them() -> None:
    """40,000 rows, three groups, the third of 15% at 12.5 in bounds of 2 to 30. 150 runs in all; at a rate of one in
    1,000 three lost ones are rarer than one in 2,000 by chance, and seeds are fixed. Where groups of a fifth could be
    lost nothing is cut."""
    lost = beyond = 0
    for setting in ("three rows a user, epsilon 1", "epsilon 0.3"):
        assert repeated(third, "hst-means", *SETTINGS[setting], runs=1) is None
    for setting in ("epsilon 0.5", "epsilon 1"):
        found = repeated(third, "hst-means", *SETTINGS[setting], runs=75)
        assert found.cut == 75
        assert found.share < 0.2
        lost, beyond = lost + found.lost, beyond + found.beyond
    assert lost <= 1
    assert beyond <= 1


@pytest.mark.parametrize("most", [8.0, 11.0])
def test_rows_that_no_bin_shows_are_left_outside_no_more_often_than_promised(most: float) -> None:
    """As many rows as may just not be left outside, in standard errors, over the first six bins: what bins show leaves
    them outside in most of 100 runs. 1,000 runs with the promise, where one is expected at most."""
    counts = 1000 * np.array([most / 6] * 6 + [0.0] * 4 + [5000.0] + [0.0] * 5)

    def lost(promise: Promise | None, runs: int) -> int:
        g = np.random.default_rng(7)
        found = [interval(Noisy([counts], 1000.0, g), 0, [1000.0], promise) for _ in range(runs)]
        return sum(ends is not None and ends[0] >= 6 * CODES // 16 for ends in found)

    assert lost(None, 100) > 50
    assert lost(Promise(1000 * most, 2, False), 1000) <= LOST


@pytest.mark.long
@pytest.mark.parametrize("method", ["hst-means", "radius-means"])
@pytest.mark.parametrize("setting", list(SETTINGS))
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_the_stated_rate_holds_for_every_shape_and_setting(shape: Any, setting: str, method: str) -> None:
    found = repeated(shape, method, *SETTINGS[setting], runs=1000)
    assert found is None or (found.lost <= LOST and found.beyond <= LOST)

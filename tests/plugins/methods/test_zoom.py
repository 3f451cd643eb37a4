"""Zoom: what it finds, what it pays, and what an adversary who reads its frame can learn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from cloister.accounting import Accountant, PrivacyTarget
from cloister.core.budget import Budget
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Ball, Box
from cloister.core.errors import InvalidInput
from cloister.core.frames import UNKNOWN, cube
from cloister.core.questions import count
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.components import component
from cloister.core.session import Session, forecast
from cloister.core.trust import Central
from cloister.core.types import Floats
from cloister.plugins.methods.zoom import Zoom
from cloister.plugins.methods.zoom_ranges import Columns
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from tests.alarms import Alarm
from tests.plugins.methods import runs
from tests.plugins.methods.runs import SEED
from tests.plugins.tables import Table

MU2 = 0.07
WIDE = 1000.0


@component
class Watcher:
    """A method that asks one question and keeps what it was given."""

    def cluster(self, problem: Problem, session: Session[Central], rng: PublicRng) -> Clustering:
        cells = Columns(tuple(problem.domain.sides.tolist()), 1)
        session.ask(count(cells, oracle=DiscreteGaussian(), budget=problem.budget))
        return Clustering(np.ones((problem.k, problem.domain.dimension)), None, {"domain": repr(problem.domain)})


class Tolerant(Watcher):
    """A method whose bounds may be wide."""

    slack = 8.0


WATCHER = Watcher()


def zoom(method: Any = WATCHER, **given: Any) -> Zoom[Central]:
    return Zoom(method=method, counts=DiscreteGaussian(), **given)


def run(method: Any, rows: Floats, domain: Any, mu2: float = MU2, seed: int = 1) -> tuple[Clustering, Any]:
    return runs.run(method, rows, Problem(2, domain, len(rows), Budget("gaussian", mu2)), seed)


def box(*half: float) -> Box:
    return Box(tuple(-h for h in half), half)


def intervals(method: Any, rows: Floats, domain: Any, **given: Any) -> Floats:
    return np.asarray(run(method, rows, domain, **given)[0].details["intervals"])


# what it finds


@pytest.mark.parametrize("wide", [4.0, 100.0, 1000.0])
def test_rows_are_found_within_bounds_that_are_much_too_wide(wide: float) -> None:
    rows = np.random.default_rng(1).uniform([-1, 2], [1, 3], (20_000, 2)) + wide / 3
    found = intervals(zoom(), rows, box(wide, 2 * wide + 3))
    low, high = rows.min(axis=0), rows.max(axis=0)
    width = high - low
    assert (found[:, 0] <= low + 0.05 * width).all()
    assert (found[:, 1] >= high - 0.05 * width).all()
    assert (found[:, 1] - found[:, 0] <= 2 * width + wide / 1000).all()


@pytest.mark.parametrize("method", [WATCHER, Tolerant()])
def test_groups_that_noise_hides_are_not_clipped_where_bounds_are_tight(method: Any) -> None:
    """Five in a hundred rows lie apart, in small groups that no bin shows: the interval leaves room for them."""
    far = np.repeat([0.2, 0.4, 0.6, 0.8, 1.0], 20)
    rows = np.concatenate([np.random.default_rng(5).normal(-0.6, 0.12, 1900), far])[:, None]
    found = intervals(zoom(method), rows, box(1.0), mu2=MU2 / 2)
    assert found[0].tolist() == [-1.0, 1.0]


def test_a_method_that_tolerates_wide_bounds_gets_an_interval_with_room_around_the_rows() -> None:
    far = np.repeat([0.2, 0.4, 0.6, 0.8, 1.0], 80)
    rows = np.concatenate([np.random.default_rng(5).normal(-0.6, 0.12, 7600), far])[:, None]
    tolerant, other = (intervals(zoom(method), rows, box(16.0))[0] for method in (Tolerant(), WATCHER))
    assert tolerant[0] < -5
    assert tolerant[1] > 5
    assert other[1] - other[0] < 3


def test_thin_rows_before_a_dense_bin_are_not_cut_off() -> None:
    """Bins that say nothing alone are summed up, so that the interval ends close to the thin rows' end."""
    g = np.random.default_rng(3)
    rows = np.concatenate([g.uniform(-1, 0.5, 9000), np.full(41_000, 0.6)])[:, None]
    low, high = intervals(zoom(), rows, box(1.2))[0]
    assert -1.1 < low < -1
    assert 0.6 < high < 0.75


@pytest.mark.parametrize("value", [0.0, 5.0, -3e12, 1e-9])
def test_a_column_that_is_constant_gives_a_narrow_interval(value: float) -> None:
    rows = np.full((5000, 1), value)
    low, high = intervals(zoom(), rows, Box((UNKNOWN[0],), (UNKNOWN[1],)))[0]
    assert low <= value <= high
    assert high - low <= 0.01 * abs(value) + 1e-18


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("given", [{}, {"scale": "bounds"}])
def test_bounds_that_doubles_hardly_tell_apart_are_kept(given: Any) -> None:
    """A bin would be narrower than the next double is far, an interval of no width, and its unit 0."""
    rows = np.full((20_000, 2), 1e15 + 1.125)
    domain = Box((1e15, 1e15), (1e15 + 4, 2e15))
    found = intervals(zoom(**given), rows, domain)
    assert found[0].tolist() == [1e15, 1e15 + 4]
    assert found[1][1] < 1.1e15


@pytest.mark.parametrize(("scale", "units"), [("none", [8, 8]), ("bounds", [8, 2]), ("1,4", [8, 2]), ("1,1", [8, 8])])
def test_units_are_the_columns_own_or_one_or_by_weight(scale: str, units: list[float]) -> None:
    """Without a share nothing is asked, and all of the budget is the method's."""
    found, session = run(zoom(scale=scale, share=0.0), np.zeros((100, 2)), Box((-8.0, 0.0), (8.0, 4.0)))
    assert found.details["units"].tolist() == units
    assert found.centers.tolist() == [[8.0, 4.0]] * 2  # the cube's corner, moved into the domain
    assert [event.spent.amount for round in session.rounds for event in round.events] == [MU2]


# what it pays


def schedule(rounds: Sequence[Any]) -> list[Any]:
    return [tuple(part.channel.events for part in round.parts) for round in rounds]


def test_the_price_and_the_method_within_are_the_same_wherever_rows_are() -> None:
    """An adversary who reads the schedule, the noise or the inner problem learns nothing of the rows."""
    g, domain = np.random.default_rng(7), box(WIDE, WIDE)
    for rows in (g.normal(0, [1, 100], (9000, 2)), g.uniform(-WIDE, WIDE, (9000, 2)), np.full((9000, 2), 1e6)):
        found, session = run(zoom(scale="bounds"), rows, domain)
        problem = Problem(2, domain, 9000, Budget("gaussian", MU2))
        planned = forecast(zoom(scale="bounds"), problem, SEED)
        assert schedule(session.rounds) == schedule(planned)
        assert len(planned) == 2
        assert found.details["domain"] == repr(cube(2))
        Accountant(PrivacyTarget(1.0, 1e-5), problem.budget).forecast([round.events for round in planned])


def test_a_row_changes_one_bin_in_every_level_of_every_column() -> None:
    """All neighbours of a small table: the squared distance of their totals is what the oracle is opened for."""
    columns = Columns((8, 8, 2**18), 3)
    values = np.array([[x, y, z] for x in range(-9, 10) for y in (-8, 0, 8) for z in (-(2**18), -3, 0, 2**18)])
    ids = columns.locate(values)
    assert columns.space.sizes == (16, 256, 4096) * 3
    assert (ids[:, 1::3] >> 4 == ids[:, ::3]).all()
    assert (ids[:, 2::3] >> 4 == ids[:, 1::3]).all()
    budget = Budget("gaussian", 1.0)
    problem = Problem(1, box(1.0, 1.0, 1.0), 100, budget)
    channel = DiscreteGaussian().open(columns.space, budget, problem.context(budget))
    assert channel.events[0].l0_sensitivity == 9
    assert channel.deviation == pytest.approx(3.0, rel=1e-6)


@pytest.mark.alarm(1e-9)
def test_an_adversary_who_reads_every_count_is_held_to_the_share_that_was_paid(alarm: Alarm) -> None:
    """The best test between neighbours is a sum of the counts that the row is in, at distance sqrt(levels) / sigma.

    Sigma is measured on 8,736 counts of each of 4 tables: to 0.4%, so that a factor of 1.2 in the noise fails this.
    """
    share, nobody, seen = 0.05, np.empty((0, 2), np.int64), np.empty(0)
    for seed in range(4):
        _, session = run(zoom(share=share), np.zeros((50, 2)), box(1.0, 1.0), mu2=1.0, seed=seed)
        (part,) = session.rounds[0].parts
        report = part.channel.encode(part.cells.locate(nobody), nobody, SEED)
        table = part.channel.decode(part.channel.absorb(report), NoiseRng.for_tests(seed))
        levels = enumerate(part.cells.space.sizes)
        seen = np.concatenate([seen, *(table.at(np.arange(size), level) for level, size in levels)])
    sigma = math.sqrt(part.cells.space.levels / share)
    alarm.near(seen.std(), sigma, sigma / math.sqrt(2 * len(seen)))


@pytest.mark.parametrize(("rows", "most"), [(400_000, 0.01), (99_999, 0.03), (9_999, 0.1), (8_100, 0.1), (7_900, 0.0)])
def test_the_share_falls_with_rows_and_is_nothing_where_noise_hides_them(rows: int, most: float) -> None:
    """Of 8,000 rows, a tenth of the budget can promise no less than that groups of a fifth are kept: nothing is cut."""
    problem = Problem(2, box(1.0, 1.0), rows, Budget("gaussian", MU2))
    assert zoom().share_of(problem) == most
    assert zoom(share=0.3).share_of(problem) == 0.3


def test_unknown_ranges_need_rows_enough_to_find_them() -> None:
    domain = Box((UNKNOWN[0], 0.0), (UNKNOWN[1], 1.0))
    with pytest.raises(InvalidInput, match="150 rows are too few to find the range of unknown columns"):
        run(zoom(), np.zeros((150, 2)), domain)
    with pytest.raises(InvalidInput, match="zoom cannot be off while the range of a column is unknown"):
        run(zoom(share=0.0), np.zeros((150, 2)), domain)


def test_a_ball_is_left_as_it_is_and_takes_no_scale() -> None:
    ball = Ball((0.0, 0.0), 1.0)
    _, session = run(zoom(), np.zeros((5000, 2)), ball)
    assert len(session.rounds) == 1
    with pytest.raises(InvalidInput, match="a ball has one unit for all columns"):
        run(zoom(scale="bounds"), np.zeros((5000, 2)), ball)


def test_a_scale_that_is_none_is_refused_when_the_method_is_made_or_before_a_row_is_read() -> None:
    for scale in ("", "wide", "1,-2", "1,nan", "0"):
        with pytest.raises(InvalidInput, match="give bounds, none, or a positive number per column"):
            zoom(scale=scale)
    with pytest.raises(InvalidInput, match="3 weights for 2 columns"):
        run(zoom(scale="1,2,3", share=0.0), np.zeros((100, 2)), box(1.0, 1.0))


# Constants, by what they do to figures worked out by hand


def found_in(first: int, last: int, rows: int = 10**6, method: Any = WATCHER) -> Any:
    """The interval of one column with many rows in each of some of the 16 bins, and of the parts of those."""
    problem = Problem(2, Box((0.0,), (16.0,)), rows, Budget("gaussian", 0.05))
    top = np.where((first <= np.arange(16)) & (np.arange(16) <= last), 1e6, 0.0)
    counts = Table([np.repeat(top, 16**level) for level in range(4)], 1.0)
    return zoom(method).read(counts, problem, 1.0, problem.domain)[0]


def test_an_interval_has_a_twentieth_added_to_each_side_and_is_left_out_from_four_fifths_of_the_bounds_on() -> None:
    low, high = found_in(4, 11)
    assert [low, high] == pytest.approx([4 - 0.4, 12 + 0.4], abs=1e-3)
    assert found_in(1, 13).tolist() == [0, 16]  # 13 of 16
    assert found_in(2, 13)[0] > 1
    assert found_in(0, 3)[0] == 0


def test_an_interval_is_rough_from_three_quarters_of_a_hundredth_of_the_rows_on() -> None:
    """The bin's standard error is 1 row here."""
    fine, rough = found_in(8, 8, rows=134), found_in(8, 8, rows=133)
    assert fine == pytest.approx([8 - 0.05 - 4.75 / 134, 9 + 0.05 + 4.75 / 134], abs=1e-6)
    assert rough == pytest.approx([8 - 3, 9 + 3])
    assert found_in(8, 8, method=Tolerant()) == pytest.approx([0, 16])  # it stands bounds 8 times too wide


def test_unknown_ranges_do_not_end_at_laplace_noise() -> None:
    """Three groups within 7 of 0. At 4.75 standard errors noise alone was taken for rows in one run of 25."""
    rows = np.random.default_rng(0).choice([-6.0, 0.0, 6.0], (3000, 2)) + np.random.default_rng(1).normal(
        size=(3000, 2)
    )
    pure = Zoom(method=runs.made("grid-means", runs.LAPLACE), counts=DiscreteLaplace())
    domain = Box((UNKNOWN[0],) * 2, (UNKNOWN[1],) * 2)
    for seed in (73, 90, 104, 108, 147, 157, 172):  # those of the first 200 that ended beyond 100
        problem = Problem(2, domain, len(rows), Budget("pure", 1.0))
        found = np.asarray(runs.run(pure, rows, problem, seed)[0].details["intervals"])
        assert np.abs(found).max() < 100

"""Refit: from public centres, or from fresh ones by a private comparison; given centres; kept centres."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.errors import InvalidInput
from cloister.core.frames import Reframed
from cloister.core.nearest import NearestCenter
from cloister.core.registry.making import filled
from cloister.core.session import Session, forecast
from cloister.core.types import Floats
from cloister.metrics import nicv
from cloister.plugins.methods.clipping import DistanceBins
from cloister.plugins.methods.given_centers import GivenCenters
from cloister.plugins.methods.refit import Refit
from tests.plugins.methods.runs import SEED, cube, fitted, groups, made
from tests.plugins.tables import Table

ROWS, PLACES = groups(6000, 5, 3)
BUDGET = Budget("zcdp", 0.1)


def started(start: Floats, method: str = "auto", **given: Any) -> Any:
    by_column = {str(j): start[:, j].tolist() for j in range(start.shape[1])}
    asked: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-6, "bounds": (-1, 1), "seed": 2, **given}
    return fitted(method, ROWS, len(start), noise=4, start=by_column, **asked)


def test_refit_spends_nothing_on_finding_and_stays_at_centres_that_fit() -> None:
    found = started(PLACES, method="refit", epsilon=0.1)
    assert len({spend.round for spend in found.privacy.spends}) == 3  # a reach, and two rounds
    assert nicv(ROWS, found.centers) < 1.2 * nicv(ROWS, PLACES)


def test_auto_goes_on_from_centres_that_fit_and_leaves_those_that_do_not() -> None:
    best = nicv(ROWS, PLACES)
    good, bad = started(PLACES), started(np.linspace(-0.9, -0.8, 15).reshape(5, 3))
    assert (good.details["start"], bad.details["start"]) == ("given", "fresh")
    assert max(nicv(ROWS, good.centers), nicv(ROWS, bad.centers)) < 1.5 * best
    assert any("went on from the given centres" in note for note in good.privacy.notes)


def test_what_is_asked_and_paid_is_the_same_whichever_centres_are_better() -> None:
    """Law 2: a start that fits, and one that does not, cost the same, round by round."""
    spends = [started(start).privacy.spends for start in (PLACES, -PLACES)]
    assert spends[0] == spends[1]


def test_fresh_centres_are_taken_from_one_and_a_half_standard_errors_of_the_difference() -> None:
    """Each of two answers has half of rho = 0.1, so that a count's noise has a variance of 10; on a lattice in which
    the costs of bins are known, the difference lies just above or just below."""
    look, g = Problem(2, cube(2), 6000, BUDGET), np.random.default_rng(3)
    given, fresh = np.array([[-0.5, 0.0], [0.5, 0.0]]), np.array([[0.0, -0.5], [0.0, 0.5]])
    bins = DistanceBins(NearestCenter(look.domain.snap(given), look.domain.max_norm), 2 * look.domain.max_norm)
    squares = np.minimum(0.75 * bins.edges * look.domain.unit**2, (look.domain.diameter / 2) ** 2 / 3)
    noise, after = np.sqrt(2 * 10 * (squares**2).sum()), g.uniform(0, 50, len(squares))
    for errors, fits in ((1.49, False), (1.51, True)):
        before = after + errors * noise * squares / (squares**2).sum()
        session: Any = SimpleNamespace(agreed=np.asarray, ask=lambda *_, before=before: (Table(before), Table(after)))
        assert filled(Refit).better(given, fresh, look, session) is fits


def test_given_centres_stand_where_the_frame_has_them() -> None:
    box, inner = Box((0.0, 0.0), (10.0, 100.0)), cube(2)
    points, start = np.array([[1.0, 90.0], [9.0, 10.0]]), GivenCenters(centers="1,90;9,10")
    problem = Problem(2, box, 100, BUDGET)
    session: Session[Any] = Session(problem, SEED, forecasting=True)
    assert np.allclose(start.cluster(problem, session, SEED).centers, points, atol=1e-3)
    frame = Reframed.of(np.column_stack([box.lower, box.upper]), box.half_widths)
    framed = start.cluster(Problem(2, inner, 100, BUDGET), session.framed(frame, inner), SEED).centers
    assert np.allclose(frame.real(framed), points, atol=1e-3)
    assert session.rounds == []


def test_centres_that_are_no_table_of_numbers_or_of_another_number_are_refused() -> None:
    for text in ("1,2;3", "a,b", "1,nan", "inf,1"):
        with pytest.raises(InvalidInput, match="as many finite numbers"):
            GivenCenters(centers=text)
    with pytest.raises(InvalidInput, match="give k = 1"):
        forecast(GivenCenters(centers="0,0"), Problem(2, cube(2), 100, BUDGET), SEED)


def test_kept_centres_are_counted_by_group_and_distance_once() -> None:
    found = started(PLACES, method="kept-centers", epsilon=100.0, delta=0.0)
    assert len(found.privacy.spends) == 1
    assert np.allclose(found.centers, PLACES, atol=1e-3)
    away = ((ROWS[:, None] - PLACES) ** 2).sum(axis=2)
    edges, mine = np.array(found.details["distances"]["edges"]) ** 2, away.argmin(axis=1)
    bins = np.searchsorted(edges[:-1], away.min(axis=1))
    table, _, _ = np.histogram2d(mine, bins, (np.arange(6), np.arange(len(edges) + 1)))
    assert np.abs(np.array(found.details["counted"]) - table).max() < 5
    assert np.abs(found.weights - table.sum(axis=1)).max() < 10


def test_kept_centers_may_be_found_first_with_a_share() -> None:
    problem = Problem(5, cube(3), 6000, BUDGET)
    assert len(forecast(made("kept-centers", {"start": "fastlloyd"}, start_share=0.8), problem, SEED)) > 1
    with pytest.raises(InvalidInput, match="start_share"):
        forecast(made("kept-centers", {"start": "fastlloyd"}), problem, SEED)

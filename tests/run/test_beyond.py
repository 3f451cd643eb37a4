"""Warnings of rows that may lie beyond an interval, from a saved result alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.commands.common import print_result
from cloister.core.errors import UtilityWarning
from cloister.core.frames import UNKNOWN
from cloister.run.cautions import after, beyond, centers_at_ends, ends_cut
from cloister.run.fit import fit, source
from cloister.run.request import Request, prepare
from cloister.run.result import Result
from cloister.showing.profile import profile_of
from cloister.showing.report.page import html_of
from tests.in_process import cloister as program

BOUNDS = {"lower": [0.0, 0.0], "upper": [100.0, 100.0]}


@pytest.fixture(scope="module")
def plain() -> Result:
    rows = np.random.default_rng(0).normal([20, 50], 3, (3000, 2))
    return fit(Request(k=2, epsilon=1.0, delta=1e-6, bounds=(0, 100), rows=3000, seed=1), source(rows, None, "refuse"))


def result(
    of: Result, centers: Any, intervals: Any, unseen: Any = 0.09, errors: Any = None, bounds: Any = None
) -> Result:
    details = {"intervals": np.array(intervals, float), "units": np.ones(2), "unseen": unseen}
    if errors is not None:
        details["centers_error"] = np.array(errors, float)
    problem = {**of.problem, "bounds": bounds or BOUNDS}
    return attrs.evolve(
        of,
        centers=np.array(centers, float),
        weights=np.array([10.0, 20.0]),
        columns=("age", "size"),
        problem=problem,
        details=details,
    )


def test_a_share_that_noise_may_hide_is_warned_of_where_an_end_was_cut(plain: Result) -> None:
    found = result(plain, [[20, 50], [30, 50]], [[0, 40], [0, 100]])
    assert beyond(found) == [
        "zoom cannot tell whether groups of less than 9.0% of the rows lie beyond the intervals that it released of "
        "age: such rows were clipped, and no size, centre or standard error shows it. Narrower bounds or more budget "
        "would tell"
    ]
    assert "how many rows lie beyond" in beyond(attrs.evolve(found, details={**found.details, "unseen": 1.0}))[0]
    assert "how many rows lie beyond" in beyond(attrs.evolve(found, details={**found.details, "unseen": "?"}))[0]
    assert beyond(attrs.evolve(found, details={**found.details, "unseen": 0.04})) == []


def test_bounds_that_were_kept_and_runs_that_did_not_look_warn_of_nothing(plain: Result) -> None:
    kept = result(plain, [[20, 50], [0, 100]], [[0, 100], [0, 100]])
    assert beyond(kept) == []
    scaled = result(plain, [[20, 50], [0, 100]], [[0, 40], [0, 100]])
    del scaled.details["unseen"]
    assert ends_cut(scaled) is None
    assert beyond(scaled) == []
    ball = result(plain, [[20, 50], [0, 100]], [[0, 40], [0, 100]], bounds={"center": [0, 0], "radius": 1})
    assert beyond(ball) == []
    other = result(plain, [[20, 50], [0, 100]], [[0, 40], [0, 100]], bounds={"lower": [0.0], "upper": [1.0]})
    assert beyond(other) == []


@pytest.mark.parametrize(
    ("center", "at"),
    [(38.1, True), (37.9, False), (41.0, True), (1.0, False), (61.0, True), (30.0, False)],
)
def test_a_centre_is_at_an_end_within_a_twentieth_of_the_interval_or_beyond(
    plain: Result, center: float, at: bool
) -> None:
    """The lower end is the bound's own: nothing was cut there."""
    found = result(plain, [[20, 50], [center, 50]], [[0, 40], [0, 100]], unseen=0.04)
    assert len(beyond(found)) == at
    if at:
        assert beyond(found)[0].startswith("at an end of a column's interval: centre 1 (age). Rows of such a group may")


def test_a_centre_is_at_an_end_within_two_standard_errors(plain: Result) -> None:
    for error, at in ((4.9, False), (5.1, True)):
        found = result(plain, [[20, 50], [30, 50]], [[0, 40], [0, 100]], 0.04, [[0.1, 60], [error, 60]])
        assert len(beyond(found)) == at


def test_both_ends_are_looked_at_and_unknown_bounds_are_always_cut(plain: Result) -> None:
    unknown = {"lower": [UNKNOWN[0], 0.0], "upper": [UNKNOWN[1], 100.0]}
    found = result(plain, [[20, 50], [30, 6]], [[-5, 60], [5, 100]], bounds=unknown)
    cut = ends_cut(found)
    assert cut is not None
    assert cut.tolist() == [[True, True], [True, False]]
    assert centers_at_ends(found, cut).tolist() == [[False, False], [False, True]]
    assert "of age, size" in beyond(found)[0]
    assert "centre 1 (size)" in beyond(found)[1]


def test_no_more_than_a_few_names_are_listed(plain: Result) -> None:
    names = tuple("abcdefgh")
    found = attrs.evolve(
        plain,
        columns=names,
        centers=np.full((1, 8), 50.0),
        weights=None,
        problem={**plain.problem, "bounds": {"lower": [0.0] * 8, "upper": [100.0] * 8}},
        details={"intervals": [[40.0, 60.0]] * 8, "unseen": 0.5},
    )
    assert "of a, b, c, d, e, f and 2 more:" in beyond(found)[0]


def test_fit_profile_and_report_say_the_same(plain: Result, tmp_path: Path, capsys: Any) -> None:
    found = result(plain, [[20, 50], [39, 50]], [[0, 40], [0, 100]])
    said = beyond(found)
    assert len(said) == 2
    assert [str(w) for w in after(found) if isinstance(w, UtilityWarning)][-2:] == said
    print_result(found)
    printed = " ".join(capsys.readouterr().out.split())
    assert all(f"WARNING: {text}." in printed for text in said)
    profile = profile_of(found)
    assert profile.beyond == tuple(said)
    assert [f"WARNING: {text}." for text in said] == profile.notes[-2:]
    assert list(profile.as_dict()["beyond"]) == said
    found.save(tmp_path / "r.json")
    shown = program("profile", str(tmp_path / "r.json")).stdout
    assert "WARNING: zoom cannot tell whether groups of less than 9.0%" in " ".join(shown.split())
    html = html_of(found)
    assert "ROWS BEYOND" in html
    assert "Zoom cannot tell whether groups of less than 9.0%" in html


def test_the_share_is_stated_before_the_run_and_in_the_statement() -> None:
    asked = Request(k=2, method="hst-means", epsilon=1.0, delta=1e-6, bounds=(-900, 900), rows=5000, seed=1)
    plan = prepare(asked, ["x", "y"])
    assert "But in one run of 1,000, no group of at least " in plan.price
    rows = np.random.default_rng(1).normal([[-5, 5]], 1, (5000, 2))
    found = fit(asked, source(rows, None, "refuse"))
    assert plan.price in found.privacy.text()
    assert "Rows outside were clipped to them, which no size, centre or standard error shows." in found.privacy.text()
    assert f"{found.details['unseen']:.1%}" in plan.price
    hopeless = prepare(attrs.evolve(asked, zoom=0.0001), ["x", "y"])
    assert "How many rows lie outside the intervals that it finds cannot be promised." in hopeless.price

"""Warnings that public and released figures give, at the command line (``tests/estimators/test_warnings.py`` has
Python's), and of rows that may lie beyond an interval, from a saved result alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import cloister as package
from cloister.commands.common import print_result
from cloister.core.errors import InvalidInput, UtilityWarning
from cloister.core.frames import UNKNOWN
from cloister.core.randomness import NoiseRng
from cloister.run.account import Account
from cloister.run.fit import fit, source
from cloister.run.request import Request, prepare
from cloister.run.result import Result
from cloister.run.warnings import after, at_bounds, before, beyond, centers_at_ends, ends_cut, unproved, untrusted
from cloister.showing.profile import profile_of
from cloister.showing.report.page import html_of
from tests.in_process import ran
from tests.showing.report.pages import made


def said(**asked: object) -> list[str]:
    figures = {"k": 3, "epsilon": 1.0, "bounds": (-1, 1), "rows": 1000}
    return [str(warning) for warning in before(prepare(Request(**{**figures, **asked}), ["x", "y"]))]  # type: ignore[arg-type]


def test_each_figure_is_warned_of_from_its_limit_on() -> None:
    """What depends on the number of rows waits for it."""
    assert said() == said(epsilon=10.0) == said(delta=1e-4) == said(rows=None, delta=0.01, epsilon=0.001) == []
    assert said(epsilon=10.1)[0].startswith("epsilon = 10.1 hides little: a result may be e^10.1 = 24,343 times")
    (loud,) = said(rows=None, delta=0.01, epsilon=50.0)
    assert loud.startswith("epsilon = 50 hides little: a result may be e^50 times")
    for delta, words in ((1.1e-4, "well below"), (1e-3, "below")):
        assert said(delta=delta, method="fastlloyd") == [
            f"delta is not {words} 1 / rows (0.001): it permits releasing some rows outright"
        ]
    assert "even the least predicted error" in said(epsilon=0.001, rows=200)[0]
    assert "predicted error of 'fastlloyd'" in said(epsilon=0.001, rows=200, delta=1e-6, method="fastlloyd")[0]
    assert said(epsilon=50.0, method="lloyd", not_private=True) == []


def test_the_command_line_says_it_on_stderr_before_the_result_and_prints_clean_json(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(0, 0.3, (1000, 2)))
    fitting = "fit rows.npy -k 3 --bounds=-1:1 --rows 1000 --delta 5e-4 --method fastlloyd"
    done = ran(f"{fitting} --epsilon 12 --json", tmp_path)
    loud, delta = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    assert "epsilon = 12 hides little" in loud
    assert "delta is not well below 1 / rows (0.001)" in delta
    assert json.loads(done.stdout)["privacy"]["epsilon"] == 12.0
    assert delta in ran(f"{fitting} --epsilon 1", tmp_path).stdout


def test_empty_centres_are_said_in_the_same_words(capsys: pytest.CaptureFixture[str]) -> None:
    for weights, empty in (([998.0, 3.0, 2.0], True), ([900.0, 50.0, 50.0], False)):
        result = made(weights=np.array(weights))
        assert [str(warning)[:35] for warning in after(result)] == ["2 of 3 centres hold hardly any rows"] * empty
        print_result(result)
        assert ("WARNING: 2 of 3 centres hold" in capsys.readouterr().out) == empty


def test_sizes_that_are_all_0_are_said_to_be_empty() -> None:
    for weights, empty in (([0.0, 0.0, 0.0], 3), ([-4.0, 500.0, 500.0], 1), ([0.0, 500.0, 500.0], 1)):
        (warning,) = after(made(weights=np.array(weights)))
        assert str(warning).startswith(f"{empty} of 3 centres hold hardly any rows")


def untrusted_of(centers: Any, errors: Any, weights: Any, size_errors: Any, **details: Any) -> list[str]:
    known = {"centers_error": np.array(errors), "weights_error": np.array(size_errors), **details}
    found = made(2, len(weights), centers=np.array(centers), weights=np.array(weights, float), details=known)
    (profile, page), said = (profile_of(found), html_of(found)), untrusted(found)
    assert [str(warning) for warning in after(found)][: len(said)] == list(profile.untrusted) == said
    assert all(f"WARNING: {text}." in profile.notes for text in said)
    assert page.count("DO NOT TRUST") == len(said)
    return said


def test_sizes_within_three_stated_errors_of_zero_and_places_lost_in_theirs_are_not_to_be_trusted() -> None:
    """Each centre is named once: one that hardly has rows is not named again, whatever its errors."""
    centers, small = [[0.0, 0.0], [0.5, 0.0], [-0.5, 0.5], [0.9, 0.9]], [[0.01, 0.01]] * 4
    sizes = [1000, 300, 500, 900]
    assert untrusted_of(centers, small, sizes, [99, 99, 99, 99]) == []
    (said,) = untrusted_of(centers, small, sizes, [99, 101, 99, 99])
    assert said.startswith("not to be trusted: centre 1 (size). ")
    lost = [[0.01, 0.01], [0.4, 0.31], [0.4, 0.29], [0.01, 0.01]]
    (said,) = untrusted_of(centers, lost, sizes, [99, 101, 99, 99])
    assert said.startswith("not to be trusted: centre 1 (size and place). ")
    hardly, said = untrusted_of(centers, lost, [1000, 3, 500, 900], [99, 101, 201, 99])
    assert hardly.startswith("1 of 4 centres hold hardly any rows")
    assert said.startswith("not to be trusted: centre 2 (size). ")


def test_a_place_is_lost_in_the_units_that_the_run_took_distances_in() -> None:
    centers, errors = [[0.0, 0.0], [0.5, 0.0]], [[0.01, 0.45]] * 2
    assert untrusted_of(centers, errors, [500, 500], [9, 9]) == []
    (said,) = untrusted_of(centers, errors, [500, 500], [9, 9], units=[1.0, 0.5])
    assert said.startswith("not to be trusted: centre 0 (place), 1 (place). ")


def test_a_run_that_is_not_private_is_refused_by_a_ledger_before_a_row_is_read(tmp_path: Path) -> None:
    """A pass over many rows, only to be told what was known before."""
    asked = Request(k=2, epsilon=1.0, bounds=(-1, 1), rows=1000, method="lloyd", not_private=True)
    unreadable = source(np.full((1000, 2), np.nan))  # the pass would refuse it
    with pytest.raises(InvalidInput, match="'lloyd' as composed is NOT private, and cannot be charged to a ledger"):
        fit(asked, unreadable, account=Account(ledger=tmp_path / "b.db", dataset="mine"))
    seeded = attrs.evolve(asked, method="fastlloyd", delta=1e-6, not_private=False)
    with pytest.raises(InvalidInput, match="seeded noise protects nobody"):
        fit(seeded, unreadable, account=Account(ledger=tmp_path / "b.db", dataset="mine"), noise=NoiseRng.for_tests(1))


@pytest.mark.parametrize(("rows", "there", "told"), [(1000, 2500, 0), (1000, 4000, 1), (1000, 300, 0), (None, 4000, 0)])
def test_released_sizes_tell_of_a_number_of_rows_that_is_far_too_small(rows: int | None, there: int, told: int) -> None:
    request = Request(k=3, epsilon=1.0, delta=1e-6, bounds=(-1, 1), rows=rows, method="fastlloyd")
    spread = np.random.default_rng(0).uniform(-1, 1, (there, 2))
    said = " ".join(map(str, after(fit(request, source(spread)))))
    assert said.count("the released sizes add up to about") == said.count("1,000 were said to be there") == told


# bounds of other columns, or in other units


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ([(0, 120), (50, 250)], False),
        ([(0, 50), (120, 250)], True),  # lower ends, then upper ones
        ([(0, 1), (50, 250)], True),
        ([(0, 120), (0, 1)], True),
        ([(0, 120), (-40, 0)], True),
    ],
)
def test_centres_that_all_lie_at_an_end_of_the_bounds_are_warned_of(bounds: Any, told: bool) -> None:
    g = np.random.default_rng(0)
    rows = np.where(g.random((4000, 1)) < 0.5, [30, 80], [90, 160]) + g.normal(0, 4, (4000, 2))
    result = fit(Request(k=2, epsilon=2.0, delta=1e-6, bounds=bounds, rows=4000), source(rows))
    assert ("every centre lies at an end of the declared bounds" in " ".join(map(str, after(result)))) == told


def test_centres_at_0_and_in_categories_are_not_said_to_lie_at_an_end() -> None:
    """Counts and amounts begin at 0, and a value of a category that nobody has is 0."""
    result = made(centers=np.array([[0.0, 0.5], [0.3, 0.0], [0.0, 0.1]]), columns=("x", "y"))
    bounds = {"lower": [0.0, 0.0], "upper": [1.0, 1.0]}
    result = attrs.evolve(result, problem={**result.problem, "bounds": bounds})
    assert at_bounds(result) == []
    ones = attrs.evolve(result, centers=np.array([[1.0, 0.5]] * 3))
    assert "(x)" in at_bounds(ones)[0]
    assert "at an end" in at_bounds(attrs.evolve(result, centers=np.zeros((3, 2))))[0]
    spread = attrs.evolve(ones, columns=("x=a", "y"), problem={**ones.problem, "categories": {"x": ["a"]}})
    assert at_bounds(spread) == []
    ball = {"center": [0.0, 0.0], "radius": 1.0}
    assert at_bounds(attrs.evolve(ones, problem={**ones.problem, "bounds": ball})) == []


# figures beyond all sense


@pytest.mark.filterwarnings("error", "ignore::cloister.core.errors.PrivacyWarning")
@pytest.mark.parametrize("method", ["auto", "one-round"])
def test_an_epsilon_of_ten_thousand_is_warned_of_and_computed_without_an_overflow(method: str) -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    fitted = package.KMeans(3, method=method, epsilon=1e4, bounds=(-1, 1), rows=500).fit(rows)
    assert np.isfinite(fitted.cluster_centers_).all()
    assert "WEAK PROMISE" in html_of(fitted.result_)


def result(centers: Any, intervals: Any, unseen: Any = 0.09, errors: Any = None, bounds: Any = None) -> Result:
    details = {"intervals": np.array(intervals, float), "units": np.ones(2), "unseen": unseen}
    if errors is not None:
        details["centers_error"] = np.array(errors, float)
    box = {"lower": [0.0, 0.0], "upper": [100.0, 100.0]}
    return made(
        2,
        centers=np.array(centers, float),
        weights=np.array([10.0, 20.0]),
        columns=("age", "size"),
        problem={"k": 2, "rows": 1000, "bounds": bounds or box},
        details=details,
    )


def test_a_share_that_noise_may_hide_is_noted_where_an_end_was_cut_and_is_no_warning() -> None:
    """It follows from public figures, and is the same in a run in which all is well."""
    found = result([[20, 50], [30, 50]], [[0, 40], [0, 100]])
    assert unproved(found) == [
        "zoom narrowed the bounds of age to where it saw rows. Rows beyond were clipped, which no size, centre or "
        "standard error shows, and groups of less than 9.0% of the rows may be unseen there. Narrower bounds or more "
        "budget would tell"
    ]
    assert beyond(found) == [str(warning) for warning in after(found)] == []
    for told in (1.0, "?"):
        assert "how many cannot be told" in unproved(attrs.evolve(found, details={**found.details, "unseen": told}))[0]
    assert unproved(attrs.evolve(found, details={**found.details, "unseen": 0.04})) == []


def test_bounds_that_were_kept_and_runs_that_did_not_look_warn_of_nothing() -> None:
    centers, narrowed = [[20, 50], [0, 100]], [[0, 40], [0, 100]]
    kept = result(centers, [[0, 100], [0, 100]])
    scaled = result(centers, narrowed)
    del scaled.details["unseen"]
    assert ends_cut(scaled) is None
    for found in (kept, scaled):
        assert beyond(found) == unproved(found) == []
    for bounds in ({"center": [0, 0], "radius": 1}, {"lower": [0.0], "upper": [1.0]}):
        assert beyond(result(centers, narrowed, bounds=bounds)) == []


@pytest.mark.parametrize(
    ("center", "at"),
    [(38.1, True), (37.9, False), (41.0, True), (1.0, False), (61.0, True), (30.0, False)],
)
def test_a_centre_is_at_an_end_within_a_twentieth_of_the_interval_or_beyond(center: float, at: bool) -> None:
    """The lower end is the bound's own: nothing was cut there."""
    found = result([[20, 50], [center, 50]], [[0, 40], [0, 100]], unseen=0.04)
    assert len(beyond(found)) == at
    if at:
        assert beyond(found)[0].startswith("at an end of the interval that zoom narrowed a column to: centre 1 (age). ")


def test_a_centre_is_at_an_end_within_two_standard_errors() -> None:
    for error, at in ((4.9, False), (5.1, True)):
        found = result([[20, 50], [30, 50]], [[0, 40], [0, 100]], 0.04, [[0.1, 60], [error, 60]])
        assert len(beyond(found)) == at


def test_both_ends_are_looked_at_and_unknown_bounds_are_always_cut() -> None:
    unknown = {"lower": [UNKNOWN[0], 0.0], "upper": [UNKNOWN[1], 100.0]}
    found = result([[20, 50], [30, 6]], [[-5, 60], [5, 100]], bounds=unknown)
    cut = ends_cut(found)
    assert cut is not None
    assert cut.tolist() == [[True, True], [True, False]]
    assert centers_at_ends(found, cut).tolist() == [[False, False], [False, True]]
    assert "of age, size" in unproved(found)[0]
    assert "centre 1 (size)" in beyond(found)[0]


def test_fit_profile_and_report_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    found = result([[20, 50], [39, 50]], [[0, 40], [0, 100]])
    (said,), (noted,) = beyond(found), unproved(found)
    assert said in [str(w) for w in after(found) if isinstance(w, UtilityWarning)]
    print_result(found)
    assert f"WARNING: {said}." in " ".join(capsys.readouterr().out.split())
    profile = profile_of(found)
    assert profile.notes[-2:] == [f"WARNING: {said}.", f"note: {noted}."]
    assert [list(profile.as_dict()[name]) for name in ("beyond", "unproved")] == [[said], [noted]]
    warned, _, mind = html_of(found).partition("What was found")
    assert "A CLUSTER MAY LIE FURTHER OUT" in warned
    assert "groups of less than 9.0%" not in warned
    assert "Zoom narrowed the bounds of age to where it saw rows." in mind


def test_the_share_is_stated_before_the_run_and_in_the_statement() -> None:
    asked = Request(k=2, method="hst-means", epsilon=1.0, delta=1e-6, bounds=(-900, 900), rows=20_000, seed=1)
    price = prepare(asked, ["x", "y"]).price
    assert "Except in one run of 1,000, no group of at least " in price
    found = fit(asked, source(np.random.default_rng(1).normal([-5, 5], 1, (20_000, 2))))
    assert price.removeprefix("Zoom: ") in found.privacy.text()
    for text in (found.privacy.text(), found.privacy.text(brief=True)):
        assert "Zoom: rows outside the intervals that it found were clipped, which no size, centre or standard" in text
    assert f"{found.details['unseen']:.1%}" in price
    hopeless = prepare(attrs.evolve(asked, zoom=0.0001), ["x", "y"])
    assert "How many rows lie outside the intervals that it finds cannot be promised." in hopeless.price


def test_centres_that_were_still_moving_in_the_last_round_are_named() -> None:
    weights = np.array([400.0, 300.0, 300.0])
    for moves, which in (([0.24, 0.0, 0.25], ""), ([0.26, 0.0, 0.7], "centre 0 (26%), 2 (70%)"), ([0.3], "")):
        said = [str(warning) for warning in after(made(weights=weights, details={"last_moves": moves}))]
        assert len(said) == bool(which)
        assert all(f"next centre: {which}. Its size and place" in text for text in said)

"""What groups hold, told: in words, in profiles, in a picture and in a report."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from cloister.core.errors import InvalidInput
from cloister.run.layers.histograms import Descriptions, descriptions_of
from cloister.run.result import Result
from cloister.showing.histograms import COARSE, NAMED, Histograms, contents_of
from cloister.showing.plots import figure_of
from cloister.showing.profile import COUNTS_NOTE, profile_of
from cloister.showing.report import html_of
from tests.showing.described import described
from tests.showing.report.pages import Page, made

EVIL = "<b>A</b>{{ 7 * 7 }}"


def told(result: Result) -> Descriptions:
    found = descriptions_of(result)
    assert found is not None
    return found


def test_values_that_differ_most_come_first_each_with_its_error_and_the_share_of_all_rows() -> None:
    ward = told(described()).columns[0]
    assert (abs(ward.above[0]) > 2 * ward.above_errors[0]).all()
    assert contents_of(told(described()), 0)["ward"] == ", ".join(
        f"{label} {share}% \u00b1 {100 * error:.2f}% (all rows {100 * whole:.2f}% \u00b1 {100 * whole_error:.2f}%)"
        for label, share, error, whole, whole_error in zip(
            ward.labels[:NAMED],
            ("70.00", "20.00", "10.00"),
            ward.errors[0],
            ward.whole,
            ward.whole_errors,
            strict=False,
        )
    )


def test_numbers_are_told_by_median_and_quartiles_beside_the_median_of_all_rows_and_how_coarsely() -> None:
    """Nothing is known of a place within a part of 5: a standard error of 5 / sqrt(12) = 1.44."""
    assert contents_of(told(described()), 1)["stay"] == (
        "median 10.0 \u00b1 1.4, quartiles 7.5 \u00b1 1.4 to 12.5 \u00b1 1.4 (all rows 7.8 \u00b1 1.4), in bins of 5"
    )
    assert contents_of(told(described()), 0)["stay"] == (
        "median 2.5 \u00b1 1.4, quartiles 1.2 \u00b1 1.4 to 3.8 \u00b1 1.4 (all rows 7.8 \u00b1 1.4), "
        f"in bins of 5{COARSE}"
    )


def test_the_error_of_a_quantile_grows_with_those_of_the_shares_below_it() -> None:
    """Of 2,000 rows in four parts, half in each of the middle ones: the median is off by sqrt(2 (1 - 2/4)) times a
    share's error, over 0.5 of the rows in a part of 5."""
    stay = told(described(error=100.0)).columns[1]
    share = float(np.sqrt((stay.errors[1] ** 2).mean()))
    density = stay.shares[1, 1:3].mean() / 5
    assert stay.quantile_error(1, 0.5) == pytest.approx(np.hypot(share / density, 5 / np.sqrt(12)), rel=0.05)
    assert np.isnan(told(described()).columns[0].quantile_error(0, 0.5))


def test_of_two_values_one_is_told_and_what_noise_may_have_made_is_not() -> None:
    assert re.fullmatch(
        r"true 90\.00% \u00b1 0\.2\d% \(all rows 46\.77% \u00b1 0\.1\d%\)", contents_of(told(described()), 0)["urgent"]
    )
    assert contents_of(told(described(error=1000.0)), 2)["urgent"] == "as in all rows"


def test_a_profile_holds_the_words_and_all_figures_and_is_what_it_was_without_a_description() -> None:
    profile, bare, words = profile_of(described()), profile_of(made(2)), contents_of(told(described()), 1)
    lines = profile.text().splitlines()
    assert lines[1:4] == [f"  {name}: {text}" for name, text in words.items()]
    assert "urgent: true 90.00" in profile._repr_html_()
    plain = json.loads(json.dumps(profile.as_dict()))
    assert (plain["described"], plain["clusters"][1]["held"]) == (told(described()).as_dict(), words)
    assert bare.as_dict()["described"] is None
    assert [line for line in lines if line[0] != " "] == bare.text().splitlines()


def test_the_picture_has_a_histogram_for_each_group_and_column_the_largest_group_first() -> None:
    picture = Histograms.of(described())
    axes = figure_of(picture).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["cluster 1", "cluster 0", "cluster 2"]
    assert [text.get_text() for text in axes.get_xticklabels()][:2] == ["ward\nA, B, other", "stay\n0 to 20"]
    drawn = iter([np.array(patch.get_data().values) for patch in axes.patches])  # type: ignore[attr-defined]  # stairs
    for column in picture.descriptions.columns:
        for row, group in enumerate((1, 0, 2)):
            whole, own = next(drawn) + row, next(drawn) + row
            np.testing.assert_allclose(own * column.whole.max(), whole.max() * column.shares[group], atol=1e-12)
            assert max(own.max(), whole.max()) <= 0.85 + 1e-12
    assert next(drawn, None) is None
    with pytest.raises(InvalidInput, match="fit with --describe"):
        Histograms.of(made(2))


def test_a_report_tells_what_each_group_holds_with_a_small_histogram_a_column() -> None:
    page = Page(html_of(described()))
    for group in range(3):
        for text in contents_of(told(described()), group).values():
            assert text in page.text
    bars = [tag["d"] or "" for tag in page.every("path") if tag.get("class") == "own"]
    assert [path.count("M") for path in bars] == [3, 4, 2] * 3
    assert "rows hold" not in Page(html_of(made(2))).text
    odd = html_of(described(values={EVIL: [EVIL, "B"], "stay": [], "urgent": ["true"]}))
    assert EVIL not in odd
    assert "{{ 7 * 7 }}" in Page(odd).text


def test_what_a_profile_says_below_its_table_is_escaped_in_notebooks() -> None:
    odd = described(values={"ward": [EVIL, "B"], "stay": [], "urgent": ["true"]})
    worded = made(2, details={"words": {"above": 50, "of": [[[EVIL, 700.0, 9.0]], [["knee", 900.0, 9.0]], []]}})
    for result in (odd, worded):
        html = profile_of(result)._repr_html_()
        assert "<b>" not in html
        assert EVIL in Page(html).text


def test_profile_and_report_tell_words_by_lift_and_what_their_counts_are_of() -> None:
    of = [[["hip", 700.0, 9.0], [EVIL, 400.0, 9.0]], [["knee", 900.0, 9.0]], []]
    result = made(2, details={"words": {"above": 50, "of": of}})
    *lines, last = profile_of(result).keyword_lines
    assert (len(lines), last) == (3, COUNTS_NOTE)
    html = html_of(result)
    assert EVIL not in html
    for told in (*(line.partition(": ")[2] for line in lines), COUNTS_NOTE):
        assert told in Page(html).text
    assert COUNTS_NOTE not in Page(html_of(described())).text
    assert not profile_of(described()).keyword_lines

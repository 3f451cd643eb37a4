"""What groups hold, told: in words, in profiles, in a picture and in a report."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from cloister.core.errors import InvalidInput
from cloister.run.descriptions import Descriptions, descriptions_of
from cloister.run.result import Result
from cloister.showing.plots import figure_of
from cloister.showing.profile import COUNTED, profile_of
from cloister.showing.report import html_of
from cloister.showing.telling import COARSE, NAMED, Histograms, held
from tests.showing.described import described
from tests.showing.report.pages import Page, made

EVIL = "<b>A</b>{{ 7 * 7 }}"


def told(result: Result) -> Descriptions:
    found = descriptions_of(result)
    assert found is not None
    return found


def test_values_that_differ_most_come_first_each_with_its_error_and_the_share_of_all_rows() -> None:
    ward, error = told(described()).columns[0], 100 * told(described()).columns[0].errors[0]
    assert held(told(described()), 0)["ward"] == ", ".join(
        f"{label} {share} \u00b1 {error[i]:.2f}% (all rows {whole}%)"
        for i, label, share, whole in (
            (0, "A", "70.00", f"{100 * ward.whole[0]:.3g}"),
            (1, "B", "20.00", f"{100 * ward.whole[1]:.3g}"),
            (2, "other", "10.00", f"{100 * ward.whole[2]:.3g}"),
        )[:NAMED]
        if abs(ward.above[0, i]) > 2 * ward.above_errors[0, i]
    )
    assert held(told(described()), 0)["ward"].startswith("A 70.00 \u00b1 0.2")


def test_numbers_are_told_by_median_and_quartiles_beside_the_median_of_all_rows_and_how_coarsely() -> None:
    assert held(told(described()), 1)["stay"] == "median 10, quartiles 7.5 to 12.5 (all rows 7.75), told by parts of 5"
    assert held(told(described()), 0)["stay"] == (
        f"median 2.5, quartiles 1.25 to 3.75 (all rows 7.75), told by parts of 5{COARSE}"
    )


def test_of_two_values_one_is_told_and_what_noise_may_have_made_is_not() -> None:
    assert re.fullmatch(r"true 90\.00 \u00b1 0\.2\d% \(all rows 46\.8%\)", held(told(described()), 0)["urgent"])
    assert held(told(described(error=1000.0)), 2)["urgent"] == "as in all rows"


def test_a_profile_holds_the_words_and_all_figures_and_is_what_it_was_without_a_description() -> None:
    profile = profile_of(described())
    lines = profile.text().splitlines()
    assert lines[1:4] == [f"  {name}: {text}" for name, text in held(told(described()), 1).items()]
    assert "urgent: true 90.00" in profile._repr_html_()
    plain = json.loads(json.dumps(profile.as_dict()))
    assert plain["described"] == told(described()).as_dict()
    assert plain["clusters"][1]["held"] == held(told(described()), 1)
    bare = profile_of(made(2))
    assert bare.as_dict()["described"] is None
    assert [line for line in profile.text().splitlines() if line[0] != " "] == bare.text().splitlines()


def test_the_picture_has_a_histogram_for_each_group_and_column_the_largest_group_first() -> None:
    picture = Histograms.of(described())
    assert set(picture.as_dict()["columns"]) == {"ward", "stay", "urgent"}
    figure = figure_of(picture)
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["cluster 1", "cluster 0", "cluster 2"]
    assert [text.get_text() for text in axes.get_xticklabels()][:2] == ["ward\nA, B, other", "stay\n0 to 20"]
    drawn = [patch.get_data() for patch in axes.patches]  # type: ignore[attr-defined]  # stairs
    assert len(drawn) == 2 * 3 * 3
    for j, column in enumerate(picture.told.columns):
        for row, group in enumerate((1, 0, 2)):
            whole, own = (np.array(drawn[6 * j + 2 * row + i].values) + row for i in (0, 1))
            np.testing.assert_allclose(own * column.whole.max(), whole.max() * column.shares[group], atol=1e-12)
            assert max(own.max(), whole.max()) <= 0.85 + 1e-12
    with pytest.raises(InvalidInput, match="fit with --describe"):
        Histograms.of(made(2))


def test_a_report_tells_what_each_group_holds_with_a_small_histogram_a_column() -> None:
    page = Page(html_of(described()))
    for group in range(3):
        for text in held(told(described()), group).values():
            assert text in page.text
    bars = [tag["d"] or "" for name, tag in page.tags if name == "path" and tag.get("class") == "own"]
    assert [path.count("M") for path in bars] == [3, 4, 2] * 3
    assert "rows hold" not in Page(html_of(made(2))).text


def test_profile_and_report_tell_words_by_lift_and_what_their_counts_are_of() -> None:
    of = [[["hip", 700.0, 9.0], [EVIL, 400.0, 9.0]], [["knee", 900.0, 9.0]], []]
    result = made(2, details={"words": {"above": 50, "of": of}})
    lines = profile_of(result).spoken
    assert lines[-1] == COUNTED
    assert len(lines) == 4
    page = Page(html_of(result))
    for line in lines[:-1]:
        assert line.partition(": ")[2] in page.text
    assert COUNTED in page.text
    assert EVIL not in html_of(result)
    assert COUNTED not in Page(html_of(described())).text
    assert not profile_of(described()).spoken


def test_names_and_values_in_a_report_are_escaped() -> None:
    values = {EVIL: [EVIL, "B"], "stay": [], "urgent": ["true"]}
    page = html_of(described(values=values))
    assert EVIL not in page
    assert "{{ 7 * 7 }}" in Page(page).text

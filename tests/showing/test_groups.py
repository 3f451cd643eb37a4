"""Groups as people see them: the largest first, by number and name, and one colour in every picture."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_hex

from cloister.run.result import Result
from cloister.showing.frame import GROUPS, group_colour
from cloister.showing.plots import draw_map, draw_parallel
from cloister.showing.profile import centers_html, profile_of
from cloister.showing.report import html_of
from cloister.showing.report.page import NAMES
from tests.showing.report.pages import made

SIZES = np.array([200.0, 50.0, 400.0, 300.0])
ORDER = ["2 Frail", "3", "0 <b>&$x$", "1"]


def named(d: int = 3, **more: Any) -> Result:
    return made(d, 4, weights=SIZES, **more).named({2: "Frail", 0: "<b>&$x$"})


def first_cells(html: str) -> list[str]:
    """The text of the first cell of every row below a heading."""
    body = html.partition("<tbody>")[2].partition("</tbody>")[0]
    rows = ElementTree.fromstring(f"<t>{body}</t>").iter("tr")
    return ["".join(row[0].itertext()).strip() for row in rows]


def test_tables_begin_with_the_largest_group_and_name_it() -> None:
    result = named()
    page, profile = html_of(result), profile_of(result)
    for html in (centers_html(result), profile._repr_html_(), page, page.partition('id="centres"')[2]):
        assert first_cells(html) == ORDER
    assert [line.partition(",")[0] for line in profile.text().splitlines()[:4]] == [f"cluster {each}" for each in ORDER]


def test_numbers_stay_those_of_the_result() -> None:
    result = named()
    found = profile_of(result)
    assert [cluster.number for cluster in found.clusters] == [0, 1, 2, 3]
    assert [cluster.size for cluster in found.clusters] == SIZES.tolist()
    assert [cluster["called"] for cluster in found.as_dict()["clusters"]] == sorted(ORDER)
    assert np.array_equal(result.centers, made(3, 4).centers)


def colours_of_dots(result: Result, **how: Any) -> list[str]:
    """The colours (k,) of the centres of a map, by number."""
    (dots,) = [each for each in draw_map(result, **how).axes[0].collections if len(each.get_offsets()) == 4]
    assert np.array_equal(np.asarray(dots.get_offsets())[:, 0], result.centers[result.by_size, 0]) or how
    colours = [to_hex(colour) for colour in dots.get_facecolors()]
    return [colours[result.by_size.index(number)] for number in range(4)]


@pytest.mark.parametrize("k", [4, len(GROUPS) + 4, 60])
def test_a_group_has_one_colour_in_every_picture(k: int) -> None:
    lines = draw_parallel(made(4, k)).axes[0].lines
    assert [line.get_color() for line in lines] == [group_colour(number) for number in range(k)]
    if k == 4:
        wanted = [colour.lower() for colour in GROUPS[:4]]
        assert colours_of_dots(named(2)) == colours_of_dots(named(4), project=True) == wanted


def test_a_report_has_the_same_colour_in_cards_tables_and_pictures() -> None:
    html = html_of(named(2))
    variables = [NAMES[group_colour(number).lower()] for number in (2, 3, 0, 1)]
    assert re.findall(r"--group: (var\(--\w+\))", html) == variables * 3
    assert len(set(variables)) == 4
    picture = html.partition('<figure><div class="scroll" tabindex="0">')[2].partition("</svg>")[0]
    assert set(variables) <= set(re.findall(r"fill: (var\(--\w+\))", picture))


def test_names_stand_in_pictures_and_hide_nothing() -> None:
    """Of a map in its legend, the largest group first; of lines at their ends."""
    figure = draw_map(named(2))
    assert {number for text in figure.axes[0].texts for number in text.get_text().split(", ")} == set("0123")
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()][-2:] == ["2 Frail", r"0 <b>&\$x\$"]
    lines = draw_parallel(named(4))
    assert {text.get_text() for text in lines.axes[0].texts} == {r"0 <b>&\$x\$", "1", "2 Frail", "3"}
    assert max(text.get_window_extent().x1 for text in lines.axes[0].texts) <= lines.bbox.width

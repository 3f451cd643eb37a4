"""Every place that shows a result shows each size, share and coordinate with its standard error, in the same text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.commands.common import print_result
from cloister.core.randomness import NoiseRng
from cloister.run.estimates import Estimate
from cloister.run.fit import fit, source
from cloister.run.request import Request
from cloister.run.result import Result
from cloister.showing.frame import BAR
from cloister.showing.plots import draw_map, draw_parallel
from cloister.showing.profile import profile_of
from cloister.showing.report import html_of
from tests.in_process import ran
from tests.showing.report.pages import Page, made

WARD = {"ward": ["A", "B", "C"]}


@pytest.fixture(scope="module")
def result() -> Result:
    """Two groups, in wards of which none is rare in either."""
    import pandas as pd

    g = np.random.default_rng(3)
    group = np.arange(4000) % 4 == 0
    ward = np.where(group, g.choice(["A", "B", "C"], 4000, p=[0.8, 0.1, 0.1]), g.choice(["A", "B", "C"], 4000))
    rows = pd.DataFrame({"age": np.where(group, 20, 70) + g.normal(0, 3, 4000), "ward": ward})
    asked = Request(k=2, epsilon=3.0, delta=1e-6, bounds={"age": (0, 120)}, rows=4000, method="radius-means", seed=1)
    return fit(asked, source(rows, categories=WARD), noise=NoiseRng.for_tests(4))


def figures(result: Result) -> dict[str, list[str]]:
    """Each centre's figures as text, by kind, straight from the released numbers."""
    errors, size_errors = np.array(result.details["centers_error"]), np.array(result.details["weights_error"])
    assert result.weights is not None
    wards = [result.columns.index(f"ward={value}") for value in "ABC"]
    assert result.centers[:, wards].min() > 0.005
    shares = result.centers / np.maximum(1.0, result.centers[:, wards].sum(axis=1, keepdims=True))
    scaled = errors / np.maximum(1.0, result.centers[:, wards].sum(axis=1, keepdims=True))
    age = result.columns.index("age")
    return {
        "sizes": [Estimate(*each).text for each in zip(result.weights.tolist(), size_errors.tolist(), strict=True)],
        "ages": [Estimate(float(result.centers[i, age]), float(errors[i, age])).text for i in range(2)],
        "shares": [Estimate.of_share(float(shares[i, j]), float(scaled[i, j])).text for i in range(2) for j in wards],
    }


def plain(text: str) -> str:
    return re.sub(r"[\s│]+", " ", text)


def test_tables_cards_profiles_reports_and_notebooks_show_every_figure_with_its_error_in_the_same_text(
    result: Result, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [text for texts in figures(result).values() for text in texts]
    assert all(re.fullmatch(r"[\d,.]+%? ± [\d,.]+%?", text) for text in wanted)
    result.save(tmp_path / "r.json")
    places = {
        "profile": ran("profile r.json", tmp_path).stdout,
        "report": Page(html_of(result)).text,
        "report, table": Page(html_of(result)).text.partition("All centres")[2],
        "notebook": Page(result._repr_html_()).text,
        "notebook, profile": Page(profile_of(result)._repr_html_()).text,
        "profile as JSON": json.dumps(profile_of(result).as_dict(), ensure_ascii=False),
    }
    for width in (40, 60, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        print_result(result)
        places[f"fit, {width} characters"] = capsys.readouterr().out
    for place, shown in places.items():
        missing = [text for text in wanted if text not in plain(shown)]
        assert place == "profile as JSON" or not missing, (place, missing)
    found = json.loads(ran("profile r.json --json", tmp_path).stdout)["clusters"]
    assert [text for cluster in found for text in cluster["coordinates"] if "%" not in text] == figures(result)["ages"]
    for i, cluster in enumerate(found):
        sizes = Estimate(cluster["size"], cluster["size_error"]).text
        shares = [
            Estimate.of_share(cluster["categories"]["ward"][value], cluster["category_errors"]["ward"][value]).text
            for value in "ABC"
        ]
        assert (sizes, shares) == (figures(result)["sizes"][i], figures(result)["shares"][3 * i : 3 * i + 3])
        of_all = Estimate.of_share(cluster["share"], cluster["share_error"]).text
        for place in ("profile", "report", "notebook, profile"):
            assert of_all in plain(places[place]), place
        assert of_all in profile_of(result).text()


def segments(figure: Any) -> set[tuple[float, ...]]:
    """Ends of all bars of a picture."""
    lines = [each for each in figure.axes[0].collections if hasattr(each, "get_segments")]
    return {tuple(np.round(part, 9).ravel()) for line in lines for part in line.get_segments()}


def test_maps_and_lines_show_two_standard_errors_to_each_side_of_a_centre_and_say_so() -> None:
    errors = np.array([[0.01, 0.02, 0.03], [0.04, 0.05, 0.06]])
    found, bare = made(3, 2, details={"centers_error": errors}), made(3, 2)
    for draw in (draw_map, draw_parallel):
        assert BAR in [text.get_text() for text in draw(found).legends[0].get_texts()]
        assert BAR not in [text.get_text() for text in draw(bare).legends[0].get_texts()]
    (x, y, *_), (right, up, *_) = found.centers[1], 2 * errors[1]
    drawn = segments(draw_map(found))
    assert tuple(np.round([x - right, y, x + right, y], 9)) in drawn
    assert tuple(np.round([x, y - up, x, y + up], 9)) in drawn
    middle = (found.centers[1, 2] + 1) / 2
    assert tuple(np.round([2, middle - 0.06, 2, middle + 0.06], 9)) in segments(draw_parallel(found))
    assert draw_map(found, project=True).axes  # errors of a plane are those of its columns, added up


def test_no_share_has_an_error_beyond_what_a_share_can_be_off_by() -> None:
    columns, problem = ("ward=A", "ward=B"), {**made(2, 2).problem, "categories": {"ward": ["A", "B"]}}
    details = {"centers_error": np.full((2, 2), 9.0)}
    found = made(2, 2, centers=np.array([[0.9, 0.0], [0.5, 0.25]]), columns=columns, problem=problem, details=details)
    assert [list(cluster.coordinates) for cluster in profile_of(found).clusters] == [
        ["90% ± 90%", "0% ± 100%"],
        ["50% ± 50%", "25% ± 75%"],
    ]

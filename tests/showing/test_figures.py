"""Pictures of made results: what they show, and what cannot be shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import attrs
import matplotlib as mpl
import numpy as np
import pytest

from cloister.core.errors import Damaged
from cloister.run.result import Result
from cloister.showing.parallel import LABEL, MOST_COLUMNS, Parallel, separate_labels
from cloister.showing.plot_data import FLAT, OVERLAPPING, Curve, Map
from cloister.showing.plots import draw_map, draw_parallel, save
from cloister.showing.projection import TREE, principal
from tests.showing.report import pages
from tests.showing.report.pages import STATEMENT


def made(d: int = 2, k: int = 3, **changes: Any) -> Result:
    """A result over [-1, 1]^d as a method would give it."""
    return pages.made(d, k, **changes)


def boxes(m: int, d: int) -> dict[str, Any]:
    g = np.random.default_rng(0)
    corners = np.sort(g.uniform(-1, 1, (m, 2, d)), axis=1)
    return {"cells": corners, "cell_weights": g.exponential(10, m), "costs": 1000.0 / np.arange(1, 31) ** 2, "power": 2}


def words(path: Path) -> str:
    """The text of an SVG, which must be well-formed."""
    return "\n".join(ElementTree.parse(path).getroot().itertext())


def test_settings_of_the_user_change_no_picture_and_are_not_changed(tmp_path: Path) -> None:
    result = made(details=boxes(5, 2))
    save(draw_map(result), tmp_path / "a.svg", "t")
    with mpl.rc_context({"font.size": 30.0, "axes.facecolor": "black", "svg.hashsalt": "other"}):
        save(draw_map(result), tmp_path / "b.svg", "t")
        assert mpl.rcParams["font.size"] == 30.0
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_two_columns_are_seen_in_the_order_asked() -> None:
    result = made(3, details={"intervals": [[0, 1], [-1, 1], [0, 2]]})
    for of, ends, within in ((made(3), [1, 1], "the domain"), (result, [2, 1], "the interval that zoom chose")):
        seen = Map.of(of, axes=("c2", "c0"))
        assert (seen.view.names, seen.within) == (("c2", "c0"), within)
        assert seen.border.max(axis=0).tolist() == ends
        assert np.array_equal(seen.centers, of.centers[:, [2, 0]])


def test_of_many_cells_the_heaviest_are_drawn() -> None:
    for d, most in ((2, FLAT), (3, OVERLAPPING), (60, 166)):
        details = boxes(3000, d)
        seen = Map.of(made(d, details=details))
        assert (len(seen.cells), seen.all_cells) == (most, 3000)
        assert seen.cells[-1].min(axis=0) == pytest.approx(details["cells"][np.argmax(details["cell_weights"]), 0, :2])


@pytest.mark.parametrize("framed", [{}, {"intervals": [[-1.0, 3.0]] * 6, "units": [2.0] * 6}])
def test_a_tree_of_a_projection_is_seen_in_it_and_from_elsewhere_without_cells(framed: dict[str, Any]) -> None:
    frame = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 3)))[0]
    details = {**boxes(10, 3), "projection": frame, **framed}
    result = made(6, details=details)
    seen = Map.of(result)
    assert (seen.view.projected, len(seen.cells)) == (TREE, 10)
    placed = (result.centers - 1) / 2 if framed else result.centers
    assert np.allclose(seen.centers, placed @ frame[:, :2])
    assert seen.cells[-1].max(axis=0) == pytest.approx(details["cells"][details["cell_weights"].argmax(), 1, :2])
    elsewhere = Map.of(result, axes=("c0", "c1"))
    assert (len(elsewhere.cells), elsewhere.all_cells) == (0, 10)
    assert "shown in the tree's own projection only" in "".join(
        t.get_text() for t in draw_map(result, ("c0", "c1")).texts
    )


def test_principal_axes_are_orthonormal_and_keep_what_is_spread_most() -> None:
    spread = np.random.default_rng(0).normal(size=(50, 4)) * [0.1, 5, 0.1, 2]
    for points in (spread, np.zeros((4, 5)), np.full((1, 2), 1e90), np.eye(5)[:2] * 1e-90):
        plane = principal(points - points.mean(axis=0))
        assert np.allclose(plane.T @ plane, np.eye(2))
    assert (principal(spread - spread.mean(axis=0))[[1, 3], [0, 1]] > 0.99).all()


def labels(result: Result) -> list[str]:
    return [text.get_text() for text in draw_map(result).axes[0].texts]


def test_centres_are_seen_however_few_rows_they_have_and_numbered_as_long_as_they_can_be_told_apart() -> None:
    for weights in (None, np.zeros(3), np.array([-5.0, 0.3, 1e12])):
        figure = draw_map(made(weights=weights))
        (drawn,) = [c for c in figure.axes[0].collections if len(c.get_offsets()) == 3]
        assert min(drawn.get_sizes()) >= 14
    centers = np.array([[-0.5, 0.5], [0.5, 0.5], [-0.49, 0.51], [0.5, -0.5]])
    assert labels(made(2, 4, centers=centers, weights=None)) == ["0, 2", "1", "3"]
    assert not [label for label in labels(made(k=200)) if label[:1].isdecimal()]


def test_a_map_shows_numbers_before_the_values_of_categories() -> None:
    columns = ("ward=A", "ward=B", "age", "stay")
    for d, shown in ((4, ("age", "stay")), (3, ("ward=A", "ward=B"))):
        problem = {**made(d).problem, "categories": {"ward": ["A", "B"]}}
        assert Map.of(made(d, columns=columns[:d], problem=problem)).view.names == shown


ODD = ["$x$", r"\$x", "柱", "<&>\"'", "a\nb", "\x00\x07", "\ud800", "x" * 300, "", "y"]


def test_columns_with_odd_names_are_drawn(tmp_path: Path) -> None:
    shown = ""
    for pair in zip(ODD[::2], ODD[1::2], strict=True):
        result = made(10, columns=tuple(ODD), method={"name": "".join(pair)})
        for ending in ("png", "svg"):
            save(draw_map(result, pair), tmp_path / f"odd.{ending}", Map.of(result).heading.title)
            save(draw_parallel(result), tmp_path / f"lines.{ending}", "t")
        shown += words(tmp_path / "odd.svg")
    for name in ODD[:4]:
        assert name in shown
        assert name in words(tmp_path / "lines.svg")


def test_a_picture_says_who_is_protected() -> None:
    for change, expected, private in (
        ({"seeded": True}, "NOT PRIVATE: seeded noise, ε = 1", False),
        ({"private": False}, "NOT PRIVATE: exact answers", False),
        ({"simulated": True, "trust": "Local"}, "ε = 1, δ = 1e-06, Local trust, SIMULATED: all rows were in one", True),
        ({"delta": 0.0}, "ε = 1, Central trust", True),
    ):
        heading = Map.of(made(privacy=attrs.evolve(STATEMENT, **change))).heading
        assert heading.guarantee.startswith(expected)
        assert heading.private == private


@pytest.mark.parametrize(
    "change",
    [
        *({"details": {"cells": cells}} for cells in ([[1], [2, 3]], np.array([[[1.0, 1.0], [0.0, 2.0]]]))),
        {"details": {**boxes(4, 2), "cell_weights": [np.inf] * 4}},
        {"details": {**boxes(4, 2), "projection": np.zeros((2, 2))}},
        {"problem": {"k": 3, "bounds": 5}},
        {"problem": {**made().problem, "categories": 3}},
        {"privacy": attrs.evolve(STATEMENT, epsilon="much")},
    ],
)
def test_results_without_sense_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(Damaged):
        Map.of(made(**change))


def test_numbers_without_sense_cannot_be_drawn() -> None:
    centers, weights = {"centers": np.full((3, 2), np.nan)}, {"weights": np.full(3, np.inf)}
    for picture, change in ((Map, centers), (Parallel, centers), (Map, weights)):
        with pytest.raises(Damaged, match="cannot be drawn"):
            picture.of(made(**change))
    for costs in (["a"], [-1.0, 0.0], 3):
        with pytest.raises(Damaged, match="costs cannot be drawn"):
            Curve.of(made(details={"costs": costs}))


def test_principal_axes_are_in_the_units_that_the_run_took_distances_in() -> None:
    """A column in cents would otherwise be the whole picture."""
    units = np.array([1.0, 1000.0, 1.0])
    wide = made(3, centers=made(3).centers * units, details={"units": units})
    assert np.allclose(Map.of(wide, project=True).centers, Map.of(made(3), project=True).centers)


def test_what_is_left_of_a_difference_is_no_cost() -> None:
    curve = Curve.of(made(details={"costs": [1e10, 1e3, 2e-3, 2e-3]}))
    assert np.array_equal(curve.costs, [1e10, 1e3, 0.0, 0.0])


# parallel coordinates


def test_a_line_runs_between_the_bounds_of_its_columns() -> None:
    problem = {"k": 3, "rows": 1000, "bounds": {"lower": [0.0, -10.0], "upper": [4.0, 30.0]}}
    seen = Parallel.of(made(centers=np.array([[1.0, 10.0], [4.0, -10.0], [0.0, 99.0]]), problem=problem))
    assert seen.heights.tolist() == [[0.25, 0.5], [1.0, 0.0], [0.0, 1.0]]
    assert (seen.low.tolist(), seen.high.tolist()) == ([0.0, -10.0], [4.0, 30.0])


def test_numbers_beside_lines_stand_at_their_own_height_or_as_near_as_they_can_be_read() -> None:
    for far in ([0.5, 0.9, 0.1], [0.1, 0.9, 0.5], [0.3, 0.7, 0.9, 0.1]):
        assert separate_labels(np.array(far)) == pytest.approx(np.array(far))
    near = separate_labels(np.array([0.5, 0.9, 0.5 - LABEL / 4, 0.1]))
    assert near == pytest.approx([0.5 + 3 * LABEL / 4, 0.9, 0.5 - LABEL / 4, 0.1])
    above = separate_labels(np.array([0.2, 1.0, 1.0 - LABEL / 2]))
    assert above == pytest.approx([0.2, 1.0, 1.0 - LABEL])


def test_of_many_columns_those_that_differ_most_are_seen_in_their_order() -> None:
    centers = np.zeros((3, 100))
    centers[0, 5 : 5 + MOST_COLUMNS] = 0.5
    seen = Parallel.of(made(100, centers=centers))
    assert seen.columns == tuple(f"c{j}" for j in range(5, 5 + MOST_COLUMNS))
    assert seen.text() == "3 centres over the 30 of 100 columns in which they differ most"

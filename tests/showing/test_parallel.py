"""Parallel coordinates of made results: where lines run, and which columns are seen."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from cloister.core.errors import Damaged, InvalidInput
from cloister.showing.frame import GROUPS
from cloister.showing.lines import DASHES, LABEL, MOST_COLUMNS, Parallel, apart
from cloister.showing.plots import draw_parallel, save
from tests.showing.test_figures import made, words


def test_a_line_runs_between_the_bounds_of_its_columns() -> None:
    problem = {"k": 3, "rows": 1000, "bounds": {"lower": [0.0, -10.0], "upper": [4.0, 30.0]}}
    seen = Parallel.of(made(2, centers=np.array([[1.0, 10.0], [4.0, -10.0], [0.0, 99.0]]), problem=problem))
    assert np.array_equal(seen.heights, [[0.25, 0.5], [1.0, 0.0], [0.0, 1.0]])
    assert (seen.low.tolist(), seen.high.tolist()) == ([0.0, -10.0], [4.0, 30.0])
    ball = Parallel.of(made(2, problem={"k": 3, "rows": 1000, "bounds": {"center": [1.0, 0.0], "radius": 2.0}}))
    assert (ball.low.tolist(), ball.high.tolist()) == ([-1.0, -2.0], [3.0, 2.0])


def test_of_many_columns_those_that_differ_most_are_seen_in_their_order(tmp_path: Path) -> None:
    centers = np.zeros((3, 100))
    centers[0, 5 : 5 + MOST_COLUMNS] = 0.5
    seen = Parallel.of(made(100, centers=centers))
    assert seen.columns == tuple(f"c{j}" for j in range(5, 5 + MOST_COLUMNS))
    assert seen.text() == "3 centres over the 30 of 100 columns in which they differ most"
    assert seen.as_dict()["columns in the result"] == 100
    save(draw_parallel(made(100, centers=centers)), tmp_path / "lines.svg", "t")
    assert "c34" in words(tmp_path / "lines.svg")


def test_lines_are_numbered_as_long_as_they_can_be_told_apart() -> None:
    looks = list(product(DASHES, GROUPS))
    for k in (len(looks), len(looks) + 1):
        axes = draw_parallel(made(4, k=k)).axes[0]
        assert [text.get_text() for text in axes.texts] == ([str(i) for i in range(k)] if k == len(looks) else [])
        assert len(axes.lines) == k
    drawn = draw_parallel(made(4, k=len(looks))).axes[0].lines
    assert [(line.get_color(), line.is_dashed()) for line in drawn] == [(color, dash != "-") for dash, color in looks]


@pytest.mark.parametrize("heights", [[0.5] * 18, [0.0, 1.0, 1.0, 0.99], [0.2, 0.9], [1.0], np.linspace(0, 1, 18)])
def test_numbers_are_kept_apart_and_in_the_order_of_their_lines(heights: list[float]) -> None:
    moved = apart(np.array(heights))
    order = np.argsort(heights, kind="stable")
    assert (np.diff(moved[order]) >= LABEL - 1e-12).all()
    assert moved.max() <= 1 + 1e-12
    assert np.allclose(apart(np.array([0.9, 0.2, 0.5])), [0.9, 0.2, 0.5])  # far apart already


def test_one_column_and_damage_are_refused() -> None:
    with pytest.raises(InvalidInput, match="one column only"):
        Parallel.of(made(1))
    for change, said in (
        ({"centers": np.full((3, 3), np.nan)}, "centres"),
        ({"weights": np.full(3, np.inf)}, "weights"),
    ):
        with pytest.raises(Damaged, match=f"{said} cannot be drawn"):
            Parallel.of(made(3, **change))

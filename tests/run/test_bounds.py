"""Public bounds as people give them: what is not understood is refused in one line that says what is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cloister.core.domains import Ball, Box
from cloister.core.errors import InvalidInput
from cloister.run.bounds import domain_of, table_from

COLUMNS = ("age", "pressure")
BOX = Box((0.0, 0.0), (120.0, 250.0))


@pytest.mark.parametrize(
    "bounds",
    [
        "0:120,0:250",
        [(0, 120), (0, 250)],
        {"pressure": [0, 250], "age": (0, 120)},
        {"lower": [0, 0], "upper": [120, 250]},
        BOX,
    ],
)
def test_one_box_can_be_given_in_several_ways(bounds: Any) -> None:
    assert domain_of(bounds, COLUMNS) == BOX


def test_a_ball_can_be_given_in_two_ways_whatever_columns_are_called() -> None:
    assert domain_of({"center": [0, 0], "radius": 2}, ("center", "radius")) == Ball((0.0, 0.0), 2.0)
    assert domain_of("ball:2", COLUMNS) == domain_of({"center": [0, 0], "radius": 2}, COLUMNS) == Ball((0.0, 0.0), 2.0)


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ({"age": 120, "pressure": [0, 1]}, "120 in the bounds is one value where two or more belong"),
        ({"age": "12", "pressure": [0, 1]}, "'12' in the bounds is one value"),
        ({"age": [0, 120, 3], "pressure": [0, 1]}, "is not a pair"),
        ({"age": [0, "old"], "pressure": [0, 1]}, "'old' in the bounds is not a number"),
        ({"age": [0, 120]}, "no bounds for column pressure: leave it out with --columns, or give one pair"),
        ({"age": [0, 120], "presure": [0, 1], "size": [0, 1]}, r"column pressure \(they have 'presure': is that meant"),
        ({"lower": 0, "upper": 1}, "0 in the bounds is one value"),
        ({"lower": [0, 0], "upper": [1]}, "2 lower ends and 1 upper ones"),
        ({"center": 0, "radius": 1}, "0 in the bounds is one value"),
        ({"center": ["a", 0], "radius": 1}, "'a' in the bounds is not a number"),
        (3, "bounds 3 are not understood"),
    ],
)
def test_bounds_that_are_not_understood_are_refused(bounds: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        domain_of(bounds, COLUMNS)


@pytest.mark.parametrize("columns", [("lower", "upper"), ("lower", "x"), ("x", "upper")])
def test_bounds_that_two_readings_fit_are_refused_and_never_guessed(columns: tuple[str, str]) -> None:
    """Ends of all columns, or a pair for each of two columns of these names: the wrong guess would clip rows in
    silence."""
    with pytest.raises(InvalidInput, match=r"columns are called lower|column is called (lower|upper)") as told:
        domain_of({"lower": [0, 10], "upper": [120, 250]}, columns)
    assert "a list of pairs in the order of the columns" in str(told.value)
    assert domain_of([(0, 10), (120, 250)], columns) == Box((0.0, 120.0), (10.0, 250.0))
    assert domain_of("0:10,120:250", columns) == Box((0.0, 120.0), (10.0, 250.0))


@pytest.mark.parametrize(
    ("bounds", "columns", "box"),
    [
        (
            {"lower": [0, 10], "upper": [120, 250], "x": [0, 1]},
            ("x", "upper", "lower"),
            Box((0.0, 120.0, 0.0), (1.0, 250.0, 10.0)),
        ),
        ({"lower": [0, 0, 0], "upper": [1, 2, 3]}, ("lower", "upper", "x"), Box((0.0, 0.0, 0.0), (1.0, 2.0, 3.0))),
        ({"lower": [0], "upper": [1]}, ("lower", "upper"), Box((0.0, 0.0), (1.0, 1.0))),
        ({"lower": [0, 10]}, ("lower",), Box((0.0,), (10.0,))),
        ({"lower": [0, 10], "upper": [120, 250]}, ("lower",), Box((0.0,), (10.0,))),
        ({"center": [0, 10], "radius": [120, 250]}, ("center", "radius"), Box((0.0, 120.0), (10.0, 250.0))),
        ({"center": [0, 10], "radius": [120, 250]}, ("radius", "center"), Box((120.0, 0.0), (250.0, 10.0))),
    ],
)
def test_bounds_that_one_reading_fits_are_read_so_whatever_columns_are_called(
    bounds: Any, columns: tuple[str, ...], box: Box
) -> None:
    assert domain_of(bounds, columns) == box


@pytest.mark.parametrize(
    ("bounds", "columns", "says"),
    [
        ({"lower": [0, 10], "upper": [120, 250]}, ("lower", "upper", "x"), "no bounds for column x"),
        ({"center": [0, 10], "radius": [1, 2]}, ("radius", "x"), "no bounds for column x"),
        ({"center": [0, 10], "radius": [1, 2]}, ("center", "x"), "no bounds for column x"),
        (
            {"lower": [0, 0, 0], "upper": [1, 1, 1]},
            ("lower", "upper"),
            r"3 columns were given, the data have 2 \(lower, upper\)",
        ),
    ],
)
def test_bounds_that_neither_reading_fits_are_refused_in_the_words_of_the_nearer_one(
    bounds: Any, columns: tuple[str, ...], says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        domain_of(bounds, columns)


@pytest.mark.parametrize(("name", "text"), [("bounds.json", "["), ("bounds.toml", "a = [")])
def test_a_file_that_is_nested_too_deeply_is_refused(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text + "[" * 100_000)
    with pytest.raises(InvalidInput, match=r"the bounds file .* is not valid"):
        table_from(tmp_path / name)

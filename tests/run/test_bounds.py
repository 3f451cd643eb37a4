"""Public bounds as people give them: what is not understood is refused in one line that says what is."""

from __future__ import annotations

from typing import Any

import pytest

from cloister.core.domains import Ball, Box
from cloister.core.errors import InvalidInput
from cloister.run.bounds import domain_of

COLUMNS = ("age", "pressure")
BOX = Box((0.0, 0.0), (120.0, 250.0))
ENDS = {"lower": [0, 0], "upper": [120, 250]}
PAIRS = {"lower": [0, 10], "upper": [120, 250]}
"""Ends of all columns, or pairs of columns that are called so."""

ROUND = {"center": [0, 10], "radius": [120, 250]}
TURNED = Box((0.0, 120.0), (10.0, 250.0))
"""What the pairs of either mean."""


@pytest.mark.parametrize(
    "bounds", ["0:120,0:250", [(0, 120), (0, 250)], {"pressure": [0, 250], "age": (0, 120)}, ENDS, BOX]
)
def test_one_box_can_be_given_in_several_ways(bounds: Any) -> None:
    assert domain_of(bounds, COLUMNS) == BOX


def test_a_ball_can_be_given_in_two_ways_whatever_columns_are_called() -> None:
    for columns in (COLUMNS, ("center", "radius")):
        for bounds in ("ball:2", {"center": [0, 0], "radius": 2}):
            assert domain_of(bounds, columns) == Ball((0.0, 0.0), 2.0)


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ({"age": 120, "pressure": [0, 1]}, "120 in the bounds is one value where two or more belong"),
        ({"age": [0, 120, 3], "pressure": [0, 1]}, "is not a pair"),
        ({"age": [0, 120]}, "no bounds for column pressure: leave it out with --columns, or give one pair"),
        ({"age": [0, 120], "presure": [0, 1], "size": [0, 1]}, r"column pressure \(they have 'presure': is that meant"),
        ({"lower": [0, 0], "upper": [1]}, "2 lower ends and 1 upper ones"),
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
        domain_of(PAIRS, columns)
    assert "a list of pairs in the order of the columns" in str(told.value)
    assert domain_of([(0, 10), (120, 250)], columns) == domain_of("0:10,120:250", columns) == TURNED


@pytest.mark.parametrize(
    ("bounds", "columns", "box"),
    [
        (PAIRS | {"x": [0, 1]}, ("x", "upper", "lower"), Box((0.0, 120.0, 0.0), (1.0, 250.0, 10.0))),
        ({"lower": [0, 0, 0], "upper": [1, 2, 3]}, ("lower", "upper", "x"), Box((0.0, 0.0, 0.0), (1.0, 2.0, 3.0))),
        ({"lower": [0], "upper": [1]}, ("lower", "upper"), Box((0.0, 0.0), (1.0, 1.0))),
        ({"lower": [0, 10]}, ("lower",), Box((0.0,), (10.0,))),
        (PAIRS, ("lower",), Box((0.0,), (10.0,))),
        (ROUND, ("center", "radius"), TURNED),
        (ROUND, ("radius", "center"), Box((120.0, 0.0), (250.0, 10.0))),
    ],
)
def test_bounds_that_one_reading_fits_are_read_so_whatever_columns_are_called(
    bounds: Any, columns: tuple[str, ...], box: Box
) -> None:
    assert domain_of(bounds, columns) == box


@pytest.mark.parametrize(
    ("bounds", "columns", "says"),
    [
        (PAIRS, ("lower", "upper", "x"), "no bounds for column x"),
        (ROUND, ("center", "x"), "no bounds for column x"),
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

"""Public bounds as people give them: what is not understood is refused in one line that says what is."""

from __future__ import annotations

from typing import Any

import numpy as np
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


LOW, HIGH = [0, 50], [120, 250]
"""Ends of two columns that are two pairs as well."""


@pytest.mark.parametrize(
    "bounds",
    [
        (np.array(LOW), np.array(HIGH)),
        [np.array(LOW), np.array(HIGH)],
        np.array([LOW, HIGH]),
        (LOW, HIGH),
        (tuple(LOW), np.array(HIGH)),
    ],
)
def test_two_arrays_that_could_be_ends_or_pairs_are_refused(bounds: Any) -> None:
    """diffprivlib takes (lower ends, upper ends); reading them as pairs would clip every row in silence."""
    with pytest.raises(InvalidInput, match=r"could be one pair per column, or the lower ends of all 2 columns"):
        domain_of(bounds, COLUMNS)


def test_pairs_beyond_doubt_are_taken_in_every_form() -> None:
    box = Box((0.0, 120.0), (50.0, 250.0))
    for bounds in ((tuple(LOW), tuple(HIGH)), [LOW, HIGH], [tuple(LOW), HIGH], zip([0, 120], [50, 250], strict=True)):
        assert domain_of(bounds, COLUMNS) == box
    assert domain_of({"lower": np.array([0, 120]), "upper": np.array([50, 250])}, COLUMNS) == box
    assert domain_of(np.array([[0, 120], [0, 250]]), COLUMNS) == BOX  # the ends 0 and 0 would be no range
    assert domain_of((np.array([0, 120]), "unknown"), COLUMNS).lower[0] == 0  # type: ignore[union-attr]


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_ends_that_can_be_no_pairs_are_refused_with_what_to_give_instead(d: int) -> None:
    for bounds in (([0] * d, [1] * d), (np.zeros(d), np.ones(d)), np.array([np.zeros(d), np.ones(d)])):
        with pytest.raises(InvalidInput, match=rf"seem to be the lower ends of all {d} columns.*zip\(lower, upper\)"):
            domain_of(bounds, [f"x{j}" for j in range(d)])

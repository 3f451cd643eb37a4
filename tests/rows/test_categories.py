"""Categories: a row's features are its own, at most one is not 0, and all lie in the public box."""

from __future__ import annotations

import datetime
import decimal
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from cloister.core.errors import InvalidInput
from cloister.rows.categories import MISSING, UNLISTED, Category, canonical, categories_of

CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from("ABC"),
    st.lists(st.integers(), max_size=1),
    st.just(np.float64("nan")),
    st.just(np.int64(3)),
)
MOMENT = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
EQUAL_AND_OTHERWISE_WRITTEN: list[Any] = [
    *(decimal.Decimal("1.5"), decimal.Decimal("1.50"), 1.5, "1.5", "1.50", np.float32(1.5), Fraction(3, 2)),
    *(True, 1, 1.0, "1", decimal.Decimal(1), np.int64(1), np.True_, "true"),
    *(0.0, -0.0, "-0", 0, False, decimal.Decimal("-0")),
    *(MOMENT, MOMENT.astimezone(datetime.timezone(datetime.timedelta(hours=1))), pd.Timestamp(MOMENT)),
    *((1,), (True,), (1.0,), frozenset([1]), frozenset([True]), [1]),
    *(10**400, 10**5000, Fraction(10**400), Fraction(10**5000, 7), decimal.Decimal("1E+999999")),
    *(decimal.Decimal("NaN"), decimal.Decimal("sNaN"), decimal.Decimal("-Infinity"), None, math.nan, pd.NA, ""),
]
"""Cells that Python takes for one another, and that have other texts."""

SPELT = Category("c", tuple(dict.fromkeys(canonical(c) for c in EQUAL_AND_OTHERWISE_WRITTEN if canonical(c))))
(WARD,) = categories_of({"ward": ["A", "B", 3, True]})


def features(cells: list[Any]) -> np.ndarray:
    return np.column_stack(WARD.one_hot(WARD.codes(cells)))


@given(st.lists(CELLS, min_size=1, max_size=12), st.data())
def test_whatever_the_cells_are_a_row_is_in_the_box_by_itself_and_has_one_feature_at_most(
    cells: list[Any], data: Any
) -> None:
    """The adversary picks all cells, and then another one for one row: the others' features stay what they were, and
    hers moves within the box by no more than two ends of an edge."""
    found = features(cells)
    whole = ~np.isnan(found).any(axis=1)
    assert ((found[whole] == 0) | (found[whole] == 1)).all()
    assert (found[whole].sum(axis=1) <= 1).all()
    np.testing.assert_array_equal(found, np.vstack([features([cell]) for cell in cells]))
    i = data.draw(st.integers(0, len(cells) - 1))
    other = features([*cells[:i], data.draw(CELLS), *cells[i + 1 :]])
    np.testing.assert_array_equal(np.delete(other, i, axis=0), np.delete(found, i, axis=0))
    if not np.isnan(np.concatenate([found[i], other[i]])).any():
        assert np.linalg.norm(found[i] - other[i]) <= np.sqrt(2)


@given(st.lists(st.sampled_from(EQUAL_AND_OTHERWISE_WRITTEN), max_size=8), st.data())
def test_the_codes_of_rows_are_those_of_some_of_them_and_then_those_of_the_others(cells: list[Any], data: Any) -> None:
    """Had the first of two equal cells decided about the second, one row that is added would move all that follow."""
    cut = data.draw(st.integers(0, len(cells)))
    parts = [*SPELT.codes(cells[:cut]).tolist(), *SPELT.codes(cells[cut:]).tolist()]
    np.testing.assert_array_equal(SPELT.codes(cells), parts)


def test_one_row_does_not_decide_about_a_thousand_that_equal_it() -> None:
    first, others = decimal.Decimal("1.50"), [decimal.Decimal("1.5")] * 1000
    price = Category("price", ("1.5",))
    assert price.codes(others).sum() == 0
    assert price.codes([first, *others]).sum() == UNLISTED
    assert Category("c", ("1",)).codes([True, 1, 1.0, "1"]).tolist() == [UNLISTED, 0, 0, 0]


def test_a_number_beyond_all_floats_is_a_value_that_is_not_listed_unless_it_can_be_written() -> None:
    for cell in (10**309, -(10**400), 10**5000, Fraction(10**400), Fraction(10**5000, 3), decimal.Decimal("1E+400")):
        assert WARD.codes(["A", cell]).tolist() == [0, UNLISTED]
    (large,) = categories_of({"c": [10**400]})
    assert large.codes([10**400, 10**400 + 1, "1" + "0" * 400]).tolist() == [0, UNLISTED, 0]
    with pytest.raises(InvalidInput, match="number of more than 640 digits"):
        categories_of({"c": [10**5000]})


@pytest.mark.parametrize("value", ["", decimal.Decimal("NaN"), decimal.Decimal("sNaN"), decimal.Decimal(3), None, 1.5])
def test_what_no_cell_can_be_is_no_value(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"a value of category 'ward' is .*: give texts, whole numbers or booleans"):
        categories_of({"ward": ["A", value]})


def test_two_spellings_of_one_column_are_not_two_categories() -> None:
    with pytest.raises(InvalidInput, match="category '1' is given more than once"):
        categories_of({1: ["A"], "1": ["B"]})


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        ((3, 3.0, "3", "3.0", "3.", np.int8(3), np.float32(3), decimal.Decimal("3.00")), "3"),
        ((0, "0", -0.0, "-0.0", "0.0", decimal.Decimal("0E-10"), decimal.Decimal("-0.0")), "0"),
        ((True, "True", "true", "TRUE", np.bool_(True)), "true"),
        (("03",), "03"),
        (("1e3",), "1e3"),
        ((10**30, "1" + "0" * 30), "1" + "0" * 30),
    ],
)
def test_values_are_equal_as_people_mean_them(cells: tuple[Any, ...], text: str) -> None:
    assert {canonical(cell) for cell in cells} == {text}


def test_a_missing_cell_is_no_value_and_one_that_is_not_listed_is_none_of_them() -> None:
    nothing = Category("c", ("None", "nan", "x"))
    for cell in (None, float("nan"), np.float64("inf"), *(decimal.Decimal(t) for t in ("NaN", "sNaN", "Infinity"))):
        assert np.isnan(nothing.codes([cell])).all(), cell
    assert nothing.codes(["None", "nan", "y", "", ["x"], datetime.date.min]).tolist() == [0, 1, *[UNLISTED] * 4]
    assert np.isnan(nothing.one_hot(np.array([MISSING]))).all()

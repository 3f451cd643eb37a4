"""Categories: a row's features are its own, at most one is not 0, and all lie in the public box."""

from __future__ import annotations

import datetime
import decimal
from fractions import Fraction
from typing import Any

import numpy as np
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

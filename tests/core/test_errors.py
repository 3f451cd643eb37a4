"""Errors say what was given, what was expected and what to do."""

from __future__ import annotations

import re

import pytest

from cloister.core import errors
from cloister.core.errors import BudgetExceeded, CloisterError, InvalidInput, MissingExtra, UnknownName


def test_all_errors_have_one_base() -> None:
    found = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    kinds = [kind for kind in found if not issubclass(kind, Warning)]
    assert len(kinds) == 8
    assert all(issubclass(kind, CloisterError) for kind in kinds)
    assert issubclass(UnknownName, InvalidInput)
    assert not issubclass(BudgetExceeded, InvalidInput)


@pytest.mark.parametrize(
    ("name", "known", "told"),
    [
        ("epsilo", ["epsilon", "delta"], "no option 'epsilo': did you mean epsilon?"),
        ("z", ["epsilon", "delta"], "no option 'z': choose from: delta, epsilon"),
        ("count", ["counts", "county"], "no option 'count': did you mean county or counts?"),
        ("x", [], "no option 'x': choose from: none"),
    ],
)
def test_an_unknown_name_offers_near_names_or_all(name: str, known: list[str], told: str) -> None:
    error = UnknownName("option", name, iter(known))
    assert str(error) in {told, told.replace("county or counts", "counts or county")}
    assert (error.kind, error.name) == ("option", name)
    assert str(UnknownName("option", name, known, "(of 'here')")) == f"{error} (of 'here')"


def test_a_missing_library_says_how_to_install_it() -> None:
    error = MissingExtra("pyarrow", "files", "reading Parquet")
    assert re.fullmatch(r"reading Parquet needs pyarrow: pip install '.*\[files\]'", str(error))
    assert (error.library, error.extra) == ("pyarrow", "files")


def test_an_exceeded_budget_says_what_was_asked_and_what_is_left() -> None:
    error = BudgetExceeded("epsilon 2", "epsilon 1", "the data set 'a'")
    assert str(error) == "the data set 'a' has epsilon 1 left, epsilon 2 was asked: nothing was read or spent"
    assert (error.asked, error.left) == ("epsilon 2", "epsilon 1")

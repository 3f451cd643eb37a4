"""Which columns are used: by names and declared types, and whatever else is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from cloister.core.errors import InvalidInput, UnknownName
from cloister.rows.columns import CATEGORIES, TableColumn, not_numbers, select
from cloister.rows.options import Reading
from cloister.rows.selection import Selection, table_columns

TABLE = [
    TableColumn("mrn", "numbers"),
    TableColumn("age", "numbers"),
    TableColumn("smoker", "booleans"),
    TableColumn("ward", "text"),
    TableColumn("visit", "dates"),
    TableColumn("glucose", "numbers"),
    TableColumn("__index_level_0__", "numbers", index=True),
]


def chosen(columns: Any = None, **more: Any) -> Selection:
    return select(TABLE, Reading(columns=columns, **more))


def test_a_table_that_names_its_columns_is_asked_which_and_says_what_to_type() -> None:
    with pytest.raises(InvalidInput) as caught:
        chosen()
    assert str(caught.value) == (
        "which columns? There are mrn (id-like), age (numbers), smoker (booleans), ward (text), visit (a date), "
        "glucose (numbers), __index_level_0__ (pandas' index). Give --columns age,smoker,glucose (columns=), "
        "a pattern such as --columns '*' for all numbers that are neither id-like nor dates, or bounds by name (a "
        f".toml or .json file, or a mapping). {CATEGORIES}"
    )


def test_names_are_taken_in_their_order_and_the_others_are_told_with_the_reason() -> None:
    found = chosen(["glucose", "age"])
    assert (found.used, found.features) == (("glucose", "age"), ("glucose", "age"))
    assert found.words == (
        "columns used: glucose, age; left out: mrn (not listed), smoker (not listed), ward (text), visit (a date), "
        "__index_level_0__ (pandas' index)"
    )


def test_a_pattern_takes_numbers_and_no_identifier_date_text_or_index() -> None:
    assert chosen("*").used == ("age", "smoker", "glucose")
    assert dict(chosen("*").left_out) == {
        "mrn": "id-like",
        "ward": "text",
        "visit": "a date",
        "__index_level_0__": "pandas' index",
    }
    assert chosen(["glucose", "*"]).used == ("glucose", "age", "smoker")
    assert chosen(["mrn", "__index_level_0__"]).used == ("mrn", "__index_level_0__")
    assert chosen("?ge").used == ("age",)
    bracketed = [TableColumn(name, "numbers") for name in ("x [/m2]", "x?", "xs")]
    assert select(bracketed, Reading(columns=["x [/m2]", "x?"])).used == ("x [/m2]", "x?")
    with pytest.raises(InvalidInput, match=r"no column of numbers matches 'w\*'"):
        chosen("w*")


def test_bounds_and_categories_name_columns_where_nothing_else_does() -> None:
    found = chosen(bounded=["glucose", "age"], categories={"ward": ["A", "B"]})
    assert found.features == ("age", "ward=A", "ward=B", "glucose")
    assert found.numbers == ("age", "glucose")
    assert found.one_hot == (0, 2, 2, 0)
    assert chosen(["age"], categories={"ward": ["A"]}).features == ("age", "ward=A")
    assert chosen(["ward", "age"], categories={"ward": ["A"]}).features == ("ward=A", "age")
    assert chosen(["age"], bounded=["glucose", "nothing"]).used == ("age",)
    with pytest.raises(UnknownName, match="no column 'glucos': did you mean glucose"):
        chosen(bounded=["glucos"])


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("x", {"columns": ["x"]}),
        ("x", {"columns": "*"}),
        ("x", {"bounded": ["x"]}),
        ("x", {}),
        ("c", {"columns": ["y"], "categories": {"c": ["A"]}}),
        ("c", {"columns": ["y"], "user_column": "c"}),
    ],
)
def test_a_column_that_is_not_the_only_one_of_its_name_is_refused(name: str, asked: Any) -> None:
    table = [TableColumn("y", "numbers"), *2 * [TableColumn("x", "numbers"), TableColumn("c", "text")]]
    with pytest.raises(InvalidInput, match=f"more than one column is called '{name}': rename them"):
        select(table, Reading(**asked), everything=not asked)
    assert select(table, Reading(columns=["y"])).used == ("y",)


def test_bounds_that_name_no_column_do_not_mean_all() -> None:
    table = [TableColumn("x", "numbers"), TableColumn("y", "numbers")]
    for everything in (False, True):
        with pytest.raises(InvalidInput, match="which columns"):
            select(table, Reading(bounded=[]), everything)
    assert select(table, Reading(), everything=True).used == ("x", "y")


def test_the_column_of_users_is_none_of_them() -> None:
    assert "names the users" in chosen("*", user_column="ward").words
    with pytest.raises(InvalidInput, match="'age' names users and is not clustered by"):
        chosen(["age"], user_column="age")


@pytest.mark.parametrize("kind", ["text", "dates", "untyped", "other"])
def test_a_pattern_never_passes_over_a_type_that_cells_have_made(kind: Any) -> None:
    """In a data frame one other row would make it a column of numbers: it is refused, whatever the pattern."""
    table = [TableColumn("x", "numbers", declared=False), TableColumn("y", kind, declared=False)]
    with pytest.raises(InvalidInput, match="column 'y' does not hold numbers"):
        select(table, Reading(columns="*"), everything=True)
    with pytest.raises(InvalidInput, match="column 'y' does not hold numbers"):
        select(table, Reading(), everything=True)
    assert select(table, Reading(columns=["x"]), everything=True).used == ("x",)


@pytest.mark.parametrize(
    ("why", "names"),
    [
        ("id-like", "id ID Id patient_id patientId PatientID id_number mrn SSN uuid user-guid primary_key key index"),
        ("id-like", "name email home_phone patientNumber case_no insurance_nr passport"),
        ("a date", "date visit_date date_of_birth dob createdAt created_at timestamp event_timestamp time visit_time"),
        ("pandas' index", "__index_level_0__ Unnamed:0"),
        ("", "age glucose body_mass_index acid fluid paid time_in_hospital update valid keyboard x1 0 price"),
        ("", "number visits_number no room_no ward_name number_of_patients"),
    ],
)
def test_identifiers_and_dates_are_known_by_their_names(why: str, names: str) -> None:
    for name in names.split():
        assert TableColumn(name, "numbers").barred == why, name
    assert TableColumn("", "cells").barred == "pandas' index"


def test_features_lead_back_to_the_columns_of_the_table() -> None:
    found = chosen(["age", "ward", "glucose"], categories={"ward": ["A", "B"]})
    assert table_columns(found.features, found.recorded()) == ["age", "ward", "glucose"]
    assert table_columns(["a=b", "c"], {}) == ["a=b", "c"]


def test_no_column_of_text_is_said_to_be_a_category_since_its_values_may_tell_people_apart() -> None:
    assert not_numbers("pseudonym").endswith(f"(columns=). {CATEGORIES}")
    with pytest.raises(InvalidInput, match=r"There are age \(numbers\), pseudonym \(text\)\. Give") as caught:
        select([TableColumn("age", "numbers"), TableColumn("pseudonym", "text")], Reading())
    assert "pseudonym" not in str(caught.value).partition("Give")[2]


def test_what_is_described_only_comes_last_and_is_not_clustered_by() -> None:
    found = chosen(["age"], categories={"ward": ["A", "B"]}, described=["ward", "smoker", "age"])
    assert found.used == ("age", "ward", "smoker")
    assert found.features == ("age", "ward=A", "ward=B", "smoker")
    assert (found.described, found.beside) == (("ward", "smoker", "age"), 2)
    assert found.clustered.features == ("age",)
    assert [found.place(name) for name in found.used] == [0, 1, 3]
    assert found.words.startswith("columns used: age; described only: ward (category), smoker; left out:")
    assert chosen(categories={"ward": ["A"]}, bounded=["age"], described=["ward", "glucose"]).clustered.used == (
        "age",
        "ward",
    )


@pytest.mark.parametrize(
    ("described", "users", "why"),
    [
        (["mrn"], None, "'mrn' tells people apart by its name"),
        (["visit"], None, "'visit' does not hold numbers but is a date: .* leave it out of --describe"),
        (["glucose"], "glucose", "'glucose' names users, and describes nobody"),
    ],
)
def test_columns_that_describe_no_group_are_refused(described: list[str], users: str | None, why: str) -> None:
    with pytest.raises((InvalidInput, UnknownName), match=why):
        chosen(["age"], user_column=users, described=described)

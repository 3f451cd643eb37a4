"""Which rows of a user are kept: by her own rows alone, whoever else is there, wherever they are read."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.errors import InvalidInput, Refused
from cloister.core.randomness import PublicRng
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.files import Files
from cloister.rows import users
from cloister.rows.files import sources
from cloister.rows.options import Reading
from cloister.rows.users import Owners
from cloister.rows.workers.engine import Engine
from tests.rows.stored import stored
from tests.rows.workers.engine_rows import NAMES, answers

KEY, OTHER = PublicRng.from_seed(1), PublicRng.from_seed(2)


def dealt(n: int, of: int, seed: int = 0) -> np.ndarray:
    """Names (n,) of users with one row to many."""
    g = np.random.default_rng(seed)
    return (of * g.random(n) ** 2).astype(np.int64)


def kept(names: Any, most: int, key: PublicRng = KEY) -> np.ndarray:
    return Owners.read(list(names)).kept(most, key)


# the choice


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 6), max_size=40), st.integers(1, 4), st.integers(0, 2**32))
def test_taking_a_user_away_changes_which_rows_of_no_other_are_kept(names: list[int], most: int, seed: int) -> None:
    """The adversary removes any one user, wherever her rows are: all others keep the very rows that they kept, so that
    what is kept of neighbours differs by at most ``most`` rows."""
    key, every = PublicRng.from_seed(seed), np.array(names, np.int64)
    chosen = kept(every, most, key)
    for gone in set(names):
        rest = every != gone
        assert (kept(every[rest], most, key) == chosen[rest]).all()
        assert chosen[~rest].sum() <= most


@pytest.mark.parametrize("stretch", [users.STRETCH, 64])
def test_the_choice_is_that_of_words_written_down_one_by_one(stretch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a row's user, its place among hers, and the key alone: of each user the rows of the least words. In one step,
    and in many."""
    monkeypatch.setattr(users, "STRETCH", stretch)
    names = dealt(300, 15).tolist()
    for most, key in ((1, KEY), (3, KEY), (3, OTHER), (10, OTHER)):
        places, words = Counter[int](), defaultdict[int, list[tuple[int, int]]](list)
        for row, name in enumerate(names):
            head = Owners.read([name]).names[0, 0]
            word = int(key.of_users(np.array([head], np.uint64) + np.uint64(places[name]))[0])
            words[name].append((word, row))
            places[name] += 1
        expected = {row for found in words.values() for _, row in sorted(found)[:most]}
        assert set(np.flatnonzero(kept(names, most, key)).tolist()) == expected
        assert any(n > most for n in places.values())


# names


def test_a_number_and_its_digits_are_one_name_and_numbers_of_any_size_keep_theirs_apart() -> None:
    spelt = Owners.read([7, "7", "7.0", 7.0, np.int32(7), Decimal(7), 2**53, 2**53 + 1, -1, 2**80, "007", "x" * 100])
    assert (spelt.of[:6] == spelt.of[0]).all()
    assert len(spelt.names) == len(np.unique(spelt.of)) == 7


@pytest.mark.parametrize(
    "name", [None, "", math.nan, Decimal("nan"), Decimal("snan"), pd.NA, pd.NaT, np.float64("nan")]
)
def test_a_row_that_names_nobody_does_not_count(name: Any) -> None:
    assert kept([1, name, 1, name], 5).tolist() == [True, False, True, False]


@pytest.mark.parametrize(
    "name",
    [
        True,
        1.5,
        math.inf,
        2.0**54,
        Decimal("inf"),
        b"7",
        [7],
        Decimal("0.5"),
        pytest.param(10**5000, id="huge"),
        Decimal("1E+999999"),
        np.array([7, 8]),
    ],
)
def test_what_may_name_two_people_is_refused(name: Any) -> None:
    with pytest.raises(InvalidInput, match="neither texts nor whole numbers"):
        Owners.read([1, name])


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_short_floats_that_may_have_met_are_refused(kind: Any) -> None:
    """2^24 + 1 is no float of 32 bits: two people had the same name before anybody read it."""
    last = 2.0 ** (np.finfo(kind).nmant + 1) - 1
    assert len(Owners.read(np.array([last, last - 1, math.nan], kind)).names) == 2
    with pytest.raises(InvalidInput, match="of 32 bits below"):
        Owners.read(np.array([last, last + 1], kind))


@pytest.mark.parametrize("made", [pl.Series, pa.array, lambda ids: pa.chunked_array([ids]), pd.array, pd.Series])
def test_short_floats_of_any_library_are_known_for_what_they_are(made: Any) -> None:
    """Their Python numbers have 64 bits, and would be taken for names that nobody shares."""
    last = 2.0**24 - 1
    met, apart = (made(np.array([1.0, a, b], np.float32)) for a, b in ((last + 1, last + 2), (last - 1, last)))
    with pytest.raises(InvalidInput, match="of 32 bits below"):
        Arrays(np.zeros((3, 1)), Reading(users=met)).check()
    Arrays(np.zeros((3, 1)), Reading(users=apart)).check()


@pytest.mark.parametrize("words", [[(0, 0), (0, 1), (1, 0)], [(5, 2**64 - 1), (5, 2**63), (4, 2**63)]])
def test_names_that_differ_in_one_word_stay_apart(words: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two words of the same name are the same user's, wherever she is read; with one in common two are two."""
    monkeypatch.setattr(users, "_words", lambda names: np.array([words[int(n[1:])] for n in names], np.uint64))
    rows = ["u0", "u1", "u2", "u0", "u1", "u2", "u0"]
    assert kept(rows, 2).sum() == 6
    parts = Owners.joined([Owners.read(rows[:3]), Owners.read(rows[3:])])
    assert (parts.kept(2, KEY) == kept(rows, 2)).all()


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [*((kind, [-7, 0, 99]) for kind in (np.int8, np.int64, np.float32)), (np.uint64, [2**64 - 1, 5, 2**63 - 1])],
)
def test_an_array_of_numbers_names_whom_a_list_of_them_does(kind: Any, numbers: list[int]) -> None:
    array, texts = Owners.read(np.array(numbers, kind)), Owners.read([str(n) for n in numbers])
    assert array.names[array.of].tolist() == texts.names[texts.of].tolist()


# where rows are


def frame(n: int = 900) -> pd.DataFrame:
    g = np.random.default_rng(5)
    found = pd.DataFrame(g.uniform(-1.1, 1.1, (n, 2)), columns=["x", "y"])
    found.insert(1, "who", dealt(n, 60))
    found.loc[g.random(n) < 0.05, "x"] = np.nan
    return found


def expected(rows: pd.DataFrame, most: int) -> list[list[float]]:
    """The answers of a table that has the kept rows only; rows with a missing cell are no user's."""
    whole = rows.dropna()
    return answers(Arrays(whole[["x", "y"]].to_numpy()[kept(whole["who"].tolist(), most)]))


def written(rows: pd.DataFrame, folder: Path, *endings: str) -> list[Path]:
    """The rows, in turn in files of these kinds."""
    shares = np.array_split(np.arange(len(rows)), len(endings))
    return [
        stored(pa.Table.from_pandas(rows.iloc[some], preserve_index=False), folder / f"{i}.{ending}", 40)
        for i, (ending, some) in enumerate(zip(endings, shares, strict=True))
    ]


TABLES: list[Callable[[pd.DataFrame], Any]] = [
    lambda rows: Arrays(rows, Reading(missing="drop", user_column="who")),
    lambda rows: Arrays(pa.Table.from_pandas(rows), Reading(missing="drop", user_column="who")),
    lambda rows: Arrays(rows.to_numpy(), Reading(missing="drop", user_column="1")),
    lambda rows: Arrays(rows[["x", "y"]].to_numpy(), Reading(missing="drop", users=rows["who"])),
    lambda rows: Arrays(rows[["x", "y"]], Reading(missing="drop", users=rows["who"].astype(str).to_numpy())),
    lambda rows: Arrays(rows.assign(who=rows["who"].astype("category")), Reading(missing="drop", user_column="who")),
]


def keeps_what_users_may(population: Any, rows: pd.DataFrame) -> None:
    for most in (3, 1):  # before a check, and after it
        population.keep(most, KEY)
        assert answers(population) == answers(population) == expected(rows, most)
        population.check()
        assert population.people == len(rows)


@pytest.mark.parametrize("make", TABLES)
def test_rows_in_memory_keep_what_their_users_may(make: Callable[[pd.DataFrame], Any]) -> None:
    keeps_what_users_may(make(frame()), frame())


KINDS = [("parquet",), ("feather",), ("csv",), ("npy", "npz"), ("npz", "npy"), ("csv", "parquet", "feather", "parquet")]


@pytest.mark.parametrize(
    ("kinds", "engine"),
    [
        *((kinds, "serial") for kinds in KINDS),
        *(pytest.param(KINDS[-1], engine, marks=pytest.mark.thorough) for engine in NAMES),
    ],
)
def test_rows_in_files_keep_what_their_users_may(
    kinds: tuple[str, ...], engine: str, shared: dict[str, Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a user are in many row groups and files, and parts end anywhere."""
    monkeypatch.setattr(sources, "STRETCH", 100)
    rows, who = frame(), "1" if "npy" in kinds else "who"
    paths = written(rows, tmp_path, *kinds)
    keeps_what_users_may(
        Files(paths, Reading(columns="*", missing="drop", user_column=who), engine=shared[engine]), rows
    )


def test_texts_name_users_in_files(tmp_path: Path) -> None:
    """Also those that look like numbers in some files: 007 is not 7."""
    rows = frame().assign(who=lambda r: "0" + r["who"].astype(str))
    for kind in ("parquet", "csv", "feather"):
        keeps_what_users_may(
            Files(written(rows, tmp_path, kind), Reading(columns="*", missing="drop", user_column="who")), rows
        )


def populations(rows: pd.DataFrame, folder: Path, **more: Any) -> Iterator[Any]:
    yield Arrays(rows, Reading(**more))
    for kind in ("parquet", "csv"):
        yield Files(written(rows, folder, kind), Reading(columns="*", **more))


def test_rows_of_users_are_not_read_before_somebody_says_how_many(tmp_path: Path) -> None:
    for population in populations(frame(), tmp_path, missing="drop", user_column="who"):
        population.check()
        with pytest.raises(Refused, match=r"before gather\(\): rows have a user column"):
            answers(population)


def test_a_row_without_a_user_is_refused_or_dropped_as_one_with_a_missing_cell(tmp_path: Path) -> None:
    for population in populations(frame().assign(who=[None] * 900), tmp_path, missing="drop", user_column="who"):
        with pytest.raises(InvalidInput, match="there are no rows to use"):
            population.check()
    rows = frame().dropna().astype({"who": "Int64"})
    rows.iloc[5, 1] = pd.NA
    for population in populations(rows, tmp_path, user_column="who"):
        with pytest.raises(InvalidInput, match=r"some cells are missing or infinite.*--missing drop"):
            population.check()
    for population in populations(rows, tmp_path, missing="drop", user_column="who"):
        keeps_what_users_may(population, rows)


def test_every_file_has_the_user_column(tmp_path: Path) -> None:
    paths = [*written(frame(), tmp_path, "parquet"), *written(frame()[["x", "y"]], tmp_path, "feather")]
    with pytest.raises(InvalidInput, match="does not go with the files before it: no user column 'who'"):
        Files(paths, Reading(columns="*", user_column="who"))


@pytest.mark.parametrize("names", [[1], list(range(901))])
def test_there_is_one_name_per_row(names: list[int]) -> None:
    population = Arrays(frame()[["x", "y"]], Reading(missing="drop", users=names))
    with pytest.raises(InvalidInput, match="not one user per row"):
        population.check()


def test_cells_that_name_nobody_for_certain_are_refused_and_not_quoted(tmp_path: Path) -> None:
    rows = frame().dropna()
    short = np.float32(2.0**24) + 2 * np.arange(len(rows), dtype=np.float32)
    for who, said in ((rows["x"], "neither texts nor whole numbers"), (short, "of 32 bits below")):
        some = rows.assign(who=who)
        for population in (
            Arrays(some, Reading(user_column="who")),
            Files(written(some, tmp_path, "parquet"), Reading(columns="*", user_column="who")),
        ):
            with pytest.raises(InvalidInput, match=said) as error:
                population.check()
            assert str(some["who"].iloc[0]) not in str(error.value)

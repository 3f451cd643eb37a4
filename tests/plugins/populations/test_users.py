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
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.errors import InvalidInput, Refused, UnknownName
from cloister.core.randomness import PublicRng
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.files import Files
from cloister.rows import users
from cloister.rows.files import sources
from cloister.rows.users import Owners
from cloister.rows.workers.engine import Engine
from tests.rows.workers.engine_rows import NAMES, answers

KEY, OTHER = PublicRng.from_seed(1), PublicRng.from_seed(2)


def dealt(n: int, of: int, seed: int = 0) -> np.ndarray:
    """Names (n,) of users with one row to many."""
    g = np.random.default_rng(seed)
    return (of * g.random(n) ** 2).astype(np.int64)


def kept(names: Any, most: int, key: PublicRng = KEY) -> np.ndarray:
    return Owners.read(list(names)).kept(most, key)


def by_user(names: Any, chosen: np.ndarray) -> dict[Any, list[int]]:
    """The places that are kept, of every user: 0 for the first row, and so on."""
    seen, found = Counter[Any](), defaultdict[Any, list[int]](list)
    for name, keep in zip(names, chosen, strict=True):
        if keep:
            found[name].append(seen[name])
        seen[name] += 1
    return dict(found)


# the choice


@pytest.mark.parametrize("most", [1, 3, 10])
def test_every_user_keeps_so_many_rows_or_all(most: int) -> None:
    names = dealt(5000, 300)
    rows, left = Counter(names.tolist()), Counter(names[kept(names, most)].tolist())
    assert left == {name: min(n, most) for name, n in rows.items()}
    assert any(n > most for n in rows.values())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 6), max_size=60), st.integers(1, 4), st.integers(0, 2**32))
def test_taking_a_user_away_changes_which_rows_of_no_other_are_kept(names: list[int], most: int, seed: int) -> None:
    """The adversary removes any one user, wherever her rows are: all others keep the very rows that they kept, so that
    what is kept of neighbours differs by at most ``most`` rows."""
    key, every = PublicRng.from_seed(seed), np.array(names, np.int64)
    chosen = kept(every, most, key)
    for gone in set(names):
        rest = every != gone
        assert (kept(every[rest], most, key) == chosen[rest]).all()
        assert chosen[~rest].sum() <= most


def test_the_order_of_users_among_each_other_tells_nothing() -> None:
    """Rows in an order of their own, each user's as they were: sorted by user, and dealt out anew."""
    names = dealt(3000, 200)
    first = by_user(names, kept(names, 2))
    ordered = np.sort(names)
    shuffled = np.random.default_rng(1).permutation(names)
    assert by_user(ordered, kept(ordered, 2)) == by_user(shuffled, kept(shuffled, 2)) == first


def test_the_values_of_rows_tell_nothing() -> None:
    """Other cells, the same places: what is read of each user is the cells at those places."""
    names, g = dealt(400, 40), np.random.default_rng(0)
    rows = [g.uniform(-1, 1, (400, 2)) for _ in range(2)]
    found = []
    for some in rows:
        population = Arrays(some, users=names)
        population.keep(2, KEY)
        assert answers(population) == answers(Arrays(some[kept(names, 2)]))
        found.append(answers(population))
    assert found[0] != found[1]


def test_every_place_is_kept_as_often_whoever_is_asked() -> None:
    """Over keys: 4 of 10 places, 4,000 users. Chi-square with 9 degrees of freedom passes 60 once in 10^9."""
    names = np.repeat(np.arange(4000), 10)
    counts = kept(names, 4).reshape(4000, 10).sum(axis=0)
    assert ((counts - 1600) ** 2 / (1600 * 0.6)).sum() * 9 / 10 < 60
    places = {tuple(p) for p in by_user(names, kept(names, 4)).values()}
    assert len(places) == math.comb(10, 4), "users do not all keep the same places"


def test_another_key_keeps_other_rows_and_the_same_key_the_same() -> None:
    names = dealt(2000, 50)
    assert (kept(names, 3) == kept(names, 3)).all()
    assert (kept(names, 3) != kept(names, 3, OTHER)).any()


def test_the_choice_is_that_of_words_written_down_one_by_one() -> None:
    names = dealt(1500, 60).tolist()
    places, words = Counter[int](), defaultdict[int, list[tuple[int, int]]](list)
    for row, name in enumerate(names):
        head = Owners.read([name]).names[0, 0]
        word = int(KEY.of_users(np.array([head], np.uint64) + np.uint64(places[name]))[0])
        words[name].append((word, row))
        places[name] += 1
    expected = {row for found in words.values() for _, row in sorted(found)[:3]}
    assert set(np.flatnonzero(kept(names, 3)).tolist()) == expected


def test_a_choice_in_many_steps_is_that_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    names = dealt(3000, 80)
    at_once = kept(names, 3)
    monkeypatch.setattr(users, "STRETCH", 64)
    assert (kept(names, 3) == at_once).all()


# names


@pytest.mark.parametrize(
    "names",
    [
        ["7", "8", "7", "7"],
        ["7.0", "8.0", "7", "7.0"],
        [7.0, 8.0, 7.0, 7.0],
        [np.int32(7), 8, 7, 7.0],
        [Decimal(7), 8, "7", 7],
        pa.array([7, 8, 7, 7]).to_pylist(),
    ],
)
def test_a_number_and_its_digits_are_one_name(names: list[Any]) -> None:
    read, ints = Owners.read(names), Owners.read([7, 8, 7, 7])
    assert (read.names[read.of] == ints.names[ints.of]).all()


def test_numbers_of_any_size_keep_their_names_apart() -> None:
    assert (
        len(Owners.read([2**53, 2**53 + 1, -1, 2**64 - 1, 2**80, Decimal(2**80 + 1), "007", 7, "x" * 100]).names) == 9
    )


@given(
    st.lists(st.sampled_from([7, "7", "7.0", 7.0, Decimal(7), Decimal("7.0"), 0.0, -0.0, "-0.0", None, ""]), max_size=8)
)
def test_who_a_row_is_of_is_said_by_its_own_cell(names: list[Any]) -> None:
    """Whatever equal cells were read before it."""
    together = Owners.read(names)
    words = np.vstack([together.names, np.zeros((1, 2), np.uint64)])[together.of]
    alone = [Owners.read([name]).names.tolist() or [[0, 0]] for name in names]
    assert words.tolist() == [found for (found,) in alone]


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
        object(),
        Decimal("0.5"),
        pytest.param(10**5000, id="huge"),
        Decimal("1E+999999"),
        np.array([7, 8]),
    ],
)
def test_what_may_name_two_people_is_refused(name: Any) -> None:
    with pytest.raises(InvalidInput, match="a user is named by a whole number"):
        Owners.read([1, name])


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_short_floats_that_may_have_met_are_refused(kind: Any) -> None:
    """2^24 + 1 is no float of 32 bits: two people had the same name before anybody read it."""
    last = 2.0 ** (np.finfo(kind).nmant + 1)
    assert len(Owners.read(np.array([last, last - 1, math.nan], kind)).names) == 2
    with pytest.raises(InvalidInput, match="of 32 bits up to"):
        Owners.read(np.array([last, last + 2], kind))


@pytest.mark.parametrize("words", [[(0, 0), (0, 1), (1, 0)], [(5, 2**64 - 1), (5, 2**63), (4, 2**63)]])
def test_names_that_differ_in_one_word_stay_apart(words: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two words of the same name are the same user's, wherever she is read; with one in common two are two."""
    monkeypatch.setattr(users, "_words", lambda names: np.array([words[int(n[1:])] for n in names], np.uint64))
    rows = ["u0", "u1", "u2", "u0", "u1", "u2", "u0"]
    assert kept(rows, 2).sum() == 6
    parts = Owners.joined([Owners.read(rows[:3]), Owners.read(rows[3:])])
    assert (parts.kept(2, KEY) == kept(rows, 2)).all()


@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.int64, np.float32, np.float64])
def test_an_array_of_numbers_names_whom_a_list_of_them_does(kind: Any) -> None:
    g = np.random.default_rng(0)
    numbers = g.integers(0 if kind == np.uint64 else -100, 100, 500).astype(kind)
    array, texts = Owners.read(numbers), Owners.read([str(int(n)) for n in numbers])
    assert (array.kept(2, KEY) == texts.kept(2, KEY)).all()
    large = np.array([2**64 - 1, 5, 2**63 - 1], np.uint64)
    assert {tuple(w) for w in Owners.read(large).names} == {tuple(w) for w in Owners.read(large.tolist()).names}


# where rows are


def frame(n: int = 900) -> pd.DataFrame:
    g = np.random.default_rng(5)
    found = pd.DataFrame(g.uniform(-1.1, 1.1, (n, 2)), columns=["x", "y"])
    found.insert(1, "who", dealt(n, 60))
    found.loc[g.random(n) < 0.05, "x"] = np.nan
    return found


def expected(rows: pd.DataFrame, most: int = 3) -> list[list[float]]:
    """The answers of a table that has the kept rows only; rows with a missing cell are no user's."""
    whole = rows.dropna()
    return answers(Arrays(whole[["x", "y"]].to_numpy()[kept(whole["who"].tolist(), most)]))


def written(rows: pd.DataFrame, folder: Path, *endings: str) -> list[Path]:
    """The rows, in turn in files of these kinds."""
    paths = []
    for i, (ending, some) in enumerate(zip(endings, np.array_split(np.arange(len(rows)), len(endings)), strict=True)):
        path, part = folder / f"{i}.{ending}", rows.iloc[some]
        table = pa.Table.from_pandas(part, preserve_index=False)
        if ending == "parquet":
            pyarrow.parquet.write_table(table, path, row_group_size=40)
        elif ending == "feather":
            pyarrow.feather.write_feather(table, str(path))
        else:
            part.to_csv(path, index=False)
        paths.append(path)
    return paths


TABLES: list[Callable[[pd.DataFrame], Any]] = [
    lambda rows: Arrays(rows, missing="drop", users="who"),
    lambda rows: Arrays(pl.from_pandas(rows), missing="drop", users="who"),
    lambda rows: Arrays(pa.Table.from_pandas(rows), missing="drop", users="who"),
    lambda rows: Arrays(rows.to_numpy(), missing="drop", users="1"),
    lambda rows: Arrays(rows[["x", "y"]].to_numpy(), missing="drop", users=rows["who"]),
    lambda rows: Arrays(rows[["x", "y"]], missing="drop", users=rows["who"].tolist()),
    lambda rows: Arrays(rows[["x", "y"]], missing="drop", users=rows["who"].astype(str).to_numpy()),
    lambda rows: Arrays(rows.assign(who=rows["who"].astype("category")), missing="drop", users="who"),
]


@pytest.mark.parametrize("make", TABLES)
@pytest.mark.parametrize("checked", [True, False])
def test_rows_in_memory_keep_what_their_users_may(make: Callable[[pd.DataFrame], Any], checked: bool) -> None:
    rows = frame()
    population = make(rows)
    if checked:
        population.check()
        assert population.people == len(rows.dropna())
    population.keep(3, KEY)
    assert answers(population) == answers(population) == expected(rows)
    population.keep(1, KEY)
    assert answers(population) == expected(rows, 1)


@pytest.mark.parametrize("kinds", [("parquet",), ("feather",), ("csv",), ("csv", "parquet", "feather", "parquet")])
@pytest.mark.parametrize("checked", [True, False])
def test_rows_in_files_keep_what_their_users_may(
    kinds: tuple[str, ...], checked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a user are in many row groups and files, and parts end anywhere."""
    monkeypatch.setattr(sources, "STRETCH", 100)
    rows = frame()
    population = Files(written(rows, tmp_path, *kinds), "*", missing="drop", users="who")
    if checked:
        population.check()
    population.keep(3, KEY)
    assert answers(population) == answers(population) == expected(rows)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_rows_in_arrays_of_files_keep_what_their_users_may(kind: str, order: Any, tmp_path: Path) -> None:
    rows = frame()
    array, path = np.asarray(rows.to_numpy(), order=order), tmp_path / f"rows.{kind}"
    if kind == "npy":
        np.save(path, array)
    else:
        np.savez(path, X=array)
    population = Files(path, "*", missing="drop", users="1")
    population.keep(3, KEY)
    assert answers(population) == expected(rows)


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_every_engine_keeps_the_same_rows(
    name: str, shared: dict[str, Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "STRETCH", 100)
    rows = frame()
    paths = written(rows, tmp_path, "parquet", "csv", "feather", "parquet")
    population = Files(paths, "*", missing="drop", users="who", engine=shared[name])
    population.check()
    population.keep(3, KEY)
    assert answers(population) == answers(population) == expected(rows)


def test_short_floats_in_files_that_may_have_met_are_refused(tmp_path: Path) -> None:
    who = np.array([2.0**24, 2.0**24 + 2, np.nan], np.float32)
    pd.DataFrame({"x": [0.1, 0.2, 0.3], "who": who}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InvalidInput, match="of 32 bits up to"):
        Files([tmp_path / "rows.parquet"], "*", users="who").check()


def test_texts_name_users_in_files(tmp_path: Path) -> None:
    """Also those that look like numbers in some files: 007 is not 7."""
    rows = frame().assign(who=lambda r: "0" + r["who"].astype(str))
    for kind in ("parquet", "csv", "feather"):
        population = Files(written(rows, tmp_path, kind), "*", missing="drop", users="who")
        population.keep(2, KEY)
        assert answers(population) == expected(rows, 2)


def populations(rows: pd.DataFrame, folder: Path, **more: Any) -> Iterator[Any]:
    yield Arrays(rows, **more)
    for kind in ("parquet", "csv"):
        yield Files(written(rows, folder, kind), "*", **more)


def test_rows_of_users_are_not_read_before_somebody_says_how_many(tmp_path: Path) -> None:
    for population in populations(frame(), tmp_path, missing="drop", users="who"):
        population.check()
        with pytest.raises(Refused, match="how many of each are read was not said"):
            answers(population)


def test_a_row_without_a_user_is_refused_or_dropped_as_one_with_a_missing_cell(tmp_path: Path) -> None:
    rows = frame().dropna().astype({"who": "Int64"})
    rows.iloc[5, 1] = pd.NA
    for population in populations(rows, tmp_path, users="who"):
        with pytest.raises(InvalidInput, match=r"some cells are missing or infinite.*--missing drop"):
            population.check()
    for population in populations(rows, tmp_path, missing="drop", users="who"):
        population.check()
        population.keep(3, KEY)
        assert answers(population) == expected(rows)


def test_rows_that_name_nobody_at_all_are_no_rows(tmp_path: Path) -> None:
    rows = frame().assign(who=[None] * 900)
    for population in populations(rows, tmp_path, missing="drop", users="who"):
        with pytest.raises(InvalidInput, match="there are no rows to use"):
            population.check()


def test_the_user_column_is_not_clustered_by(tmp_path: Path) -> None:
    rows = frame()
    for population in populations(rows, tmp_path, users="who"):
        assert population.columns == ("x", "y")
    for make in (
        lambda **more: Arrays(rows, **more),
        lambda **more: Files(written(rows, tmp_path, "csv"), **({"columns": "*"} | more)),
    ):
        with pytest.raises(InvalidInput, match="column 'who' names users and is not clustered by"):
            make(users="who", columns=["x", "who"])
        with pytest.raises(UnknownName, match="no user column 'whom'"):
            make(users="whom")


def test_every_file_has_the_user_column(tmp_path: Path) -> None:
    paths = written(frame(), tmp_path, "parquet", "parquet")
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(paths[1]).drop_columns(["who"]), paths[1])
    with pytest.raises(InvalidInput, match="does not go with the files before it: no user column 'who'"):
        Files(paths, "*", users="who")


@pytest.mark.parametrize("names", [[1], list(range(901))])
def test_there_is_one_name_per_row(names: list[int]) -> None:
    population = Arrays(frame()[["x", "y"]], missing="drop", users=names)
    with pytest.raises(InvalidInput, match="not one user per row"):
        population.check()


def test_cells_that_name_nobody_for_certain_are_not_quoted(tmp_path: Path) -> None:
    rows = frame().dropna().assign(who=lambda r: r["x"])
    for population in (Arrays(rows, users="who"), Files(written(rows, tmp_path, "parquet"), "*", users="who")):
        with pytest.raises(InvalidInput, match="a user is named by a whole number") as error:
            population.check()
        assert str(rows["x"].iloc[0]) not in str(error.value)


def test_marks_know_whose_the_rows_are() -> None:
    """A run does not go on with the same rows of other users: it would keep others of them."""
    rows = frame()
    one = Arrays(rows[["x", "y"]], missing="drop", users=rows["who"]).marks(bytes(32))
    other = Arrays(rows[["x", "y"]], missing="drop", users=rows["who"].to_numpy()[::-1]).marks(bytes(32))
    assert {what for what in one if one[what] != other[what]} == {"the users"}

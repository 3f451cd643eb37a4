"""Words of rows: which a cell has, as which numbers, and that a row's follow from its own cell, wherever it is."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from cloister.core.types import Floats, Ints
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.files import Files
from cloister.rows.keywords import HALF, LENGTH, MOST, WHOLE, Texts, code_of, word_of, words_of
from cloister.rows.options import Reading
from tests.rows.stored import stored

WORD = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=14)
CELL = st.one_of(st.none(), st.text(max_size=80), st.lists(st.one_of(st.none(), st.text(max_size=14)), max_size=9))


def numbers(cells: list[Any], most: int = MOST) -> Ints:
    """Numbers of cells' words (n, most); 0: none."""
    halves = Texts("notes", most).halves(len(cells), cells.__getitem__)
    assert halves.shape == (2 * most, len(cells))
    assert halves.min(initial=0) >= 0
    assert halves.max(initial=0) < HALF < 2**27
    return np.asarray(halves[0::2] * HALF + halves[1::2], np.int64).T


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("The quick-brown FOX, and 12 or 123 foxes.", ["quick", "brown", "fox", "123", "foxes"]),
        ("Zürich naïve CAFÉ STRASSE Straße", ["zurich", "naive", "cafe", "strasse", "strasse"]),
        ("it has two of these, but you will not", []),
        ("данные 数据 data_set", ["data", "set"]),
        (["New York", "C++", "and", "", None, 7], ["new york", "c++", "and", "7"]),
        ([10**5000, "word"], ["word"]),  # Python does not write it out
        (np.array(["A"], object), ["a"]),
        (np.array("A", object), []),
        (float("nan"), []),
        (b"bytes", []),
        ({"a": "struct"}, []),
    ],
)
def test_texts_are_parted_and_items_of_lists_are_taken_as_they_are(cell: Any, words: list[str]) -> None:
    assert list(words_of(cell)) == words


@given(WORD)
def test_a_word_is_its_first_ten_characters_as_a_number(word: str) -> None:
    code = code_of(word)
    assert 0 < code < WHOLE < 2**53
    assert word_of(code) == (word if len(word) < LENGTH else word[:LENGTH] + "\u2026")


def test_words_are_told_apart_by_ten_characters_and_other_characters_are_one() -> None:
    assert code_of("clustering") == code_of("clusterings") != code_of("clusterin")
    assert code_of("c++") == code_of("c##") != code_of("c+")
    assert [word_of(code_of(word)) for word in ("c++", "new york", "clusterings")] == ["c__", "new_york", "clustering…"]
    assert len({code_of(a + b) for a in string.ascii_lowercase for b in ["", *string.digits]}) == 26 * 11


@given(st.lists(CELL, max_size=6), st.integers(1, 64))
def test_a_row_has_at_most_so_many_words_each_its_own_in_one_slot_and_by_its_own_cell(
    cells: list[Any], most: int
) -> None:
    found = numbers(cells, most)
    for cell, row in zip(cells, found, strict=True):
        assert np.array_equal(numbers([cell], most)[0], row)
        own = {code_of(word) for word in words_of(cell)} - {0}
        held = row[row > 0].tolist()
        assert len(set(held)) == len(held)
        assert set(held) <= own
        assert bool(held) == bool(own)
        for code in own:
            (slot,) = numbers([[word_of(code).rstrip("\u2026")]], most)[0].nonzero()
            assert row[slot] > 0  # it has its slot, or an earlier word of the row has it


def test_of_several_words_of_a_slot_the_first_one_counts() -> None:
    every = [f"word{i}" for i in range(2000)]
    assert word_of(int(numbers([every], 1)[0, 0])) == "word0"


def tables(folder: Path) -> dict[str, Any]:
    """The same rows in every place that this process reads."""
    texts = ["Pain, fever and cough", None, "no fever; PAIN again", "x" * 30, ""] * 30
    plain = {"age": [float(i % 7) for i in range(150)], "notes": texts}
    table = pa.table(plain)
    frames = {"pandas": pd.DataFrame(plain), "polars": pl.DataFrame(plain), "pyarrow": table}
    return frames | {name: str(stored(table, folder / name, 40)) for name in ("a.parquet", "a.feather", "a.csv")}


def features(rows: Any, told: Texts) -> tuple[list[str], Floats]:
    kind = Files if isinstance(rows, str) else Arrays
    found: Any = kind(rows, Reading(columns=["age"], described=[told]))
    return list(found.columns), np.concatenate([chunk.rows.copy() for chunk in found.chunks()])


def test_words_come_after_all_columns_and_are_the_same_wherever_rows_are(tmp_path: Path) -> None:
    read = {name: features(rows, Texts("notes", 8)) for name, rows in tables(tmp_path).items()}
    names, expected = read["pandas"]
    assert len(read) == 6
    assert names[:3] == ["age", "notes: word 1, part 1", "notes: word 1, part 2"]
    assert expected.shape == (150, 17)
    for found, values in read.values():
        assert found == names
        assert np.array_equal(values, expected)


def test_a_cell_that_is_no_text_has_no_words_and_ends_no_run(tmp_path: Path) -> None:
    cells, bad = [b"fever"] * 40, {0, 17, 18, 39}
    cells = [b"\xff\xfe fever" if i in bad else cell for i, cell in enumerate(cells)]
    made = pa.array(cells, pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 40, made.buffers())
    table = pa.table({"age": np.arange(40.0), "notes": texts, "codes": pa.ListArray.from_arrays(range(41), texts)})
    for rows in (table, *(str(stored(table, tmp_path / name)) for name in ("a.parquet", "a.feather"))):
        for column in ("notes", "codes"):
            _, values = features(rows, Texts(column, 4))
            assert set(np.flatnonzero(~values[:, 1:].any(axis=1))) == bad

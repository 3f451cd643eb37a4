"""Categories and chosen columns in files and data frames of every kind: the same features, whatever the cells."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cloister.core.errors import InvalidInput
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.files import Files
from cloister.rows.options import Reading

LISTED = {"ward": ["A", "B"], "floor": [1, 2], "night": [True]}
FRAME = pd.DataFrame(
    {
        "patient_id": [7, 8, 9, 10],
        "age": [20.0, 30.0, 40.0, 50.0],
        "ward": ["A", "B", "Z", "A"],
        "floor": [1, 2, 3, 1],
        "night": [True, False, True, False],
        "visit": pd.to_datetime(["2020-01-01"] * 4),
    }
)
FEATURES = ("age", "ward=A", "ward=B", "floor=1", "floor=2", "night=true")
EXPECTED = [[20, 1, 0, 1, 0, 1], [30, 0, 1, 0, 1, 0], [40, 0, 0, 0, 0, 1], [50, 1, 0, 1, 0, 0]]


def files(folder: Path) -> list[Path]:
    FRAME.to_parquet(folder / "a.parquet")
    FRAME.astype({"ward": "category"}).to_parquet(folder / "b.parquet", row_group_size=1)
    pl.from_pandas(FRAME).write_parquet(folder / "c.parquet")
    FRAME.to_feather(folder / "a.feather")
    FRAME.to_csv(folder / "a.csv")
    FRAME.to_csv(folder / "b.csv.gz", index=False)
    return sorted(folder.iterdir())


FRAMES = [
    FRAME.astype({"ward": object}),
    FRAME.astype({"ward": "string"}),
    FRAME.astype({"ward": "category", "floor": "category"}),
    FRAME.astype({"floor": float}),
    pl.from_pandas(FRAME),
    pl.from_pandas(FRAME).with_columns(pl.col("ward").cast(pl.Categorical)),
    pa.Table.from_pandas(FRAME),
    pa.Table.from_pandas(FRAME.astype({"ward": "category"})),
]


def test_every_file_and_frame_gives_the_same_features(tmp_path: Path) -> None:
    for rows in [*files(tmp_path), *FRAMES]:
        make: Any = Files if isinstance(rows, Path) else Arrays
        population = make(rows, Reading(columns=["age"], categories=LISTED))
        assert population.columns == FEATURES, rows
        population.check()
        np.testing.assert_array_equal(population.table(), EXPECTED, str(rows))
        assert make(rows, Reading(bounded=["age"], categories=LISTED)).columns == FEATURES


def test_an_array_in_a_file_has_categories_by_the_numbers_of_its_columns(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[0.5, 1], [0.25, 2], [0.125, 9]]))
    population = Files(tmp_path / "a.npy", Reading(categories={"1": [1, 2]}))
    assert population.columns == ("0", "1=1", "1=2")
    np.testing.assert_array_equal(population.table(), [[0.5, 1, 0], [0.25, 0, 1], [0.125, 0, 0]])


def test_a_missing_category_is_a_missing_cell_and_one_that_is_not_listed_never_refuses(tmp_path: Path) -> None:
    frame = FRAME.assign(ward=["A", None, "Z", ""])
    frame.to_csv(tmp_path / "a.csv")
    frame.to_parquet(tmp_path / "a.parquet")
    for make, rows, usable in ((Files, "a.csv", 2), (Files, "a.parquet", 3), (Arrays, frame, 3)):
        given: Any = tmp_path / rows if isinstance(rows, str) else rows
        asked: Any = {"columns": ["age"], "categories": {"ward": ["A"]}}
        assert len(make(given, Reading(missing="drop", **asked)).table()) == usable, rows
        with pytest.raises(InvalidInput, match="some cells are missing"):
            make(given, Reading(**asked)).check()


def test_a_listed_value_is_itself_even_where_it_looks_like_a_missing_cell(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,country\n1,NA\n2,DE\n3,\n")
    population = Files(tmp_path / "a.csv", Reading(columns=["x"], missing="drop", categories={"country": ["NA"]}))
    np.testing.assert_array_equal(population.table(), [[1, 1], [2, 0]])
    assert Files(
        tmp_path / "a.csv", Reading(columns=["x"], missing="drop", categories={"country": ["DE"]})
    ).table().tolist() == [[2, 1]]


@pytest.mark.parametrize("asked", [{"columns": "*"}, {"columns": ["a"], "categories": {"c": ["x"]}}, {"bounded": "ab"}])
def test_no_cell_of_a_csv_file_ever_changes_which_columns_are_used(asked: Any, tmp_path: Path) -> None:
    """The adversary replaces any cell by any text."""
    lines = [["a", "b", "c", "day_id"], ["1", "2", "3", "4"], ["5", "6", "7", "8"]]
    path, found = tmp_path / "a.csv", set()
    for row in (1, 2):
        for column in range(4):
            for cell in ("1", "", "word", "NA", "true", "2020-01-01", "1e999", "\xe9"):
                other = [list(line) for line in lines]
                other[row][column] = cell
                path.write_text("\n".join(map(",".join, other)) + "\n")
                found.add(Files(path, Reading(**asked)).selection)
    assert len(found) == 1


# how CSV files are written


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-16-le", "cp1252"])
def test_encodings_and_delimiters(encoding: str, tmp_path: Path) -> None:
    for delimiter, written in ((",", ","), (";", ";"), ("tab", "\t")):
        text = "größe,ward\n1.5,ä\n2,é\n".replace(",", written).encode(encoding)
        (tmp_path / "a.csv").write_bytes(text)
        (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text))
        how: Any = {"delimiter": delimiter, "encoding": None if encoding.startswith("utf-8") else encoding}
        for name in ("a.csv", "a.csv.gz"):
            population = Files(tmp_path / name, Reading(columns=["größe"], categories={"ward": ["ä"]}, **how))
            np.testing.assert_array_equal(population.table(), [[1.5, 1], [2, 0]], f"{name} {delimiter}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x,y\n1,2\n".encode("utf-32"), "is UTF-32, by its byte order mark: say so with --encoding utf-32"),
        ("x,y\n1,2\n".encode("utf-16-be"), "seems to be UTF-16 without .* --encoding utf-16-be"),
        ("größe,y\n1,2\n".encode("latin-1"), "not UTF-8: it seems to be Latin-1.* --encoding latin-1"),
        ("x,y\n1,ä\n".encode("latin-1"), "has cells that are not UTF-8: it seems to be Latin-1"),
        (b"x\ty\n1\t2\n", r"is parted by '\\t': say so with --delimiter"),
    ],
)
def test_a_file_is_named_as_what_it_is(content: bytes, message: str, tmp_path: Path) -> None:
    for path, text in ((tmp_path / "a.csv", content), (tmp_path / "a.csv.gz", gzip.compress(content))):
        path.write_bytes(text)
        with pytest.raises(InvalidInput, match=message) as caught:
            Files(path, Reading(columns=["x"], categories={"y": ["ä"]})).check()
        assert "ä" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("a.SQLITE", "pandas.read_sql"),
        ("a.db", "sqlite3.connect"),
        ("a.duckdb", "duckdb:///.*a.duckdb, and --table NAME"),
        ("a.sas7bdat", "pandas.read_sas"),
        ("lake.db", "is a database"),
        ("lake", "is a database"),
    ],
)
def test_other_formats_are_led_through_pandas_and_databases_by_their_first_bytes_to_their_address(
    name: str, way: str, tmp_path: Path
) -> None:
    if way == "is a database":
        way += f": give its address, duckdb://{tmp_path}/{name}, and --table"
        pytest.importorskip("duckdb").connect(str(tmp_path / name)).close()
    else:
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InvalidInput, match=way):
        Files(tmp_path / name, Reading(columns="*"))

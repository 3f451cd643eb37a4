"""Rows in files: every format gives the same answers as memory does, in bounded memory, or an error that names the
file."""

from __future__ import annotations

import decimal
import gzip
import io
import os
import re
import subprocess
import sys
import textwrap
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from cloister.core.errors import InvalidInput, UnknownName
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.files import Files
from cloister.rows import reading
from cloister.rows.files import arrow, npy, parts
from tests.plugins.populations.exact import totals, unit_box

SQUARE, CUBE = unit_box(2), unit_box(3)


def values(population: Any) -> np.ndarray:
    return np.concatenate([chunk.rows.copy() for chunk in population.chunks()])


def table(rows: np.ndarray) -> pa.Table:
    return pa.table({str(j): np.ascontiguousarray(rows[:, j]) for j in range(rows.shape[1])})


def as_csv(rows: np.ndarray) -> bytes:
    lines = [",".join(str(j) for j in range(rows.shape[1]))]
    lines += [",".join("" if np.isnan(x) else repr(float(x)) for x in row) for row in rows]
    return ("\n".join(lines) + "\n").encode()


def write_stream(path: Path, rows: np.ndarray) -> None:
    with pa.ipc.new_stream(path, table(rows).schema) as sink:
        sink.write_table(table(rows), max_chunksize=77)


WRITERS: dict[str, Callable[[Path, np.ndarray], Any]] = {
    "one.parquet": lambda path, rows: pyarrow.parquet.write_table(table(rows), path),
    "many.parquet": lambda path, rows: pyarrow.parquet.write_table(table(rows), path, row_group_size=37),
    "polars.parquet": lambda path, rows: pl.from_arrow(table(rows)).write_parquet(path),  # type: ignore[union-attr]
    "lz4.feather": lambda path, rows: pyarrow.feather.write_feather(table(rows), str(path), chunksize=91),
    "plain.arrow": lambda path, rows: pyarrow.feather.write_feather(table(rows), str(path), compression="uncompressed"),
    "polars.arrow": lambda path, rows: pl.from_arrow(table(rows)).write_ipc(path),  # type: ignore[union-attr]
    "stream.arrow": write_stream,
    "text.csv": lambda path, rows: path.write_bytes(as_csv(rows)),
    "text.csv.gz": lambda path, rows: path.write_bytes(gzip.compress(as_csv(rows))),
    "UPPER.CSV": lambda path, rows: path.write_bytes(as_csv(rows)),
    "rows.npy": lambda path, rows: np.save(path, np.ascontiguousarray(rows)),
    "columns.npy": lambda path, rows: np.save(path, np.asfortranarray(rows)),
    "rows.npz": lambda path, rows: np.savez(path, X=np.ascontiguousarray(rows), y=np.zeros(len(rows))),
    "columns.npz": lambda path, rows: np.savez(path, y=np.zeros(len(rows)), only=np.asfortranarray(rows)),
    "packed.npz": lambda path, rows: np.savez_compressed(path, X=np.ascontiguousarray(rows), Z=np.zeros((9, 9))),
    "packed_columns.npz": lambda path, rows: np.savez_compressed(path, X=np.asfortranarray(rows)),
}


def write(path: Path, rows: np.ndarray) -> Path:
    WRITERS[path.name](path, rows)
    return path


def some_rows(n: int, dimension: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).random((n, dimension)) * 1.2 - 0.1
    rows[:: max(1, n // 7), 0] = np.nan
    return rows


SMALL = (
    (npy, "PIECE", 2000),
    (arrow, "BLOCK", 2000),
    (arrow, "BUFFERS", 2000),
    (arrow, "piece_rows", lambda dimension: 53),
    (parts, "chunk_rows", lambda dimension: 101),
)
"""Pieces that end in the middle of everything."""


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_bits_that_memory_gives(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every reader with the pieces of real life, and with small ones."""
    rows = some_rows(1500, 3)
    path, expected = write(tmp_path / name, rows), totals(Arrays(rows), CUBE)
    for pieces in ((), SMALL):
        for module, what, size in pieces:
            monkeypatch.setattr(module, what, size)
        population = Files(path, "*", missing="drop")
        assert (population.columns, population.dimension) == (("0", "1", "2"), 3)
        population.check()
        assert totals(population, CUBE) == expected
        assert totals(population, CUBE) == expected, "a second round reads the same"
        np.testing.assert_array_equal(values(Files(path, columns=["2", "0"])), rows[:, [2, 0]])
    with pytest.raises(UnknownName, match="no column '3'"):
        Files(path, columns=[3])


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "i8", "f2", "f4"])
def test_every_type_of_number_means_its_value(dtype: str, tmp_path: Path) -> None:
    rows = (np.random.default_rng(1).random((200, 3)) * 2).astype(dtype)
    for name in WRITERS:
        if "csv" in name.lower() or (name.startswith("polars") and dtype == "f2"):
            continue  # text has no types, and polars writes no 16-bit floats
        np.testing.assert_array_equal(values(Files(write(tmp_path / name, rows), "*")), rows.astype(float), name)


def test_nulls_of_every_arrow_type_are_missing_cells(tmp_path: Path) -> None:
    data = pa.table(
        {
            "i": pa.array([1, None, 2**53 + 1], pa.int64()),
            "b": pa.array([True, False, None]),
            "d": pa.array([decimal.Decimal("0.1"), None, decimal.Decimal("2.5")], pa.decimal128(20, 5)),
            "h": pa.array(np.array([0.5, 0.25, 1.0], np.float16)),
            "when": pa.array([1, 2, 3], pa.date32()),
            "list": pa.array([[1.0], [2.0], None]),
        }
    )
    pyarrow.parquet.write_table(data, tmp_path / "a.parquet")
    pyarrow.feather.write_feather(data, str(tmp_path / "a.feather"))
    for name in ("a.parquet", "a.feather"):
        population = Files(tmp_path / name, "*")
        assert population.columns == ("i", "b", "d", "h")
        expected = [[1, 1, 0.1, 0.5], [np.nan, 0, np.nan, 0.25], [2.0**53, np.nan, 2.5, 1.0]]
        np.testing.assert_array_equal(values(population), expected)
        with pytest.raises(InvalidInput, match="'when' does not hold numbers"):
            Files(tmp_path / name, columns=["when"])


def test_decimals_are_rounded_correctly(tmp_path: Path) -> None:
    numbers = [decimal.Decimal(int(n)).scaleb(-9) for n in np.random.default_rng(0).integers(-(10**12), 10**12, 500)]
    table = pa.table({"x": pa.array(numbers, pa.decimal128(30, 9))})
    pyarrow.parquet.write_table(table, tmp_path / "d.parquet")
    for population in (Files(tmp_path / "d.parquet", "*"), Arrays(table), Arrays(pl.from_arrow(table))):
        assert values(population)[:, 0].tolist() == [float(x) for x in numbers]


def test_a_csv_file_may_be_written_in_many_ways(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    texts = [
        b'x,word,y\r\n1,"a, b",2\r\n3,c,4',
        b"\xef\xbb\xbfx,y\n1,2\n3,4\n",
        b'"x","y"\n "1" , 2 \n3.0,4e0\n\n',
        b"y,x\n2,1\n4,3\n",
        b"x,name,y\n1,\xe9,2\n3,b,4\n",
        b"x,y,z\n1,2,no\n3,4,\n",
    ]
    for text in texts:
        path.write_bytes(text.replace(b' "1" ', b"1"))
        assert values(Files(path, columns=["x", "y"])).tolist() == [[1, 2], [3, 4]]
    path.write_bytes(b"x,y\n1,true\n,false\nNA,true\nnan,false\ninf,\n")
    np.testing.assert_array_equal(
        values(Files(path, "*")), [[1, 1], [np.nan, 0], [np.nan, 1], [np.nan, 0], [np.inf, np.nan]]
    )


def test_a_csv_column_may_go_on_with_other_numbers_than_it_began(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with patch.object(arrow, "BLOCK", 64):
        path.write_bytes(b"x,y\n" + b"1,\n" * 100 + b"1.5,7\n")
        got = values(Files(path, "*"))
    assert got[0, 0] == 1
    assert np.isnan(got[0, 1])
    assert got[-1].tolist() == [1.5, 7.0]


def test_a_csv_file_without_names_is_refused_without_quoting_it(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for text in (
        b"5.1,3.5,1.4,setosa\n4.9,3.0,1.4,setosa\n",
        b"71,12\n3,4\n",
        b"-3\n4\n",
        b"1e3\n2\n",
        b"2019,2020\n5,6\n",
        b"x,1\n5,6\n",
    ):
        path.write_bytes(text)
        with pytest.raises(InvalidInput, match="looks like a row") as caught:
            Files(path, "*")
        said = str(caught.value).replace(str(path), "")
        assert not any(cell in said for cell in text.decode().split("\n")[0].split(","))
    path.write_bytes(b"0,1\n5,6\n")  # what a frame without names writes
    assert values(Files(path, "*")).tolist() == [[5, 6]]


def test_a_column_of_text_in_a_csv_file_is_refused_and_never_passed_over(tmp_path: Path) -> None:
    """One row must not decide which columns a result has."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"x,y\n1,2\n3,word\n")
    assert Files(path, "*").columns == ("x", "y")
    with pytest.raises(InvalidInput, match=r"a\.csv' .* column 'y' does not hold numbers.*never names") as caught:
        Files(path, "*", missing="drop").check()
    assert "word" not in str(caught.value)
    assert "--category y" not in str(caught.value)  # whoever reads that may take people's names for one
    assert values(Files(path, ["x"])).tolist() == [[1], [3]]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_a_column_whose_type_no_cell_has_told_is_refused_and_never_passed_over(name: str, tmp_path: Path) -> None:
    """One number in it would make it a column of numbers. Types that were declared say so whatever the cells are."""
    without = pa.table({"x": [1.0], "when": pa.array([1], pa.date32()), "text": ["a"], "b": pa.nulls(1)})
    number = without.set_column(3, "b", pa.array([2.0]))

    def stored(table: Any) -> Path:
        path = tmp_path / name
        write = pyarrow.parquet.write_table if name.endswith("parquet") else pyarrow.feather.write_feather
        write(table, str(path))
        return path

    assert Files(stored(number), "*").columns == ("x", "b")
    assert Files(stored(without), ["x"]).columns == ("x",)
    with pytest.raises(InvalidInput, match=r"column 'b' does not hold numbers: leave it out of --columns"):
        Files(stored(without), "*")
    with pytest.raises(InvalidInput, match="column 'b' does not hold numbers"):
        Files(stored(without), ["b"])


def test_users_are_numbered_over_the_files_in_sorted_order_or_in_that_of_a_list(tmp_path: Path) -> None:
    for name, value in (("b", 2.0), ("a", 1.0), ("c", 3.0)):
        np.save(tmp_path / f"{name}.npy", np.full((2, 1), value))
    population = Files(str(tmp_path / "*.npy"))
    assert [chunk.start for chunk in population.chunks()] == [0, 2, 4]
    assert values(population)[:, 0].tolist() == [1, 1, 2, 2, 3, 3]
    assert values(Files([tmp_path / "c.npy", str(tmp_path / "[ab].npy")]))[:, 0].tolist() == [3, 3, 1, 1, 2, 2]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_an_empty_line_of_one_column_is_a_row_that_moves_no_other(tmp_path: Path, ending: str) -> None:
    """The adversary takes one person's cell away: whoever comes after her keeps her place, and so her number."""
    path = tmp_path / "a.csv"
    found = []
    for cell in ("0.5", ""):
        path.write_bytes(ending.join(["x", *(f"0.{i}" for i in range(300)), cell, "0.3", "0.4", ""]).encode())
        with Files(path, "*", "drop") as population:
            found.append(np.concatenate([chunk.rows for chunk in population.chunks()])[:, 0])
    assert len(found[0]) == len(found[1]) == 303
    assert np.flatnonzero(found[0] != found[1]).tolist() == [300]
    with Files(path, "*") as population, pytest.raises(InvalidInput, match="some cells are missing"):
        population.check()
    path.write_text("\nx\n0.1\n")
    with pytest.raises(InvalidInput, match="begins with an empty line"):
        Files(path, "*")
    path.write_text("\nx,y\n0.1,0.2\n\n0.3,0.4\n\n")
    with Files(path, "*") as population:
        population.check()
        assert population.people == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: p / "gone.csv", "gone.csv' cannot be opened: No such file"),
        (lambda p: [], "no file was given"),
        (lambda p: [p / "a.npy", p / ".." / p.name / "a.npy"], "given twice: its rows would count twice"),
        (lambda p: p / "empty.parquet", "empty.parquet' is empty"),
        (lambda p: p / "flat.npy", r"flat.npy' holds an array of float64 with 1 dimensions"),
        (lambda p: p / "words.npy", "words.npy' holds an array of str"),
        (lambda p: p / "pickled.npy", "pickled.npy' holds an array of object"),
        (lambda p: p / "two.npz", "two.npz' holds more than one array"),
        (lambda p: p / "none.npz", "none.npz' holds no array"),
    ],
)
def test_what_is_no_table_is_refused_by_name(make: Callable[[Path], Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "empty.parquet").touch()
    np.save(tmp_path / "a.npy", np.zeros((2, 2)))
    np.save(tmp_path / "flat.npy", np.zeros(2))
    np.save(tmp_path / "words.npy", np.array([["a"]]))
    np.save(tmp_path / "pickled.npy", np.array([[print]], object))
    np.savez(tmp_path / "two.npz", a=np.zeros((2, 2)), b=np.zeros((2, 2)))
    np.savez(tmp_path / "none.npz", a=np.zeros(2))
    with pytest.raises(InvalidInput, match=message):
        Files(make(tmp_path), "*")


def stated(shape: tuple[int, ...]) -> bytes:
    """The header of an array of bytes of this shape."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return head.getvalue()


def zipped(path: Path, content: bytes, how: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", how, compresslevel=1) as file:
        file.writestr("X.npy", content)


def sparse(path: Path, head: bytes, size: int) -> None:
    """A file of so many bytes after its header, of which the disk holds none."""
    path.write_bytes(head)
    os.truncate(path, len(head) + size)


LONG_HEAD = b"\x93NUMPY\2\0" + (2**25).to_bytes(4, "little") + bytes(2**25)

BOMBS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "short.npy": (lambda path: path.write_bytes(stated((1, 10**9))), "damaged"),
    "long.npy": (lambda path: sparse(path, stated((1, 1)), 10**9), "damaged"),
    "below_zero.npy": (lambda path: path.write_bytes(stated((-1, 0))), "damaged"),
    "wide.npy": (lambda path: sparse(path, stated((1, 10**9)), 10**9), "has 1,000,000,000 columns"),
    "long_head.npz": (lambda path: zipped(path, LONG_HEAD), "damaged"),
    "packed.npz": (lambda path: zipped(path, stated((2**24, 1)) + bytes(2**24), zipfile.ZIP_BZIP2), "damaged"),
    "by_columns.npz": (lambda path: np.savez(path, X=np.zeros((2, 1001), order="F")), "at most 1,000 are read of a"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_an_array_that_states_more_than_it_holds_or_unpacks_without_end_takes_no_memory(
    name: str, tmp_path: Path
) -> None:
    make, message = BOMBS[name]
    make(tmp_path / name)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match=message):
            Files(tmp_path / name, "*")
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"x,y\n1,2\n314159\n", "lines with more or fewer cells"),
        (b"x,y\n1,2\n3,314159,5\n", "lines with more or fewer cells"),
        (b"x,y\n" + b"1,2\n" * 400 + b"314159\n", "lines with more or fewer cells"),
        (b"x,y\n" + b"1,2\n" * 400 + b"secret-314159,3\n", "column 'x' does not hold numbers"),
        (b"x,y\n" + b"1,2\n" * 400 + b"3," + b"314159" * 500 + b"\n1,2\n", "a line of more than"),
        (b"\n\n\n", "lines with more or fewer cells"),
    ],
)
def test_a_bad_csv_file_is_named_and_never_quoted(text: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(text)
    with patch.object(arrow, "BLOCK", 1000), pytest.raises(InvalidInput, match=message) as caught:
        Files(tmp_path / "a.csv", "*").check()
    assert "a.csv" in str(caught.value)
    assert "314159" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("name", WRITERS)
def test_rubbish_and_a_file_that_is_cut_short_are_refused_by_name(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, some_rows(90, 2))
    whole, text = path.read_bytes(), "csv" in name.lower()
    cuts = [1, len(whole) // 3, len(whole) * 3 // 5, len(whole) - 1]
    if name in ("stream.arrow", "plain.arrow", "many.parquet"):  # whose readers might lose rows in silence
        cuts = list(range(1, len(whole), 7))
    for length in cuts[:1] if path.suffix.lower() == ".csv" else cuts:  # text may end anywhere
        path.write_bytes(whole[:length])
        with pytest.raises(InvalidInput, match=name):
            Files(path, "*", missing="drop").check()
    path.write_bytes(np.random.default_rng(0).bytes(5000))
    with pytest.raises(InvalidInput, match="." if text else name):
        Files(path, "*").check()


CHECKED: dict[str, Callable[[Path, np.ndarray], Any]] = {
    **{name: WRITERS[name] for name in ("text.csv.gz", "packed.npz", "rows.npz", "packed_columns.npz")},
    "a.parquet": lambda path, rows: pyarrow.parquet.write_table(
        table(rows), path, write_page_checksum=True, compression="none"
    ),
}


@pytest.mark.parametrize("name", CHECKED)
def test_a_flipped_bit_is_found_where_the_format_has_a_checksum(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    CHECKED[name](path, some_rows(3000, 3))
    Files(path, "*", missing="drop").check()
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 4
    path.write_bytes(damaged)
    with pytest.raises(InvalidInput, match=name):
        Files(path, "*", missing="drop").check()


def test_all_files_must_have_the_same_columns_of_numbers(tmp_path: Path) -> None:
    for name, text in (
        ("a", b"x,y\n1,2\n"),
        ("b", b"x,z\n1,2\n"),
        ("c", b"x,y\n1,no\n"),
        ("d", b"x,y,z\n1,2,3\n"),
        ("e", b"y,word,x\n2.5,no,1\n"),
    ):
        (tmp_path / f"{name}.csv").write_bytes(text)

    def both(other: str, columns: Any = "*") -> Files:
        return Files([tmp_path / "a.csv", tmp_path / f"{other}.csv"], columns)

    for other in "bde":
        with pytest.raises(InvalidInput, match=rf"{other}\.csv' .*files before it"):
            both(other)
    with pytest.raises(InvalidInput, match=r"b\.csv' does not go .* no column 'y'"):
        both("b", ["x", "y"])
    with pytest.raises(InvalidInput, match=r"c\.csv' .*column 'y' does not hold numbers"):
        both("c").check()
    assert values(both("d", ["y", "x"])).tolist() == [[2, 1], [2, 1]]
    assert values(both("e", ["x", "y"])).tolist() == [[1, 2], [1, 2.5]]


def test_a_file_without_rows_may_stand_among_others(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).random((10, 2))
    for name in ("many.parquet", "plain.arrow", "stream.arrow", "text.csv", "rows.npy", "columns.npy", "packed.npz"):
        (tmp_path / name).mkdir()
        paths = [tmp_path / name / folder for folder in ("a", "b", "c")]
        for path, some in zip(paths, (rows[:4], rows[:0], rows[4:]), strict=True):
            path.mkdir()
            write(path / name, some)
        assert totals(Files([path / name for path in paths], "*"), SQUARE) == totals(Arrays(rows), SQUARE), name


def test_one_name_may_begin_another(tmp_path: Path) -> None:
    """pyarrow also finds fields of nested columns by such names."""
    data = pa.table({"a": [1.0], "a.b": [2.0], "ab": [3.0], "n": [{"m": 4.0}]})
    pyarrow.parquet.write_table(data, tmp_path / "t.parquet")
    assert Files(tmp_path / "t.parquet", "*").columns == ("a", "a.b", "ab")
    for name, value in (("a", 1.0), ("a.b", 2.0), ("ab", 3.0)):
        assert values(Files(tmp_path / "t.parquet", columns=name)).tolist() == [[value]]
    with pytest.raises(UnknownName):
        Files(tmp_path / "t.parquet", columns=["n.m"])


def test_the_check_refuses_no_rows_and_says_nothing_of_missing_cells(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((0, 2)))
    with pytest.raises(InvalidInput, match="there are no rows to use"):
        Files(tmp_path / "a.npy").check()
    path = write(tmp_path / "many.parquet", some_rows(500, 2))
    with pytest.raises(InvalidInput, match="--missing drop") as caught:
        Files(path, "*").check()
    assert not any(c.isdigit() for c in str(caught.value))


def test_an_array_that_grows_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other formats and changes: ``test_changed_files.py``."""
    monkeypatch.setattr(parts, "chunk_rows", lambda dimension: 101)
    path = write(tmp_path / "rows.npy", some_rows(1000, 2))
    population = Files(path, "*", progress=lambda _: path.write_bytes(path.read_bytes() + b"1"))
    with pytest.raises(InvalidInput, match=r"rows\.npy' is not what it was"):
        totals(population, SQUARE)


def run(code: str, *arguments: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_library_is_imported_before_it_is_needed_and_one_that_is_missing_is_named(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 2)))
    np.savez(tmp_path / "a.npz", X=np.zeros((3, 2)))
    (tmp_path / "a.csv").write_bytes(b"x\n1\n")
    out = run(
        """
        import os, sys, numpy
        os.chdir(sys.argv[1])
        from cloister.core.errors import MissingExtra
        from cloister.plugins.populations.arrays import Arrays
        from cloister.plugins.populations.files import Files
        Arrays(numpy.zeros((2, 2))).check()
        print({"narwhals", "pandas", "polars", "pyarrow"} & set(sys.modules))
        sys.modules["pyarrow"] = None
        Files("a.npy").check()
        Files("a.npz").check()
        try:
            Files("a.csv")
        except MissingExtra as error:
            print(error)
        """,
        str(tmp_path),
    )
    said = r"set\(\)\nreading Parquet, Arrow and CSV needs pyarrow: pip install '.*\[files\]'\n"
    assert re.fullmatch(said, out)


def packed(path: Path, rows: np.ndarray) -> None:
    """What ``np.savez_compressed`` writes, seven times as fast."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file, file.open("X.npy", "w") as out:
        np.lib.format.write_array(out, rows)


BIG: dict[str, Callable[[Path, np.ndarray], Any]] = {
    **{name: WRITERS[name] for name in ("rows.npy", "columns.npy")},
    "one.parquet": lambda path, rows: pyarrow.parquet.write_table(table(rows), path, row_group_size=len(rows)),
    "packed.npz": lambda path, rows: packed(path, np.round(rows)),
    "plain.arrow": lambda path, rows: pyarrow.feather.write_feather(
        table(rows), str(path), compression="uncompressed", chunksize=len(rows)
    ),
}
"""Files with a single row group, or record batch, among them."""


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", BIG)
def test_memory_does_not_grow_with_the_file(name: str, tmp_path: Path) -> None:
    """After a round over a tenth of it, a round over 110 MB of a file's columns needs hardly any more memory."""
    rows = np.random.default_rng(0).random((2_500_000, 12), np.float32)
    for folder, some in (("small", rows[: len(rows) // 10]), ("large", rows)):
        (tmp_path / folder).mkdir()
        BIG[name](tmp_path / folder / name, some)
    out = run(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        from tests.plugins.populations.test_files import Files, Path, totals, unit_box

        def peak():  # not getrusage, whose peak includes that of the process before exec
            return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])

        for path in sys.argv[2:]:
            before, population = peak(), Files(path, columns=range(11))
            population.check()
            totals(population, unit_box(11))
        print(peak() - before)
        """,
        str(Path(__file__).parent),
        str(tmp_path / "small" / name),
        str(tmp_path / "large" / name),
    )
    assert int(out) < 40_000


def test_whatever_a_file_says_of_pandas_it_can_be_read(tmp_path: Path) -> None:
    for said in (b"[" * 100_000, b"{", b"[]", b'{"index_columns": 1}'):
        rows = pa.table({"x": [1.0]}).replace_schema_metadata({b"pandas": said})
        pa.parquet.write_table(rows, tmp_path / "rows.parquet")
        assert [column.name for column in arrow.Parquet(str(tmp_path / "rows.parquet")).known] == ["x"]


def test_more_rows_than_the_cap_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((10, 2)))
    with patch.object(reading, "CAP", 9):
        for act in (Files.check, lambda population: totals(population, SQUARE)):
            with pytest.raises(InvalidInput, match="more than 9 rows"):
                act(Files(tmp_path / "a.npy"))

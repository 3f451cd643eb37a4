"""Rows in files: every format gives the same answers as memory does, in bounded memory, or an error that names the
file."""

from __future__ import annotations

import decimal
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
from cloister.rows.options import Reading
from tests.plugins.populations.exact import totals, unit_box
from tests.rows.stored import stored

SQUARE, CUBE = unit_box(2), unit_box(3)


def values(population: Any) -> np.ndarray:
    return np.concatenate([chunk.rows.copy() for chunk in population.chunks()])


def table(rows: np.ndarray) -> pa.Table:
    return pa.table({str(j): column for j, column in enumerate(rows.T)})


def plain(path: Path, rows: np.ndarray) -> None:
    stored(table(rows), path, 37)


def as_stream(path: Path, rows: np.ndarray) -> None:
    with pa.ipc.new_stream(path, table(rows).schema) as sink:
        sink.write_table(table(rows), max_chunksize=77)


def in_one_batch(path: Path, rows: np.ndarray) -> None:
    pa.feather.write_feather(table(rows), str(path), compression="uncompressed", chunksize=len(rows) + 1)


def packed(path: Path, rows: np.ndarray) -> None:
    """What ``np.savez_compressed`` writes, seven times as fast."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name, array in (("X", rows), ("Z", np.zeros((9, 9)))):
            with file.open(f"{name}.npy", "w") as out:
                np.lib.format.write_array(out, array)


WRITERS: dict[str, Callable[[Path, np.ndarray], Any]] = {
    **dict.fromkeys(("many.parquet", "lz4.feather", "text.csv", "text.csv.gz", "UPPER.CSV", "rows.npy"), plain),
    "one.parquet": lambda path, rows: stored(table(rows), path, len(rows) + 1),
    "checked.parquet": lambda path, rows: pa.parquet.write_table(table(rows), path, write_page_checksum=True),
    "polars.parquet": lambda path, rows: pl.from_arrow(table(rows)).write_parquet(path),  # type: ignore[union-attr]
    "polars.arrow": lambda path, rows: pl.from_arrow(table(rows)).write_ipc(path),  # type: ignore[union-attr]
    "plain.arrow": in_one_batch,
    "stream.arrow": as_stream,
    "columns.npy": lambda path, rows: np.save(path, np.asfortranarray(rows)),
    "rows.npz": lambda path, rows: np.savez(path, X=np.ascontiguousarray(rows), y=np.zeros(len(rows))),
    "columns.npz": lambda path, rows: np.savez(path, y=np.zeros(len(rows)), only=np.asfortranarray(rows)),
    "packed.npz": packed,
    "packed_columns.npz": lambda path, rows: np.savez_compressed(path, X=np.asfortranarray(rows)),
}


def write(path: Path, rows: np.ndarray) -> Path:
    path.parent.mkdir(exist_ok=True)
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
    """Every reader with the pieces of real life, and with small ones; files without rows may stand among others."""
    rows = some_rows(1500, 3)
    paths = [write(tmp_path / folder / name, some) for folder, some in (("none", rows[:0]), ("all", rows))]
    expected = totals(Arrays(rows), CUBE)
    for pieces in ((), SMALL):
        for module, what, size in pieces:
            monkeypatch.setattr(module, what, size)
        population = Files(paths, Reading(columns="*", missing="drop"))
        assert (population.columns, population.dimension) == (("0", "1", "2"), 3)
        population.check()
        assert totals(population, CUBE) == expected
        assert totals(population, CUBE) == expected, "a second round reads the same"
        np.testing.assert_array_equal(values(Files(paths, Reading(columns=["2", "0"]))), rows[:, [2, 0]])
    with pytest.raises(UnknownName, match="no column '3'"):
        Files(paths, Reading(columns=[3]))


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "i8", "f2", "f4", "g", ">f8", ">i4"])
def test_every_type_of_number_means_its_value(dtype: str, tmp_path: Path) -> None:
    rows = (np.random.default_rng(1).random((200, 3)) * 2).astype(dtype)
    for order in "CF":
        np.testing.assert_array_equal(Arrays(np.asarray(rows, order=order)).table(), rows.astype(float), order)  # type: ignore[call-overload]
    for name in WRITERS if dtype not in ("g", ">f8", ">i4") else ():  # which NumPy alone has
        if "csv" in name.lower() or (name.startswith("polars") and dtype == "f2"):
            continue  # text has no types, and polars writes no 16-bit floats
        np.testing.assert_array_equal(
            values(Files(write(tmp_path / name, rows), Reading(columns="*"))), rows.astype(float), name
        )


def test_nulls_of_every_arrow_type_are_missing_cells(tmp_path: Path) -> None:
    data = pa.table(
        {
            "i": pa.array([1, None, 2**53 + 1], pa.int64()),
            "b": pa.array([True, False, None]),
            "d": pa.array([decimal.Decimal("0.1"), None, decimal.Decimal("2.5")], pa.decimal128(20, 5)),
            "h": pa.array(np.array([0.5, 0.25, 1.0], np.float16)),
        }
    )
    expected = [[1, 1, 0.1, 0.5], [np.nan, 0, np.nan, 0.25], [2.0**53, np.nan, 2.5, 1.0]]
    for name in ("a.parquet", "a.feather"):
        np.testing.assert_array_equal(values(Files(stored(data, tmp_path / name), Reading(columns="*"))), expected)


def test_decimals_are_rounded_correctly(tmp_path: Path) -> None:
    numbers = [decimal.Decimal(int(n)).scaleb(-9) for n in np.random.default_rng(0).integers(-(10**12), 10**12, 500)]
    table = pa.table({"x": pa.array(numbers, pa.decimal128(30, 9))})
    for population in (
        Files(stored(table, tmp_path / "d.parquet"), Reading(columns="*")),
        Arrays(table),
        Arrays(pl.from_arrow(table)),
    ):
        assert values(population)[:, 0].tolist() == [float(x) for x in numbers]


def test_a_csv_file_may_be_written_in_many_ways(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for text in (
        b'x,word,y\r\n1,"a, b",2\r\n3,c,4',
        b"\xef\xbb\xbfx,y\n1,2\n3,4\n",
        b'"x","y"\n1, 2 \n3.0,4e0\n\n',
        b"y,x\n2,1\n4,3\n",
        b"x,name,y\n1,\xe9,2\n3,b,4\n",
        b"x,y,z\n1,2,no\n3,4,\n",
    ):
        path.write_bytes(text)
        assert values(Files(path, Reading(columns=["x", "y"]))).tolist() == [[1, 2], [3, 4]]
    nan = np.nan
    path.write_bytes(b"x,y\n1,true\n,false\nNA,true\nnan,false\ninf,\n")
    np.testing.assert_array_equal(
        values(Files(path, Reading(columns="*"))), [[1, 1], [nan, 0], [nan, 1], [nan, 0], [np.inf, nan]]
    )
    path.write_bytes(b"x,y\n" + b"1,\n" * 100 + b"1.5,7\n")  # other numbers than it began with
    with patch.object(arrow, "BLOCK", 64):
        np.testing.assert_array_equal(values(Files(path, Reading(columns="*"))), [[1, nan]] * 100 + [[1.5, 7]])


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
            Files(path, Reading(columns="*"))
        said = str(caught.value).replace(str(path), "")
        assert not any(cell in said for cell in text.decode().split("\n")[0].split(","))
    path.write_bytes(b"0,1\n5,6\n")  # what a frame without names writes
    assert values(Files(path, Reading(columns="*"))).tolist() == [[5, 6]]


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
def test_a_column_whose_type_no_cell_has_told_is_refused_and_never_passed_over(name: str, tmp_path: Path) -> None:
    """One number in it would make it a column of numbers. Types that were declared say so whatever the cells are."""
    without = pa.table({"x": [1.0], "when": pa.array([1], pa.date32()), "text": ["a"], "b": pa.nulls(1)})
    path = stored(without.set_column(3, "b", pa.array([2.0])), tmp_path / name)
    assert Files(path, Reading(columns="*")).columns == ("x", "b")
    stored(without, path)
    assert Files(path, Reading(columns=["x"])).columns == ("x",)
    for columns in ("*", ["b"]):
        with pytest.raises(InvalidInput, match=r"column 'b' does not hold numbers: leave it out of --columns"):
            Files(path, Reading(columns=columns))
    with pytest.raises(InvalidInput, match="'when' does not hold numbers"):
        Files(path, Reading(columns=["when"]))


def test_users_are_numbered_over_the_files_in_sorted_order_or_in_that_of_a_list(tmp_path: Path) -> None:
    for name, value in (("b", 2.0), ("a", 1.0), ("c", 3.0)):
        np.save(tmp_path / f"{name}.npy", np.full((2, 1), value))
    population = Files(str(tmp_path / "*.npy"))
    assert [(chunk.start, *chunk.rows[:, 0]) for chunk in population.chunks()] == [(0, 1, 1), (2, 2, 2), (4, 3, 3)]
    assert values(Files([tmp_path / "c.npy", str(tmp_path / "[ab].npy")]))[:, 0].tolist() == [3, 3, 1, 1, 2, 2]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_an_empty_line_of_one_column_is_a_row_that_moves_no_other(tmp_path: Path, ending: str) -> None:
    """The adversary takes one person's cell away: whoever comes after her keeps her place, and so her number."""
    path = tmp_path / "a.csv"
    found = []
    for cell in ("0.5", ""):
        path.write_bytes(ending.join(["x", *(f"0.{i}" for i in range(300)), cell, "0.3", "0.4", ""]).encode())
        found.append(values(Files(path, Reading(columns="*", missing="drop")))[:, 0])
    assert len(found[0]) == len(found[1]) == 303
    assert np.flatnonzero(found[0] != found[1]).tolist() == [300]
    with pytest.raises(InvalidInput, match="some cells are missing"):
        Files(path, Reading(columns="*")).check()
    path.write_text("\nx\n0.1\n")
    with pytest.raises(InvalidInput, match="begins with an empty line"):
        Files(path, Reading(columns="*"))
    path.write_text("\nx,y\n0.1,0.2\n\n0.3,0.4\n\n")
    assert len(values(Files(path, Reading(columns="*")))) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("gone.csv", "cannot be opened: No such file"),
        ([], "no file was given"),
        (["a.npy", "./a.npy"], "given twice: its rows would count twice"),
        ("empty.parquet", "is empty"),
        ("flat.npy", "holds an array of float64 with 1 dimensions"),
        ("words.npy", "holds an array of str"),
        ("pickled.npy", "holds an array of object"),
        ("two.npz", "holds more than one array"),
        ("none.npz", "holds no array"),
    ],
)
def test_what_is_no_table_is_refused_by_name(
    given: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.parquet").touch()
    np.save("a.npy", np.zeros((2, 2)))
    np.save("flat.npy", np.zeros(2))
    np.save("words.npy", np.array([["a"]]))
    np.save("pickled.npy", np.array([[print]], object))
    np.savez("two.npz", a=np.zeros((2, 2)), b=np.zeros((2, 2)))
    np.savez("none.npz", a=np.zeros(2))
    with pytest.raises(InvalidInput, match=f"{given}' {message}" if isinstance(given, str) else message):
        Files(given, Reading(columns="*"))


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
            Files(tmp_path / name, Reading(columns="*"))
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
    for missing in ("refuse", "drop"):
        with patch.object(arrow, "BLOCK", 1000), pytest.raises(InvalidInput, match=message) as caught:
            Files(tmp_path / "a.csv", Reading(columns="*", missing=missing)).check()
        assert "a.csv" in str(caught.value)
        assert "314159" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


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
            Files(path, Reading(columns="*", missing="drop")).check()
    path.write_bytes(np.random.default_rng(0).bytes(5000))
    with pytest.raises(InvalidInput, match="." if text else name):
        Files(path, Reading(columns="*")).check()


@pytest.mark.parametrize("before", [400, 1200, 3000])
@pytest.mark.parametrize("name", [name for name in WRITERS if "csv" not in name.lower()])
def test_a_file_that_was_appended_to_another_hides_no_rows(name: str, before: int, tmp_path: Path) -> None:
    """A footer tells of the last one, a stream ends with the first; what a reader makes of it looks whole."""
    path = write(tmp_path / name, some_rows(1200, 2))
    other = write(tmp_path / "other" / name, some_rows(before, 2))
    path.write_bytes(other.read_bytes() + path.read_bytes())
    with pytest.raises(InvalidInput, match=name) as caught:
        Files(path, Reading(columns="*", missing="drop")).check()
    if (before == 1200 or name.endswith(".arrow")) and not name.endswith(".npy"):
        assert "is several files, one appended to another" in str(caught.value)


@pytest.mark.parametrize("name", ["text.csv.gz", "packed.npz", "rows.npz", "packed_columns.npz", "checked.parquet"])
def test_a_flipped_bit_is_found_where_the_format_has_a_checksum(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, some_rows(3000, 3))
    Files(path, Reading(columns="*", missing="drop")).check()
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 4
    path.write_bytes(damaged)
    with pytest.raises(InvalidInput, match=name):
        Files(path, Reading(columns="*", missing="drop")).check()


def test_all_files_must_have_the_same_columns_of_numbers(tmp_path: Path) -> None:
    def both(second: str, columns: Any = "*") -> Files:
        for name, text in (("a", "x,y\n1,2\n"), ("b", second)):
            (tmp_path / f"{name}.csv").write_text(text)
        return Files([tmp_path / "a.csv", tmp_path / "b.csv"], Reading(columns=columns))

    for second in ("x,z\n1,2\n", "x,y,z\n1,2,3\n", "y,word,x\n2.5,no,1\n"):
        with pytest.raises(InvalidInput, match=r"b\.csv' .*files before it"):
            both(second)
    with pytest.raises(InvalidInput, match=r"b\.csv' does not go .* no column 'y'"):
        both("x,z\n1,2\n", ["x", "y"])
    with pytest.raises(InvalidInput, match=r"b\.csv' .*column 'y' does not hold numbers"):
        both("x,y\n1,no\n").check()
    assert values(both("x,y,z\n1,2,3\n", ["y", "x"])).tolist() == [[2, 1], [2, 1]]
    assert values(both("y,word,x\n2.5,no,1\n", ["x", "y"])).tolist() == [[1, 2], [1, 2.5]]


def test_one_name_may_begin_another(tmp_path: Path) -> None:
    """pyarrow also finds fields of nested columns by such names."""
    path = stored(pa.table({"a": [1.0], "a.b": [2.0], "ab": [3.0], "n": [{"m": 4.0}]}), tmp_path / "t.parquet")
    assert Files(path, Reading(columns="*")).columns == ("a", "a.b", "ab")
    for name, value in (("a", 1.0), ("a.b", 2.0), ("ab", 3.0)):
        assert values(Files(path, Reading(columns=name))).tolist() == [[value]]
    with pytest.raises(UnknownName):
        Files(path, Reading(columns=["n.m"]))


def test_the_check_refuses_no_rows_and_says_nothing_of_missing_cells(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((0, 2)))
    with pytest.raises(InvalidInput, match="there are no rows to use"):
        Files(tmp_path / "a.npy").check()
    path = write(tmp_path / "many.parquet", some_rows(500, 2))
    with pytest.raises(InvalidInput, match="--missing drop") as caught:
        Files(path, Reading(columns="*")).check()
    assert not any(c.isdigit() for c in str(caught.value))


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


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", ["rows.npy", "columns.npy", "one.parquet", "packed.npz", "plain.arrow"])
def test_memory_does_not_grow_with_the_file(name: str, tmp_path: Path) -> None:
    """After a round over a tenth of it, a round over 110 MB of a file's columns needs hardly any more memory: also of
    a single row group, or record batch."""
    rows = np.random.default_rng(0).random((2_500_000, 12), np.float32)
    if name == "packed.npz":
        rows = np.round(rows)
    paths = [write(tmp_path / str(len(some)) / name, some) for some in (rows[: len(rows) // 10], rows)]
    out = run(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        from tests.plugins.populations.test_files import Files, Path, Reading, totals, unit_box

        def peak():  # not getrusage, whose peak includes that of the process before exec
            return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])

        for path in sys.argv[2:]:
            before, population = peak(), Files(path, Reading(columns=range(11)))
            population.check()
            totals(population, unit_box(11))
        print(peak() - before)
        """,
        str(Path(__file__).parent),
        *map(str, paths),
    )
    assert int(out) < 40_000


def test_whatever_a_file_says_of_pandas_it_can_be_read(tmp_path: Path) -> None:
    for said in (b"[" * 100_000, b"{", b"[]", b'{"index_columns": 1}'):
        rows = pa.table({"x": [1.0]}).replace_schema_metadata({b"pandas": said})
        assert Files(stored(rows, tmp_path / "rows.parquet"), Reading(columns="*")).columns == ("x",)


def test_more_rows_than_the_cap_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((10, 2)))
    with patch.object(reading, "CAP", 9):
        for act in (Files.check, lambda population: totals(population, SQUARE)):
            with pytest.raises(InvalidInput, match="more than 9 rows"):
                act(Files(tmp_path / "a.npy"))


def test_the_users_of_rows_come_in_their_order_without_rows_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("x,who\n1,b\n,a\n2,a\n")
    (tmp_path / "2.csv").write_text("x,who\n3,c\n4,b\n")
    given: dict[str, Any] = {"columns": ["x"], "missing": "drop", "user_column": "who"}
    files = Files([str(tmp_path / "1.csv"), str(tmp_path / "2.csv")], Reading(**given))
    whole = pa.concat_tables(pyarrow.csv.read_csv(tmp_path / f"{i}.csv") for i in (1, 2))
    for found in (files, Arrays(whole, Reading(**given))):
        found.check()
        first, second, third, last = found.users_of_rows().tolist()
        assert first == last
        assert len({first, second, third}) == 3
        assert found.table().ravel().tolist() == [1, 2, 3, 4]
    assert Files([str(tmp_path / "1.csv")], Reading(columns=["x"])).users_of_rows() is None

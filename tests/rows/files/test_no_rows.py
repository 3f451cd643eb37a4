"""Files and addresses that hold no rows that can be read, and what is said of them."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from cloister.core.errors import InvalidInput
from cloister.plugins.populations.files import Files
from cloister.rows.options import Reading
from cloister.rows.places import refuse_foreign_address
from cloister.run.fit import source

TABLE = b"age,dose\n1.5,2\n3,4\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(TABLE, mtime=0), "it is gzip: call it .csv.gz"),
        (b"PAR1" + b"\0" * 99, "it is Parquet: call it .parquet"),
        (b"ARROW1\0\0" + b"\0" * 99, "it is Arrow: call it .arrow"),
        (b"PK\3\4" + b"\0" * 99, "ZIP archive or an Excel workbook"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_another_format_that_is_called_csv_is_named(
    content: bytes, message: str, encoding: str, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        Files(tmp_path / "a.csv", Reading(columns=["age"], encoding=encoding))


@pytest.mark.parametrize("line", ["sep=;\n", "SEP=;\r\n", '"sep=;"\n', "\ufeffsep=;\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_excels_line_on_the_delimiter_is_to_be_taken_away(
    line: str, encoding: str, delimiter: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes((line + "age;dose\n1,5;2\n").encode(encoding))
    with pytest.raises(InvalidInput, match=r"is Excel's sep=;: remove that line, and give --delimiter ';'"):
        Files(path, Reading(columns=["age"], delimiter=delimiter, encoding=encoding))


def test_a_column_may_have_a_name_that_begins_as_excels_line_does(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("sep=x1,dose\n1,2\n")
    assert Files(tmp_path / "a.csv", Reading(columns=["sep=x1"])).table()[:, 0].tolist() == [1]


@pytest.mark.parametrize("cell", ['"1,5"', '"1,000"', "5%", "-", "yes"])
def test_a_cell_that_is_no_plain_number_is_one_for_pandas(cell: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(TABLE + f"{cell},1\n".encode())
    with pytest.raises(InvalidInput) as caught:
        Files(tmp_path / "a.csv", Reading(columns=["age"])).check()
    said = str(caught.value)
    assert "column 'age' does not hold numbers: a cell is no plain number (a point for decimals; no thousands" in said
    assert "pandas reads such files (docs/howto/hospital.md)" in said
    assert "leave it out" not in said


@pytest.mark.parametrize("address", ["s3://bucket/rows.parquet", "HTTP://user:secret@host/rows.csv", "gs://b/a.csv"])
@pytest.mark.parametrize("table", [None, "t"])
def test_a_file_elsewhere_is_fetched_first(address: str, table: str | None) -> None:
    for rows in (address, [address, "b.csv"]):
        with pytest.raises(InvalidInput, match="begins the address of a file elsewhere: fetch it first") as caught:
            source(rows, columns=["age"], table=table)
        assert "secret" not in str(caught.value)


def test_addresses_of_databases_and_paths_are_none_of_files_elsewhere() -> None:
    for rows in ("duckdb:///lake.db", "postgres://h/d", "s3/a.csv", ["a.csv"], None):
        refuse_foreign_address(rows)
    with pytest.raises(InvalidInput, match="give its path alone"):
        refuse_foreign_address("file:///a.csv")


def test_a_pipe_or_a_device_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    for path in (tmp_path / "a.csv", tmp_path / "b.csv", "/dev/null"):
        with pytest.raises(InvalidInput, match=r"is a pipe or a device: .* save them in a file first"):
            Files(path, Reading(columns=["age"]))
    with pytest.raises(InvalidInput, match=r"'-' is no file: .* save them in a file first"):
        Files("-", Reading(columns=["age"]))


def test_a_dictionary_of_numbers_in_a_file_is_named_by_its_type(tmp_path: Path) -> None:
    """Parquet has no such type, and its readers make plain numbers of them."""
    texts = pa.array(["a", "b"]).dictionary_encode()
    table = pa.table({"x": [1.0, 2.0], "y": pa.array([1.0, 2.0]).dictionary_encode(), "t": texts})
    pyarrow.feather.write_feather(table, str(tmp_path / "a.feather"))
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    said = re.escape("column 'y' holds numbers of type dictionary<values=double, indices=int32, ordered=0>: convert")
    with pytest.raises(InvalidInput, match=said):
        Files(tmp_path / "a.feather", Reading(columns=["x", "y"]))
    assert Files(tmp_path / "a.parquet", Reading(columns=["x", "y"])).table().tolist() == [[1, 1], [2, 2]]
    for name in ("a.feather", "a.parquet"):
        with pytest.raises(InvalidInput, match="column 't' does not hold numbers: leave it out"):
            Files(tmp_path / name, Reading(columns=["t"]))
        assert len(Files(tmp_path / name, Reading(columns=["x"], categories={"t": ["a", "b"]})).table()) == 2

"""Rows of CSV files: one person's cell never adds, removes or moves another person's row, or the file is refused."""

from __future__ import annotations

import csv
import gzip
import io
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from cloister.core.errors import InvalidInput
from cloister.plugins.populations.files import Files
from cloister.rows.files import arrow
from cloister.rows.files.csv_rows import LONGEST
from cloister.rows.keywords import Texts
from cloister.rows.options import Reading

Rows = list[tuple[float | None, str]]


def read(path: Path, block: int = arrow.BLOCK) -> Rows:
    """The rows of a file with the columns x, of numbers, and note."""
    found: Rows = []
    with patch.object(arrow, "BLOCK", block):
        for rows, (notes,) in Files(path, Reading(columns=["x"], missing="drop")).beside(["note"]):
            numbers = [None if np.isnan(x) else float(x) for x in rows[:, 0]]
            found += zip(numbers, (note or "" for note in notes.to_pylist()), strict=True)
    return found


def read_by_python(text: str) -> Rows:
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    return [(float(x) if x.strip() else None, note) for x, note in rows[1:]]


def read_by_pandas(text: str) -> Rows:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = pd.read_csv(io.StringIO(text, newline=""), dtype=str, keep_default_na=False)
    return [(float(x) if x.strip() else None, note) for x, note in zip(frame["x"], frame["note"], strict=True)]


def quoted_text(rng: random.Random, end: str) -> str:
    """A table as a writer that quotes cells writes it."""
    out = io.StringIO(newline="")
    quoting: Any = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    writer = csv.writer(out, quoting=quoting, lineterminator=end)
    writer.writerow(["x", "note"])
    for _ in range(rng.randrange(1, 8)):
        note = "".join(rng.choices(['"', ",", "\n", "\r", "a", "é", " ", "\r\n", "b"], k=rng.randrange(7)))
        writer.writerow([rng.randrange(100) / 4, note])
    text = out.getvalue()
    return text.removesuffix(end) if rng.random() < 0.3 else text


def broken_text(rng: random.Random, end: str) -> str:
    """Anything that has quotes, delimiters and line breaks."""
    tokens = ['"', '"', ",", end, end, "1", "2", "a", " ", '""', "1,", ',"', '"' + end, "2,"]
    text = "".join(rng.choices([*tokens, "\n", "\r"], [40] * len(tokens) + [1, 1], k=rng.randrange(1, 25)))
    return f"x,note{end}{text}"


@pytest.mark.parametrize("make", [quoted_text, broken_text])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_rows_are_those_of_python_and_pandas_wherever_blocks_end(
    make: Callable[[random.Random, str], str], end: str, tmp_path: Path
) -> None:
    rng, path, accepted = random.Random(f"{make.__name__} {end!r}"), tmp_path / "a.csv", 0
    for _ in range(200):
        text = make(rng, end)
        path.write_bytes(("\ufeff" if rng.random() < 0.1 else "").encode() + text.encode())
        try:
            rows = read(path)
        except InvalidInput as error:
            said = str(error)  # before 3.13, Python's writer quotes no line break but its own
            assert make is not quoted_text or "look like rows" in said or "another line break" in said, text
            for block in (rng.randrange(9, 40), rng.randrange(9, 100)):
                with pytest.raises(InvalidInput):
                    read(path, block)
            continue
        accepted += 1
        assert rows == read_by_python(text), text
        if end != "\r":  # after which pandas loses an empty first cell
            assert rows == read_by_pandas(text), text
        for block in (rng.randrange(9, 40), rng.randrange(9, 100)):
            try:
                assert read(path, block) == rows, (text, block)
            except InvalidInput as error:
                assert "has a line of more than" in str(error)  # noqa: PT017
    assert accepted > 10


LINE, HEAD = "30,10,fine\n", "age,dose,comment\n"


def readers(path: Path) -> dict[str, Callable[[], int]]:
    """The number of rows that each way of reading finds."""

    def counted(population: Files) -> int:
        with population:
            population.check()
            return population.rows

    chosen: Any = {"columns": ["age", "dose"]}
    return {
        "threads": lambda: counted(Files(path, Reading(threads=2, **chosen))),
        "beside": lambda: sum(len(rows) for rows, _ in Files(path, Reading(**chosen)).beside(["comment"])),
        "users": lambda: counted(Files(path, Reading(user_column="comment", **chosen))),
        "words": lambda: counted(Files(path, Reading(described=[Texts("comment")], **chosen))),
        "category": lambda: counted(Files(path, Reading(categories={"comment": ["fine"]}, **chosen))),
    }


def write(folder: Path, text: str) -> list[Path]:
    paths = [folder / "a.csv", folder / "a.csv.gz"]
    paths[0].write_bytes(text.encode())
    paths[1].write_bytes(gzip.compress(text.encode(), 1))
    return paths


def test_a_line_break_in_a_quoted_cell_begins_no_row_where_a_block_ends(tmp_path: Path) -> None:
    """Her comment lies across the end of the first block."""
    before = (2**21 - 20 - len(HEAD)) // len(LINE)
    for end in range(3):
        her = '30,10,"vitals' + "." * end + ":\n" + "no row, but a line\n" * 20 + 'end"\n'
        for path in write(tmp_path, HEAD + LINE * before + her + LINE * 99):
            for name, count in readers(path).items():
                assert count() == before + 100, (name, path)


REFUSED: dict[str, tuple[str, str]] = {
    "a quote that is never closed": (
        HEAD + LINE * 100 + '1,2,"urgent\n' + LINE * 20_000,
        "has a quote in line 102 that is never closed",
    ),
    "one near the end": (
        HEAD + LINE * 100 + '1,2,"urgent\n' + LINE * 20,
        "has a quote in line 102 that is never closed",
    ),
    "one in the header": ('age,dose,"comment\n' + LINE * 20, "has a quote in line 1 that is never closed"),
    "one that another person's quote closes": (
        HEAD + LINE * 100 + '1,2,"urgent\n' + LINE * 9 + '1,2,"fine"\n' + LINE,
        "a cell that begins with a quote in line 102 and goes on behind the next one, in line 112",
    ),
    "a quote that is not doubled": (
        HEAD + LINE + '1,2,"he said "ok""\n' + LINE,
        "line 3 and goes on behind the next one",
    ),
    "a backslash before a quote": (
        HEAD + LINE + '1,2,"he said \\"ok"\n' + LINE,
        "line 3 and goes on behind the next one",
    ),
    "a writer that does not quote": (
        HEAD + '1,2,6" tall\n' + LINE + '1,2,"urgent\n' + "3,5\n" + '1,2,5"\n' + LINE,
        r"a quote inside an unquoted cell \(line 2\), and a quoted cell with line breaks \(line 4\)",
    ),
    "rows between two people's quotes": (
        HEAD + LINE + '1,2,"urgent\n' + LINE * 3 + '1,2,5"\n' + LINE,
        r"quoted cell whose lines look like rows of their own \(it opens in line 3\).* save the table as Parquet",
    ),
    "the next row, whose last cell ends with a quote": (
        HEAD + LINE + '1,2,"urgent, really\n' + '1,2,5"\n' + LINE,
        r"quoted cell whose lines look like rows of their own \(it opens in line 3\).* save the table as Parquet",
    ),
    "rows among which one would be refused": (
        HEAD + LINE + '1,2,"urgent\n' + LINE + "-,2,x\n\n" + '1,2,5"\n' + LINE,
        r"lines look like rows of their own \(it opens in line 3\)",
    ),
    "rows between quotes of a cell in the middle": (
        "age,comment,dose\n" + '1,"urgent,2\n' + "3,x,4\n" + '5,6",7\n' + "8,x,9\n",
        r"lines look like rows of their own \(it opens in line 2\)",
    ),
    "a carriage return outside quotes": (HEAD + LINE * 2 + "1,2,x\r119,99,y\n", "another line break .* in line 4"),
    "a longer line end outside quotes": (HEAD + LINE * 2 + "1,2,x\r\n119,99,y\n", "first line by LF, .* in line 4"),
    "a shorter line end outside quotes": (
        (HEAD + LINE * 2).replace("\n", "\r\n") + "1,2,x\n119,99,y\r\n",
        "first line by CRLF, .* in line 4",
    ),
    "a line feed among carriage returns": (
        (HEAD + LINE * 2).replace("\n", "\r") + "1,2,x\n119,99,y\r",
        "first line by CR, .* in line 4",
    ),
    "the same, beside quotes": (HEAD + '1,2,"x\ry"\n' + "1,2,x\r119,99,y\n", "another line break .* in line 3"),
    "a quoted line of several columns": (HEAD + LINE + '""\n' + LINE, "more or fewer cells"),
}


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("block", [100, arrow.BLOCK])
def test_a_file_whose_rows_are_not_sure_is_refused_by_every_reader(what: str, block: int, tmp_path: Path) -> None:
    text, said = REFUSED[what]
    for path in write(tmp_path, text):
        for name, count in readers(path).items():
            with (
                patch.object(arrow, "BLOCK", block),
                pytest.raises(InvalidInput, match=f"{said}|a line of more than 100 bytes") as caught,
            ):
                count()
            assert "urgent" not in str(caught.value), name


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ["processes", "dask"])
def test_workers_read_and_refuse_the_same_rows(engine: str, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text(HEAD + LINE * 10 + '1,2,"line\nbreak"\n' + LINE)
    bad.write_text(HEAD + LINE * 250_000 + '1,2,"urgent\n' + LINE * 20)  # beyond the block that says which columns
    with Files(good, Reading(columns=["age", "dose"], workers=1, engine=engine)) as population:
        population.check()
        assert population.rows == 12
    with (
        Files(bad, Reading(columns=["age", "dose"], workers=1, engine=engine)) as population,
        pytest.raises(InvalidInput, match="line 250002 that is never closed"),
    ):
        population.check()


def test_a_quoted_cell_with_line_breaks_has_a_stated_length(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for length, fits in ((LONGEST, True), (LONGEST + 1, False)):
        path.write_text(f'x,note\n1,"\n{"a" * (length - 2)}"\n2,b\n')
        if fits:
            assert [x for x, _ in read(path)] == [1, 2]
        else:
            with pytest.raises(InvalidInput, match=r"line 2 that is not closed within 131,072 bytes"):
                read(path)
    path.write_text(f'x,note\n1,"{"a" * 10**6}"\n2,b\n')  # without line breaks it hides no row
    assert [x for x, _ in read(path)] == [1, 2]


@pytest.mark.parametrize("length", [99, 100, 101, 150, 199])
def test_whether_a_row_is_too_long_does_not_depend_on_where_blocks_end(length: int, tmp_path: Path) -> None:
    path, found = tmp_path / "a.csv", set()
    for shift in range(0, 120, 7):
        path.write_text("x,note\n" + f"1,{'b' * shift}\n" * 2 + f"2,{'a' * (length - 2)}\n3,c\n")
        try:
            found.add(len(read(path, 130)))
        except InvalidInput:
            found.add(-1)
    assert found == ({4} if length <= 130 else {-1})


def test_encodings_are_checked_as_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for encoding in ("utf-16", "latin-1"):
        path.write_bytes((HEAD + LINE * 100 + '1,2,"urgent\n' + LINE * 20).encode(encoding))
        with pytest.raises(InvalidInput, match="line 102 that is never closed"):
            Files(path, Reading(columns=["age", "dose"], encoding=encoding)).check()
        path.write_bytes((HEAD + LINE * 100 + '1,2,"two\nlines"\n' + LINE * 20).encode(encoding))
        assert len(Files(path, Reading(columns=["age", "dose"], encoding=encoding)).table()) == 121


def test_a_quote_inside_an_unquoted_cell_is_a_quote(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('x,note\n1,6" tall\n2,"a ""b"", c"\n3, "d"\n4,5\'6"\n')
    assert (
        read(path) == [(1, '6" tall'), (2, 'a "b", c'), (3, ' "d"'), (4, "5'6\"")] == read_by_python(path.read_text())
    )


def test_cells_that_look_like_missing_ones_are_kept_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    notes = ["NA", "Null", "nan", "N/A", "007", ""]
    path.write_text("x,note\n" + "".join(f"1,{note}\n" for note in notes))
    assert [note for _, note in read(path)] == notes


NOTES = (
    "Plan:\n5 mg, twice a day\n",
    "dear all,\n1, 2 and 3 are fine\nand 4, too",
    "30,10 is\nwhat the device said",
    "see below\n\n30,10,fine\n31,11,fine\n",
    'he said "30,10"\nand left, at 3',
)
"""Free text of several lines, some with commas and numbers."""


@pytest.mark.parametrize("columns", [["x", "note"], ["note", "x"], ["x", "note", "more"]])
def test_ordinary_notes_of_several_lines_that_pandas_wrote_are_read(columns: list[str], tmp_path: Path) -> None:
    path, frame = tmp_path / "a.csv", pd.DataFrame({"x": 1.5, "note": NOTES * 3, "more": "a, b"})
    frame[columns].to_csv(path, index=False)
    for block in (arrow.BLOCK, 300):
        assert read(path, block) == [(1.5, note) for note in NOTES * 3]


def test_a_byte_order_mark_in_a_cell_is_the_cells_wherever_blocks_end(tmp_path: Path) -> None:
    """It hides no quote either: after it, a quote is inside an unquoted cell."""
    path = tmp_path / "a.csv"
    path.write_text("note,x\n" + '\ufeff"a,1\n' * 20)
    for block in range(10, 40):
        assert read(path, block) == [(1, '\ufeff"a')] * 20


def test_a_nul_byte_in_a_cell_ends_no_cell(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    text = 'x,note\n1,a\0b\n2,"\0,\n\0"\n3,\0\n'
    path.write_text(text)
    for block in (arrow.BLOCK, 13):
        assert read(path, block) == [(1, "a\0b"), (2, "\0,\n\0"), (3, "\0")]
    path.write_text(text + "4\0,b\n")
    with pytest.raises(InvalidInput, match="'x' does not hold numbers"):
        read(path)

"""Parquet files that DuckDB reads: the exact integers of our own pass over them, and its errors."""

from __future__ import annotations

import decimal
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

from cloister.core.domains import Box
from cloister.core.errors import CloisterError, InvalidInput
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Rows, count, vector_sum
from cloister.plugins.populations.files import Files
from cloister.plugins.populations.queried_files import QueriedFiles
from cloister.run.fit import fit, source
from cloister.run.request import Request
from tests.engines.engine_rows import Halves, answers as halved, some_rows, write
from tests.plugins.populations.test_files import some_rows as odd_rows, table
from tests.sql.rounds import answers


def asked(domain: Any) -> list[Any]:
    """Counts, sums and offsets, by the nearest of some centres."""
    centers = domain.snap(np.random.default_rng(1).uniform(-1, 1, (5, domain.dimension)))
    near = NearestCenter(centers, domain.max_norm, int(domain.max_norm) // 3)
    return [(count, near), (vector_sum, near.offsets()), (vector_sum, Rows.of(near, domain))]


def same(paths: Any, domain: Any, **options: Any) -> None:
    """Check that both populations find the same, of so many usable rows."""
    wanted = Files(paths, **options)
    with QueriedFiles(paths, **options) as found:
        assert (found.columns, found.selection, found.paths) == (wanted.columns, wanted.selection, wanted.paths)
        found.check()
        wanted.check()
        assert found.people == wanted.people
        assert found.marks(b"key") == wanted.marks(b"key")
        mine, theirs = (answers(population, domain, *asked(domain)) for population in (found, wanted))
    assert all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that our own pass reads in rounds."""
    seen, gather = list[int](), Files.gather

    def told(self: Files, *args: Any) -> Any:
        seen.append(self.rows)
        return gather(self, *args)

    monkeypatch.setattr(Files, "gather", told)
    return seen


@pytest.mark.parametrize("domain", [Box((-1.0,) * 3, (1.0,) * 3), Box((-0.7, -1.0, 0.3), (0.7, 0.1, 0.4))])
def test_the_integers_are_those_of_our_own_pass(domain: Box, tmp_path: Path, counted: list[int]) -> None:
    for i, n in enumerate((3000, 1, 0, 500)):
        rows = odd_rows(n, 3, i)
        rows[1::97, 1], rows[2::89, 2], rows[3::7, 0] = np.inf, -np.inf, -0.0
        pyarrow.parquet.write_table(table(rows), tmp_path / f"{i}.parquet", row_group_size=777)
    same(str(tmp_path / "*.parquet"), domain, columns="*", missing="drop")
    assert len(counted) == 1, "DuckDB has read the rows, and our own pass once more"


def test_columns_stand_in_any_order_and_have_any_type_in_each_file(tmp_path: Path) -> None:
    """Integers beyond 2^53 beside floats are rounded once: types are not made alike before they are read."""
    kinds = [pa.int64(), pa.float32(), pa.uint64(), pa.int8(), pa.float16(), pa.float64(), pa.bool_(), pa.uint32()]
    ends = {pa.int64(): [2**53 + 1, -(2**53) - 1, 2**62 + 513], pa.uint64(): [2**64 - 1, 2**63 + 1025, 0]}
    for i, kind in enumerate(kinds):
        first = pa.array(ends.get(kind, [True, False, None] if kind == pa.bool_() else [1, 0, None]), kind)
        other = pa.array([decimal.Decimal("0.1"), decimal.Decimal("-123456789012345678901.123456789"), None])
        columns = {"x": first, "y": other, f"of {i}": pa.array(["text"] * 3), "more": first}
        names = list(columns) if i % 2 else list(columns)[::-1]
        pyarrow.parquet.write_table(pa.table({name: columns[name] for name in names}), tmp_path / f"{i}.parquet")
    domain = Box((-(2.0**63), -2e20), (2.0**64, 2e20))
    same(str(tmp_path / "*.parquet"), domain, columns=["y", "x"][::-1], missing="drop")


def test_a_question_without_a_form_in_sql_is_read_by_our_own_pass(many: list[Path], counted: list[int]) -> None:
    told = list[str]()
    with QueriedFiles(many, "*", told=told.append) as population:
        assert halved(population, Halves()) == halved(Files(many, "*"), Halves())
    assert len(told) == 1
    assert "rows are located in Python" in told[0]


def test_files_may_have_any_names(tmp_path: Path) -> None:
    """DuckDB takes names for patterns, and reads columns from names of folders."""
    names = [
        "a*.parquet",
        "a?.parquet",
        "ab.parquet",
        "[ab].parquet",
        "quo'te\".parquet",
        "x=7/a.parquet",
        "é ☃.parquet",
    ]
    for i, name in enumerate(names):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, some_rows(40 + i, i))
    domain = Box((-1.0,) * 2, (1.0,) * 2)
    for name in names:
        same([tmp_path / name], domain, columns="*")
    same([tmp_path / name for name in names], domain, columns="*")
    odd = write(tmp_path / "a\\[b].parquet", some_rows(3))
    if os.sep == "/":
        with pytest.raises(InvalidInput, match="cannot read files of such names"):
            QueriedFiles(odd, "*")


def test_columns_may_have_any_names(tmp_path: Path) -> None:
    names = ['x"; DROP TABLE rows; --', "y'y", "a.b", "rows", "*", "rowid", "c0", "SELECT", "é ☃"]
    rows = np.random.default_rng(0).uniform(-1, 1, (50, len(names)))
    struct = pa.array([{"b": 5.0}] * 50)
    pyarrow.parquet.write_table(
        pa.table({**{name: rows[:, j] for j, name in enumerate(names)}, "a": struct}), tmp_path / "a.parquet"
    )
    same(tmp_path / "a.parquet", Box((-1.0,) * 9, (1.0,) * 9), columns=names)
    pyarrow.parquet.write_table(pa.table({"x": [1.0], "X": [2.0], "y": [3.0]}), tmp_path / "b.parquet")
    same(tmp_path / "b.parquet", Box((-1.0,), (9.0,)), columns=["y"])
    with pytest.raises(InvalidInput, match="column than 'x' whose name differs in capital letters alone"):
        QueriedFiles(tmp_path / "b.parquet", ["x", "y"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"users": "x"}, "reads no rows of users"),
        ({"workers": 2}, "no workers or scheduler"),
        ({"scheduler": "tcp://127.0.0.1:1"}, "no workers or scheduler"),
        ({"threads": 0}, "threads is 0"),
        ({"delimiter": ";"}, "are for CSV files"),
    ],
)
def test_what_does_not_go_with_it_is_refused(options: dict[str, Any], message: str, many: list[Path]) -> None:
    with pytest.raises(InvalidInput, match=message):
        source([str(path) for path in many], ["x", "y"], "refuse", engine="duckdb", **options)


def test_other_formats_are_refused(tmp_path: Path) -> None:
    for name in ("a.csv", "a.feather"):
        path = write(tmp_path / name, some_rows(5))
        with pytest.raises(InvalidInput, match=f"{name}': engine 'duckdb' reads Parquet files only"):
            QueriedFiles([write(tmp_path / "a.parquet", some_rows(5)), path], ["x", "y"])


def test_a_damaged_file_is_named_and_no_row_is_quoted(many: list[Path]) -> None:
    whole = bytearray(many[3].read_bytes())
    whole[100:1500] = bytes(1400)
    many[3].write_bytes(whole)
    with QueriedFiles(many, "*") as population, pytest.raises(InvalidInput, match=r"part-03\.parquet' cannot be read"):
        population.check()


def test_a_run_finds_what_serial_finds_and_leaves_nothing(many: list[Path], tmp_path: Path) -> None:
    os.chdir(tmp_path)
    before = set(Path(tmp_path).iterdir())
    request = Request(k=2, method="lloyd", epsilon=1.0, bounds=(-1.0, 1.0), rows=4000, not_private=True, seed=1,
                      components={"counts": "exact", "sums": "exact"})  # fmt: skip
    centers = list[Any]()
    for engine in ("duckdb", None):
        told = list[int]()
        with source([str(path) for path in many], ["x", "y"], "refuse", told.append, engine) as population:
            centers.append(fit(request, population).centers)
        assert sum(told) % 3600 == 0
        assert told
    assert np.array_equal(*centers)
    assert set(Path(tmp_path).iterdir()) == before


def test_the_kind_of_a_failure_is_told_but_not_the_engine_s_words(many: list[Path]) -> None:
    with QueriedFiles(many, "*") as population:
        population._parquet._backend.raw_sql("SET memory_limit = '1KB'")
        with pytest.raises(CloisterError, match=r"duckdb could not answer \(\w+\): nothing was answered"):
            population.check()


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
@pytest.mark.parametrize("mixed", [False, True], ids=["of one type", "of two types"])
def test_what_statistics_of_a_file_leave_out_is_missing(kind: str, mixed: bool, tmp_path: Path) -> None:
    """They say nothing of NaN: DuckDB then leaves comparisons out, and takes a column for the one number in it."""
    for number in (None, 0.0, 0.5):
        values = np.random.default_rng(0).uniform(-1, 1, 200) if number is None else np.full(200, number)
        values[7] = np.nan
        x = pa.array(values.astype(kind))
        pyarrow.parquet.write_table(pa.table({"x": x, "y": np.linspace(-1, 1, 200)}), tmp_path / "0.parquet")
        if mixed:
            pyarrow.parquet.write_table(pa.table({"x": [1, 0], "y": [0.25, 0.5]}), tmp_path / "1.parquet")
        same(str(tmp_path / "*.parquet"), Box((-1.0,) * 2, (1.0,) * 2), columns="*", missing="drop")
        with (
            QueriedFiles(str(tmp_path / "*.parquet"), "*") as files,
            pytest.raises(InvalidInput, match="missing or infinite"),
        ):
            files.check()


@pytest.mark.parametrize("mixed", [False, True], ids=["of one type", "of two types"])
def test_decimals_of_many_digits_are_rounded_once(mixed: bool, tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).integers(10**17, 10**18, (300, 2))
    x = pa.array([decimal.Decimal(int(a)) * 10**18 + int(b) for a, b in numbers], pa.decimal128(38, 0))
    pyarrow.parquet.write_table(pa.table({"x": x}), tmp_path / "0.parquet")
    if mixed:
        pyarrow.parquet.write_table(pa.table({"x": [1.0]}), tmp_path / "1.parquet")
    wanted = np.sort(Files(str(tmp_path / "*.parquet"), "*").table()[:, 0])
    with QueriedFiles(str(tmp_path / "*.parquet"), "*") as files:
        files.check()
        stage = files._table._usable
        (cells,) = (files._table._database.answer(stage.table)[name].to_numpy() for name in stage.row)
    assert np.array_equal(np.sort(cells), wanted)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([pa.array([decimal.Decimal(10) ** 50], pa.decimal256(60, 0))], "more than 38 digits"),
        ([pa.array([1]), pa.array(["1.0"])], "of different types in these files"),
        ([pa.array([True]), pa.array([1])], "of different types in these files"),
    ],
)
def test_columns_that_duckdb_would_read_otherwise_are_refused(columns: Any, message: str, tmp_path: Path) -> None:
    for i, column in enumerate(columns):
        pyarrow.parquet.write_table(pa.table({"x": column}), tmp_path / f"{i}.parquet")
    categories = {"x": ["1", "true"]} if len(columns) > 1 else None
    with pytest.raises(InvalidInput, match=f"{message}.*leave --engine out"):
        QueriedFiles(str(tmp_path / "*.parquet"), ["x"], categories=categories)

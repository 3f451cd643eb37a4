"""Rows in memory: what is used of them, what is refused, and that neither order nor chunks matter."""

from __future__ import annotations

import datetime
import io
import tracemalloc
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays as any_array

from cloister.core.domains import Box
from cloister.core.errors import InvalidInput, UnknownName
from cloister.plugins.populations import arrays
from cloister.plugins.populations.arrays import Arrays
from tests.plugins.populations.exact import totals, unit_box


def some_rows(n: int, dimension: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((n, dimension))


cells = st.floats(-0.5, 1.5) | st.sampled_from([0.0, 0.5, 1.0, np.nan, np.inf])
tables = st.integers(1, 3).flatmap(
    lambda d: any_array(np.float64, st.tuples(st.integers(0, 20), st.just(d)), elements=cells)
)


@settings(max_examples=50, deadline=None)
@given(rows=tables, size=st.integers(1, 30), shuffle=st.randoms(use_true_random=False))
def test_in_any_order_and_any_chunks_the_summaries_of_single_rows_add_up(
    rows: np.ndarray, size: int, shuffle: Any
) -> None:
    domain = unit_box(rows.shape[1])
    single = [np.zeros(len(t), np.int64) for t in totals(Arrays(rows[:0]), domain)]
    for row in rows:
        single = [a + b for a, b in zip(single, totals(Arrays(row[None]), domain), strict=True)]
    order = list(range(len(rows)))
    shuffle.shuffle(order)
    with patch.object(arrays, "chunk_rows", lambda dimension: size):
        assert totals(Arrays(rows[order]), domain) == [s.tolist() for s in single]


def test_the_mark_of_rows_is_the_same_in_every_version() -> None:
    """A run that an earlier one began goes on, however many rows are worked on at once."""
    rows = np.arange(100_000 * 8, dtype=float).reshape(100_000, 8)
    assert Arrays(rows).marks(bytes(32))["the rows"].hex()[:16] == "07f646d5ffff951d"


def test_users_of_a_full_chunk_with_missing_rows_keep_their_numbers() -> None:
    """Positions in a chunk take 16 bits."""
    size = arrays.chunk_rows(1)
    rows = np.zeros((size, 1))
    rows[0] = np.nan
    population = Arrays(rows, missing="drop")
    totals(population, unit_box(1))
    (part,) = population._parts
    assert part.users(7).tolist() == list(range(8, size + 7))


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "i8", "f2", "f4", "f8", "g", ">f8", ">i4"])
def test_every_type_of_number_means_its_value(dtype: str) -> None:
    for order in "CF":
        rows = (some_rows(300, 3) > 0.4).astype(dtype, order=order)  # type: ignore[call-overload]
        assert totals(Arrays(rows), unit_box(3)) == totals(Arrays(rows.astype(float)), unit_box(3)), order


def test_columns_of_an_array_are_positions_in_the_order_asked() -> None:
    rows = some_rows(50, 4)
    population = Arrays(rows, columns=[2, 0])
    assert (population.columns, population.dimension) == (("2", "0"), 2)
    assert totals(population, unit_box(2)) == totals(Arrays(rows[:, [2, 0]].copy()), unit_box(2))
    assert Arrays(rows, columns=["2", "0"]).columns == ("2", "0")
    assert totals(Arrays(pd.DataFrame(rows), columns=[1]), unit_box(1)) == totals(Arrays(rows[:, 1:2]), unit_box(1))


FRAMES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_gives_what_its_numbers_give(kind: str) -> None:
    rows = some_rows(50_000, 3)
    frame = FRAMES[kind]({"a": rows[:, 0], "b": rows[:, 1], "yes": rows[:, 2] > 0.5})
    rows[:, 2] = rows[:, 2] > 0.5
    population = Arrays(frame)
    assert population.columns == ("a", "b", "yes")
    population.check()
    assert totals(population, unit_box(3)) == totals(Arrays(rows), unit_box(3))
    assert totals(Arrays(frame, columns=["b", "a"]), unit_box(2)) == totals(Arrays(rows[:, [1, 0]].copy()), unit_box(2))


def read_csv(library: Any, text: str) -> Any:
    source = io.BytesIO(text.encode())
    return pyarrow.csv.read_csv(source) if library is pa else library.read_csv(source)


@pytest.mark.parametrize("library", [pd, pl, pa])
def test_one_cell_of_text_never_decides_which_columns_are_released(library: Any) -> None:
    """Every reader makes a column's type from its cells: a column that is passed over would tell that one row is not a
    number."""
    clean, other = "a,b\n1,2\n3,4\n", "a,b\n1,2\n3,x\n"
    assert Arrays(read_csv(library, clean)).columns == ("a", "b")
    with pytest.raises(InvalidInput, match=r"column 'b' does not hold numbers.*columns=.*"):
        Arrays(read_csv(library, other))
    for text in (clean, other):
        assert Arrays(read_csv(library, text), columns=["a"]).columns == ("a",)
    with pytest.raises(InvalidInput, match="column 'b' does not hold numbers"):
        Arrays(read_csv(library, other), columns=["a", "b"])


UNNUMBERED: dict[str, tuple[Any, Any]] = {
    "objects that are numbers": (pd.DataFrame, pd.Series([1.0], dtype=object)),
    "categories that are numbers": (pd.DataFrame, pd.Categorical([1])),
    "times of pandas": (pd.DataFrame, [datetime.datetime(2020, 1, 1)]),
    "no cells in polars": (pl.DataFrame, [None]),
    "no cells in pyarrow": (pa.table, pa.nulls(1)),
    "a dictionary of pyarrow": (pa.table, pa.array(["x"]).dictionary_encode()),
}
"""What makes a frame, and its column without a type of numbers."""


@pytest.mark.parametrize("name", UNNUMBERED)
def test_a_frame_is_read_by_its_types_alone_and_no_column_is_passed_over(name: str) -> None:
    make, column = UNNUMBERED[name]
    frame = make({"a": [1.0], "b": column})
    with pytest.raises(InvalidInput, match="column 'b' does not hold numbers"):
        Arrays(frame)
    with pytest.raises(InvalidInput, match="column 'b' does not hold numbers"):
        Arrays(frame, columns=["b"])
    population = Arrays(frame, columns=["a"])
    population.check()
    assert population.columns == ("a",)


def test_nulls_in_frames_are_missing_cells() -> None:
    whole = {"i": [1, None, 0], "b": [True, False, None], "f": [0.25, 0.5, 0.75]}
    kinds = {"i": "Int64", "b": "boolean", "f": "double[pyarrow]"}
    nullable = pd.DataFrame({name: pd.array(whole[name], kind) for name, kind in kinds.items()})
    for frame in (pl.DataFrame(whole), pa.table(whole), nullable):
        with pytest.raises(InvalidInput, match="missing or infinite"):
            Arrays(frame).check()
        population = Arrays(frame, missing="drop")
        population.check()
        assert totals(population, unit_box(3)) == totals(Arrays(np.array([[1, 1, 0.25]])), unit_box(3))


def test_large_integers_are_rounded_correctly() -> None:
    values = [2**53 + 1, 2**63 - 1, -(2**53) - 3]
    for rows in (np.array(values)[:, None], pd.DataFrame({"x": values}), pl.DataFrame({"x": [*values, None]})):
        got = np.concatenate([c.copy() for c in Arrays(rows)._chunks()])[:, 0]
        assert got[:3].tolist() == [float(v) for v in values]


def test_a_column_that_is_not_there_is_named_with_its_neighbours() -> None:
    with pytest.raises(UnknownName, match=r"no column 'agee': did you mean age\?") as caught:
        Arrays(pl.DataFrame({"age": [1.0], "size": [2.0]}), columns=["size", "agee"])
    assert (caught.value.kind, caught.value.name) == ("column", "agee")
    for position in (3, -1):
        with pytest.raises(UnknownName, match=f"no column '{position}'"):
            Arrays(some_rows(5, 3), columns=[position])


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        (np.zeros(3), None, r"rows\.reshape\(-1, 1\)"),
        (np.array([[1, None]], object), None, "convert it to numbers"),
        (np.zeros((2, 2), complex), None, "convert it to numbers"),
        (np.ma.masked_array(np.zeros((2, 2)), True), None, "fill masked cells"),
        (np.zeros((3, 0)), None, "there are no columns"),
        ([[1.0]], None, "rows are a list: give a NumPy array"),
        (pd.Series([1.0]), None, "rows are a Series"),
        (pl.LazyFrame({"a": [1.0]}), None, "in memory"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), None, "more than one column is called .a."),
        (pl.DataFrame({"a": ["x"]}), None, "column 'a' does not hold numbers: leave it out of --columns"),
    ],
)
def test_what_cannot_be_used_is_refused_with_advice(rows: Any, columns: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Arrays(rows, columns)


def test_options_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"missing is 'ignore': choose from refuse \| drop"):
        Arrays(some_rows(2, 2), missing="ignore")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="first user's number"):
        Arrays(some_rows(2, 2), first=-1)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_check_refuses_a_missing_cell_without_saying_which_or_how_many(bad: float) -> None:
    rows = some_rows(70_000, 2)
    Arrays(rows.copy()).check()
    rows[61_803, 1] = bad
    with pytest.raises(InvalidInput, match="--missing drop") as caught:
        Arrays(rows).check()
    assert not any(c.isdigit() for c in str(caught.value))
    Arrays(rows, missing="drop").check()


def test_the_check_refuses_a_table_without_rows_to_use() -> None:
    for rows in (np.zeros((0, 2)), np.full((5, 2), np.nan), pl.DataFrame({"a": pl.Series([], dtype=pl.Float64)})):
        with pytest.raises(InvalidInput, match="there are no rows to use"):
            Arrays(rows, missing="drop").check()


def test_more_rows_than_the_cap_are_refused_before_they_are_read() -> None:
    rows = np.broadcast_to(np.zeros((1, 1)), (2**31 + 1, 1))
    for act in (Arrays.check, lambda population: totals(population, unit_box(1))):
        with pytest.raises(InvalidInput, match="more than 2147483648 rows"):
            act(Arrays(rows))


def test_bounds_for_another_number_of_columns_are_refused() -> None:
    """A single column would be stretched over all bounds in silence."""
    with pytest.raises(InvalidInput, match="bounds for 3 columns, but the rows have 1"):
        totals(Arrays(some_rows(5, 1)), unit_box(3))


def test_progress_is_told_about_every_row_of_every_round() -> None:
    rows = some_rows(50_000, 2)
    rows[3] = np.nan
    told: list[int] = []
    population = Arrays(rows, missing="drop", progress=told.append)
    population.check()
    assert not told
    totals(population, unit_box(2))
    totals(population, unit_box(2))
    assert sum(told) == 2 * len(rows)


def test_rows_are_put_on_the_lattice_once_per_domain() -> None:
    rows = some_rows(100, 2)
    population, before = Arrays(rows), totals(Arrays(rows.copy()), unit_box(2))
    assert totals(population, unit_box(2)) == before
    rows[:] = 0.0
    assert totals(population, unit_box(2)) == before
    other = Box((0.0, 0.0), (2.0, 1.0))
    assert totals(population, other) == totals(Arrays(rows), other)


@pytest.mark.parametrize("kind", ["array", "columns", "frame"])
def test_many_rows_need_little_more_than_their_lattice(kind: str) -> None:
    rows: Any = some_rows(500_000, 10)
    if kind == "frame":
        rows = pl.DataFrame(rows)
    tracemalloc.start()
    try:
        population = Arrays(rows, columns=list(range(9, -1, -1)) if kind == "columns" else None)
        population.check()
        totals(population, unit_box(10))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40e6, "the lattice is 20 MB"

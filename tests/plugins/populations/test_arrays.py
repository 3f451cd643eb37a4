"""Rows in memory: what is used of them, what is refused, and that neither order nor chunks matter."""

from __future__ import annotations

import datetime
import tracemalloc
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays as any_array

from cloister.core.domains import Box
from cloister.core.errors import InvalidInput, UnknownName
from cloister.plugins.populations import arrays
from cloister.plugins.populations.arrays import Arrays
from cloister.rows.options import Reading
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
    assert Arrays(rows).fingerprints(bytes(32))["the rows"].hex()[:16] == "07f646d5ffff951d"


def test_users_of_a_full_chunk_with_missing_rows_keep_their_numbers() -> None:
    """Positions in a chunk take 16 bits."""
    size = arrays.chunk_rows(1)
    rows = np.zeros((size, 1))
    rows[0] = np.nan
    population = Arrays(rows, Reading(missing="drop"))
    totals(population, unit_box(1))
    (part,) = population._parts
    assert part.users(7).tolist() == list(range(8, size + 7))


def test_columns_of_an_array_are_positions_in_the_order_asked() -> None:
    rows = some_rows(50, 4)
    population = Arrays(rows, Reading(columns=[2, 0]))
    assert (population.columns, population.dimension) == (("2", "0"), 2)
    assert totals(population, unit_box(2)) == totals(Arrays(rows[:, [2, 0]].copy()), unit_box(2))
    assert totals(Arrays(pd.DataFrame(rows), Reading(columns=[1])), unit_box(1)) == totals(
        Arrays(rows[:, 1:2]), unit_box(1)
    )
    for position in (4, -1):
        with pytest.raises(UnknownName, match=f"no column '{position}'"):
            Arrays(rows, Reading(columns=[position]))


FRAMES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": lambda data: pd.DataFrame(data).astype(float),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
    "of pyarrow in pandas": lambda data: pd.DataFrame(data).convert_dtypes(dtype_backend="pyarrow"),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_gives_what_its_numbers_give_and_nulls_are_missing_cells(kind: str) -> None:
    rows = some_rows(50_000, 3)
    rows[:, 1:] = rows[:, 1:].round()
    types = {"a": float, "whole": int, "yes": bool}
    data = {name: cells.astype(type).tolist() for (name, type), cells in zip(types.items(), rows.T, strict=True)}
    for row, cells in enumerate(data.values()):
        cells[row] = None
    frame = FRAMES[kind](data)
    with pytest.raises(InvalidInput, match="missing or infinite"):
        Arrays(frame).check()
    population = Arrays(frame, Reading(missing="drop"))
    assert population.columns == ("a", "whole", "yes")
    population.check()
    assert totals(population, unit_box(3)) == totals(Arrays(rows[3:]), unit_box(3))
    assert totals(Arrays(frame, Reading(columns=["whole", "a"])), unit_box(2)) == totals(
        Arrays(rows[2:, 1::-1]), unit_box(2)
    )


UNNUMBERED: dict[str, tuple[Any, Any]] = {
    "objects that are numbers": (pd.DataFrame, pd.Series([1.0], dtype=object)),
    "objects that are texts": (pd.DataFrame, pd.Series(["x"], dtype=object)),
    "categories that are numbers": (pd.DataFrame, pd.Categorical([1])),
    "texts of pandas": (pd.DataFrame, pd.Series(["x"], dtype="string")),
    "texts of polars": (pl.DataFrame, ["x"]),
    "texts of pyarrow": (pa.table, pa.array(["x"])),
    "times of pandas": (pd.DataFrame, [datetime.datetime(2020, 1, 1)]),
    "no cells in pandas": (pd.DataFrame, [None]),
    "no cells in polars": (pl.DataFrame, [None]),
    "no cells in pyarrow": (pa.table, pa.nulls(1)),
    "a dictionary of pyarrow": (pa.table, pa.array(["x"]).dictionary_encode()),
}
"""What makes a frame, and its column without a type of numbers."""


@pytest.mark.parametrize("name", UNNUMBERED)
def test_a_frame_is_read_by_its_types_alone_and_no_column_is_passed_over(name: str) -> None:
    """Libraries make a column's type from its cells: one that is passed over would tell that one row is not a
    number."""
    make, column = UNNUMBERED[name]
    frame = make({"a": [1.0], "b": column})
    for columns in (None, "*", ["b"], ["a", "b"]):
        with pytest.raises(InvalidInput, match=r"column 'b' (does not hold numbers|holds numbers of type).*columns="):
            Arrays(frame, Reading(columns=columns, missing="drop"))
    population = Arrays(frame, Reading(columns=["a"]))
    population.check()
    assert population.columns == ("a",)


def test_large_integers_are_rounded_correctly() -> None:
    values = [2**53 + 1, 2**63 - 1, -(2**53) - 3]
    nulls = {"x": [*values, None]}
    frames = pd.DataFrame({"x": values}), pl.DataFrame(nulls), pa.table({"x": values}), pa.table(nulls)
    for rows in (np.array(values)[:, None], *frames):
        assert Arrays(rows).table()[:, 0].tolist() == [float(v) for v in values]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros(3), r"rows\.reshape\(-1, 1\)"),
        (np.array([[1, None]], object), "convert it to numbers"),
        (np.zeros((2, 2), complex), "convert it to numbers"),
        (np.ma.masked_array(np.zeros((2, 2)), True), "fill masked cells"),
        (np.zeros((3, 0)), "there are no columns"),
        ([[1.0]], "rows are a list: give a NumPy array"),
        (pd.Series([1.0]), "rows are a Series"),
        (pl.LazyFrame({"a": [1.0]}), "in memory"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "more than one column is called .a."),
    ],
)
def test_what_cannot_be_used_is_refused_with_advice(rows: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Arrays(rows)


def test_options_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"missing is 'ignore': choose refuse or drop"):
        Arrays(some_rows(2, 2), Reading(missing="ignore"))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="first user's number"):
        Arrays(some_rows(2, 2), first=-1)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_check_refuses_a_missing_cell_and_a_table_without_rows_to_use(bad: float) -> None:
    rows = some_rows(70_000, 2)
    Arrays(rows.copy()).check()
    rows[61_803, 1] = bad
    with pytest.raises(InvalidInput, match="--missing drop"):
        Arrays(rows).check()
    Arrays(rows, Reading(missing="drop")).check()
    for none in (rows[:0], rows[61_803:61_804], pl.DataFrame({"a": pl.Series([], dtype=pl.Float64)})):
        with pytest.raises(InvalidInput, match="there are no rows to use"):
            Arrays(none, Reading(missing="drop")).check()


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
    population = Arrays(rows, Reading(missing="drop", progress=told.append))
    population.check()
    assert not told
    totals(population, unit_box(2))
    totals(population, unit_box(2))
    assert sum(told) == 2 * len(rows)


def test_rows_are_put_on_the_lattice_of_every_domain() -> None:
    rows = some_rows(100, 2)
    population = Arrays(rows)
    for domain in (unit_box(2), Box((0.0, 0.0), (2.0, 1.0))):
        assert totals(population, domain) == totals(Arrays(rows), domain)


@pytest.mark.parametrize("kind", ["array", "columns", "frame"])
def test_many_rows_need_little_more_than_their_lattice(kind: str) -> None:
    rows: Any = some_rows(500_000, 10)
    if kind == "frame":
        rows = pl.DataFrame(rows)
    tracemalloc.start()
    try:
        population = Arrays(rows, Reading(columns=list(range(9, -1, -1)) if kind == "columns" else None))
        population.check()
        totals(population, unit_box(10))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40e6, "the lattice is 20 MB"

"""Rows that are not in memory yet: what estimators say of them, in Python's words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cloister import KMeans, PublicScaler

FRAME = pd.DataFrame({"a": [0.0, 1.0], "b": [0.5, 0.25]})


@pytest.mark.parametrize("made", [KMeans(2, epsilon=1.0, bounds="-1:1"), PublicScaler("-1:1")])
@pytest.mark.parametrize("rows", ["rows.parquet", Path("rows.csv")])
def test_a_path_is_to_be_read_first(made: Any, rows: Any) -> None:
    with pytest.raises(ValueError, match=r"pandas\.read_parquet\(path\).* 'cloister fit', which takes paths"):
        made.fit(rows)


def test_an_address_is_to_be_given_as_a_table_of_ibis() -> None:
    with pytest.raises(ValueError, match=r"ibis\.connect\(address\)\.table\('NAME'\)"):
        KMeans(2, epsilon=1.0, bounds="-1:1").fit("duckdb:///lake.db")


@pytest.mark.parametrize("made", [KMeans(2, epsilon=1.0, bounds="-1:1"), PublicScaler("-1:1")])
def test_a_lazy_frame_of_polars_is_to_be_collected(made: Any) -> None:
    polars = pytest.importorskip("polars")
    with pytest.raises(ValueError, match=r"lazy LazyFrame of polars: fetch them first, as in rows\.collect\(\)"):
        made.fit(polars.from_pandas(FRAME).lazy())


def test_a_lazy_frame_is_refused_where_labels_are_asked_for() -> None:
    polars = pytest.importorskip("polars")
    made = KMeans(1, epsilon=1.0, bounds="-1:1", rows=2, method="lloyd", options={"rounds": 1}, not_private=True)
    made.fit(FRAME)
    with pytest.raises(ValueError, match=r"rows\.collect\(\)"):
        made.predict(polars.from_pandas(FRAME).lazy())


def test_a_frame_of_dask_is_to_be_computed() -> None:
    frames = pytest.importorskip("dask.dataframe")
    with pytest.raises(ValueError, match=r"rows\.compute\(\)"):
        KMeans(2, epsilon=1.0, bounds="-1:1").fit(frames.from_pandas(FRAME, npartitions=1))


def test_an_array_of_dask_is_to_be_computed() -> None:
    arrays = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match=r"rows\.compute\(\)"):
        KMeans(2, epsilon=1.0, bounds="-1:1").fit(arrays.from_array(FRAME.to_numpy()))


def test_a_relation_of_duckdb_is_to_be_a_table_of_ibis() -> None:
    duckdb = pytest.importorskip("duckdb")
    with (
        duckdb.connect() as connection,
        pytest.raises(ValueError, match=r"rows are a relation of DuckDB: give a table"),
    ):
        KMeans(2, epsilon=1.0, bounds="-1:1").fit(connection.sql("select 1.0 as a"))

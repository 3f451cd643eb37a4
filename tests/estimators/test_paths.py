"""Rows that are not in memory yet: what estimators say of them, in Python's words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cloister import KMeans, PublicScaler

FRAME = pd.DataFrame({"a": [0.0, 1.0], "b": [0.5, 0.25]})
READ = r"pandas\.read_parquet\(path\).* 'cloister fit', which takes paths"


def _lazy() -> Any:
    return pytest.importorskip("polars").from_pandas(FRAME).lazy()


NOT_HERE: dict[str, tuple[Callable[[], Any], str]] = {
    "a path as text": (lambda: "rows.parquet", READ),
    "a path": (lambda: Path("rows.csv"), READ),
    "an address": (lambda: "duckdb:///lake.db", r"ibis\.connect\(address\)\.table\('NAME'\)"),
    "a lazy frame": (_lazy, r"lazy LazyFrame of polars: fetch them first, as in rows\.collect\(\)"),
    "a frame of dask": (
        lambda: pytest.importorskip("dask.dataframe").from_pandas(FRAME, npartitions=1),
        r"rows\.compute\(\)",
    ),
    "an array of dask": (
        lambda: pytest.importorskip("dask.array").from_array(FRAME.to_numpy()),
        r"rows\.compute\(\)",
    ),
    "a relation": (
        lambda: pytest.importorskip("duckdb").sql("select 1.0 as a"),
        "rows are a relation of DuckDB: give a table",
    ),
}


@pytest.mark.parametrize("what", NOT_HERE)
def test_rows_that_are_elsewhere_are_to_be_fetched_first(what: str) -> None:
    made, says = NOT_HERE[what]
    with pytest.raises(ValueError, match=says):
        KMeans(2, epsilon=1.0, bounds="-1:1").fit(made())
    if what in ("a path as text", "a path", "a lazy frame"):
        with pytest.raises(ValueError, match=says):
            PublicScaler("-1:1").fit(made())


def test_a_lazy_frame_is_refused_where_labels_are_asked_for() -> None:
    made = KMeans(1, epsilon=1.0, bounds="-1:1", rows=2, method="lloyd", options={"rounds": 1}, not_private=True)
    made.fit(FRAME)
    with pytest.raises(ValueError, match=r"rows\.collect\(\)"):
        made.predict(_lazy())

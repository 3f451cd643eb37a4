"""Rows of a result in a database: measured and added up as those of a file are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cloister.commands.evaluating import grouped, judged
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.files import Files
from cloister.plugins.populations.sql_table import SqlTable
from cloister.run.fit import fit
from cloister.run.request import Request
from tests.rows.databases.engines import TestEngine

ROWS = np.random.default_rng(0).normal(np.repeat([[-0.5, 0.2], [0.5, -0.3]], 700, axis=0), 0.2)


def test_rows_on_any_engine_are_judged_and_added_up_as_those_of_a_file(engine: TestEngine, tmp_path: Path) -> None:
    """Rows outside the bounds, missing and infinite cells among them."""
    result = fit(
        Request(k=2, epsilon=1.0, delta=1e-6, bounds=(-1, 1), rows=len(ROWS), method="hst-means"), Arrays(ROWS)
    )
    rows = np.concatenate([ROWS, [[np.nan, 0.0], [np.inf, 0.0], [40.0, -1e9]]])
    names = result.columns
    columns = {name: pa.array(rows[:, j], from_pandas=True) for j, name in enumerate(names)}
    with SqlTable(engine.put("judged", pa.table(columns)), list(names), missing="drop") as table:
        seen, measured = grouped(result, table, "drop"), judged(result, table, "drop")
    pq.write_table(pa.table(columns), str(tmp_path / "rows.parquet"))
    own = Files(tmp_path / "rows.parquet", list(names), missing="drop")
    expected, figures = grouped(result, own, "drop"), judged(result, own, "drop")
    assert (seen.rows, seen.left_out, seen.clipped) == (len(ROWS) + 1, 2, expected.clipped)
    np.testing.assert_array_equal(seen.sizes, expected.sizes)
    for name in ("means", "spreads", "unclipped"):
        np.testing.assert_allclose(getattr(seen, name), getattr(expected, name), rtol=1e-12)
    assert (measured.rows, measured.left_out, measured.clipped) == (figures.rows, figures.left_out, figures.clipped)
    one, other = measured.raw.as_dict(1), figures.raw.as_dict(1)
    for name in ("nicv", "k_median", "unclipped_nicv", "unclipped_k_median", "davies_bouldin"):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-9)

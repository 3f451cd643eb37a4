"""Which of many steps a number is on: in an engine's own form, and in any."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cloister.rows.databases.database import Database
from cloister.rows.databases.stage import stepped
from tests.rows.databases.engines import TestEngine


@pytest.mark.parametrize("cuts", [(0,), range(-90, 90, 20), (-99, -98, -98, -97, 3, 4, 5, 6, 100), (-100, *range(30))])
def test_the_step_is_the_number_of_cuts_at_most_as_large(engine: TestEngine, cuts: tuple[int, ...]) -> None:
    of, x = np.array(cuts), np.arange(-100, 101)
    values = np.random.default_rng(0).integers(0, 2**60, len(of) + 1)
    table = engine.put("steps", pa.table({"x": x.astype(float)}))
    database = Database(table)
    own = database.dialect.steps
    query = table.select(table.x, any=stepped(table.x, of, values, 100), own=own(table.x, of, values, 100))
    found = database.answer(query.order_by("x"))
    wanted = values[np.searchsorted(of, x, "right")]
    assert found["any"].to_pylist() == wanted.tolist()
    assert found["own"].to_pylist() == wanted.tolist()

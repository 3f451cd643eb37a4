"""Rounds over a database: the exact integers of rows in memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cloister.core.domains import Box
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Rows, count, vector_sum
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.sql_table import SqlTable
from tests.rows.databases.engines import TestEngine
from tests.rows.databases.rounds import answers

ROWS = np.random.default_rng(0).normal(0, 0.5, (5000, 3))
ROWS[::97, 1], ROWS[::101, 2], ROWS[::103, 0] = np.nan, np.inf, -0.0


@pytest.mark.parametrize("within", [None, 300_000])
def test_the_nearest_centre_and_sums_around_it(engine: TestEngine, within: int | None) -> None:
    domain = Box((-1.0,) * 3, (0.7,) * 3)
    centers = domain.snap(np.random.default_rng(1).uniform(-1, 0.7, (7, 3)))
    near = NearestCenter(centers, domain.max_norm, within)
    asked = (count, near), (vector_sum, near.offsets()), (vector_sum, Rows.of(near, domain))
    table = engine.put("rows", pa.table({f"x{j}": ROWS[:, j] for j in range(3)}))
    told = list[str]()
    with SqlTable(table, "*", "drop", told=told.append) as population:
        found = answers(population, domain, *asked)
    wanted = answers(Arrays(ROWS, missing="drop"), domain, *asked)
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
    assert told == []


def test_a_row_as_far_away_as_may_be_is_near(engine: TestEngine) -> None:
    domain = Box((-1.0,) * 2, (1.0,) * 2)
    near = NearestCenter(domain.snap(np.zeros((1, 2))), domain.max_norm, int(domain.snap(np.array([[0.5, 0.0]]))[0, 0]))
    table = engine.put("rows", pa.table({"x": [0.5, np.nextafter(0.5, 1), 0.51, 0.0], "y": [0.0, 0.0, 0.0, -0.5]}))
    with SqlTable(table, "*") as population:
        (found,) = answers(population, domain, (count, near))
    assert found.tolist() == [3]

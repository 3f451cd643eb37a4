"""Rows on the lattice, number by number, and which of many steps a number is on: what an engine makes of each is what
is made of it in memory."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest

from cloister.core.domains import Box
from cloister.core.frames import GRADES, OCTAVES, STEPS, UNKNOWN, Graded, least_of
from cloister.core.lattice import Bound
from cloister.rows.databases.database import Database
from cloister.rows.databases.lattices import snapped
from cloister.rows.databases.stage import Described, Stage, stepped
from tests.rows.databases.engines import TestEngine, mostly

BOX = Box((UNKNOWN[0], -1.0), (UNKNOWN[1], 1.0))
GRADED = Graded(BOX, (0,))


def hard_numbers() -> np.ndarray:
    """The ends of every octave and of some grades in it, and what is next to them, of both signs; zeros; numbers below
    the first octave and beyond the last one, up to the largest of all."""
    first = np.arange(2 * OCTAVES) * STEPS
    ends = least_of(np.concatenate([first, first + 1, first + 100, first + STEPS - 1, [GRADES]]))
    beyond = [5e-324, 2.0**-70, 2.0**65, 2.0**70, 1e300, sys.float_info.max]
    found = np.concatenate([ends, np.nextafter(ends, 0), np.nextafter(ends, np.inf), beyond])
    return np.unique(np.concatenate([found, -found]))


@pytest.mark.parametrize("engine", mostly("duckdb", "postgres"), indirect=True)
def test_every_number_has_the_grade_that_it_has_in_memory(engine: TestEngine) -> None:
    numbers = np.append(hard_numbers(), -0.0)
    table = engine.put("grades", pa.table({"i": np.arange(len(numbers)), "x": numbers, "y": np.zeros(len(numbers))}))
    database = Database(table)
    known = Described()
    stage = snapped(Stage(table, ("x", "y"), database.dialect.fence), known.of(GRADED))
    found = database.answer(stage.table.select("i", grade=stage[stage.row[0]]))
    wanted = GRADED.snap(np.column_stack([numbers, np.zeros(len(numbers))]))[:, 0]
    got = found["grade"].to_numpy()[np.argsort(found["i"].to_numpy())]
    assert [x.hex() for x in numbers[got != wanted].tolist()] == []
    assert (wanted.min(), wanted.max()) == (-GRADES, GRADES - 1)
    assert isinstance(stage.bound, Bound)
    assert stage.bound.l2 >= np.hypot(GRADES, BOX.max_norm) > stage.bound.l2 - 2


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

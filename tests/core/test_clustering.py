"""The public frame of a run."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.errors import InvalidInput
from cloister.core.lattice import CAP

BOX = Box((0.0,), (1.0,))


def problem(k: int, rows: int) -> Problem:
    return Problem(k, BOX, rows, Budget("pure", 1.0))


@pytest.mark.parametrize(
    ("k", "dimension", "most"),
    [(2**16 + 1, 1, 2**16), (10**12, 2, 2**16), (10**400, 3, 2**16), (2**22 // 100 + 1, 100, 2**22 // 100)],
    ids=["one more", "many", "huge", "columns"],
)
def test_more_centres_than_memory_holds_are_refused(k: int, dimension: int, most: int) -> None:
    """Whatever the number of rows is: nothing was planned, so that nothing was spent."""
    box, budget = Box((0.0,) * dimension, (1.0,) * dimension), Budget("pure", 1.0)
    assert Problem(most, box, CAP, budget).k == most
    with pytest.raises(InvalidInput, match=rf"a run finds {most} centres at most in {dimension} columns") as caught:
        Problem(k, box, max(k, CAP), budget)
    assert len(str(caught.value)) < 200


def test_a_problems_numbers_are_pythons_own_whoever_gives_them() -> None:
    made = problem(np.int64(3), np.uint32(1000))  # type: ignore[arg-type]
    assert (type(made.k), type(made.rows)) == (int, int)
    assert made == problem(3, 1000)

"""Rows that change are found by the sum of their hashes, in which cells that two rows exchange must show."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cloister.core.types import Floats
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases.probe import EXCHANGED, tells_exchanges
from cloister.rows.databases.watched import hashed
from cloister.rows.options import Reading
from tests.rows.databases.engines import TestEngine, mostly

DRAWN: dict[str, Callable[[Any, int], Floats]] = {
    "yes or no": lambda g, n: g.integers(0, 2, n).astype(float),
    "signs": lambda g, n: g.choice([-1.0, 1.0], n),
    "quarters": lambda g, n: g.integers(-8, 9, n) / 4,
    "ages": lambda g, n: g.integers(0, 100, n).astype(float),
    "large whole numbers": lambda g, n: g.integers(10**9, 10**9 + 500, n).astype(float),
    "numbers": lambda g, n: g.normal(0, 1, n),
}


def exchanged(rows: Floats, column: int) -> tuple[Floats, Floats]:
    """Pairs of rows, and the same with the cells of a column exchanged, where that makes other rows."""
    one, other = rows[::2], rows[1::2]
    beside = np.delete(one != other, column, axis=1).any(axis=1) & (one[:, column] != other[:, column])
    pairs = np.stack([one, other], axis=1)[beside]
    swapped = pairs.copy()
    swapped[:, :, column] = pairs[:, ::-1, column]
    return pairs, swapped


@pytest.mark.parametrize("dimension", [2, 3, 8])
@pytest.mark.parametrize("kind", DRAWN)
def test_rows_that_exchange_a_cell_have_another_sum_of_hashes(kind: str, dimension: int) -> None:
    g = np.random.default_rng(7)
    rows = np.stack([DRAWN[kind](g, 4000) for _ in range(dimension)], axis=1)
    for column in range(dimension):
        pairs, swapped = exchanged(rows, column)
        assert len(pairs) > 200
        missed = sum(hashed(one) == hashed(other) for one, other in zip(pairs, swapped, strict=True))
        assert missed == 0, f"{missed} of {len(pairs)} in column {column}"


def test_the_trial_s_rows_exchange_cells_unseen_by_no_hash_of_ours() -> None:
    rows = np.array(list(product(EXCHANGED, repeat=3)))
    assert tells_exchanges(np.array([hashed(row[None]) for row in rows]))
    assert not tells_exchanges(np.array([sum(hashed(row[[j]]) * (2 * j + 1) for j in range(3)) for row in rows]))


@mostly("duckdb", "postgres")
@pytest.mark.parametrize("passes", ["query", "stream"])
@pytest.mark.parametrize("users", [None, "who"])
def test_a_table_in_which_two_rows_exchanged_a_cell_is_another_table(
    engine: TestEngine, passes: str, users: str | None
) -> None:
    """In every column, of whole numbers and signs; and of users who exchange their names."""
    g = np.random.default_rng(11)
    cells = {"x": DRAWN["ages"](g, 60), "y": DRAWN["signs"](g, 60), "z": DRAWN["yes or no"](g, 60)}
    names, found = np.arange(60), list[bytes]()

    def mark(of: dict[str, Any], who: Any) -> bytes:
        with SqlTable(
            engine.put("exchanged", pa.table({**of, "who": who})),
            Reading(columns=list(cells), passes=passes, user_column=users),
        ) as t:
            return t.fingerprints(bytes(32))["the rows"]

    found.append(mark(cells, names))
    for name, column in cells.items():
        apart = ((i, j) for i, j in product(range(60), repeat=2) if all(c[i] != c[j] for c in cells.values()))
        one, other = next(apart)
        moved = column.copy()
        moved[[one, other]] = column[[other, one]]
        found.append(mark({**cells, name: moved}, names))
    found.append(mark(cells, np.roll(names, 1)))
    assert found[0] not in found[1:4]
    assert (found[4] == found[0]) == (users is None)

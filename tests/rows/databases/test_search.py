"""A random search for rows that a query treats otherwise than rows in memory: all kinds of domains and questions."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pytest

from cloister.core.domains import Ball, Box
from cloister.core.frames import UNKNOWN, Graded, Reframed
from cloister.core.questions import count
from cloister.plugins.methods.zoom_ranges import Columns
from tests.rows.databases.asking import QUESTIONS
from tests.rows.databases.engines import TestEngine, mostly
from tests.rows.databases.hostile import as_table
from tests.rows.databases.rounds import differences
from tests.rows.databases.test_kinds import asked_of, rows_for

SEARCHED = float(os.environ.get("CLOISTER_SEARCH", "30"))
"""Seconds of the long search on each engine."""


def drawn(seed: int) -> tuple[Any, list[Any]]:
    """A domain, and questions about its rows."""
    g = np.random.default_rng(seed)
    d = int(g.integers(1, 13))
    wide = 10.0 ** g.uniform(-3, 3) if g.random() < 0.7 else 10.0 ** g.uniform(-95, 95)
    middle = g.uniform(-1, 1, d) * wide * 10.0 ** g.choice([0, 0, 3, 12])
    half = wide * 2.0 ** -g.integers(0, 12, d)
    low, high = middle - half, np.maximum(middle + half, np.nextafter(middle - half, np.inf))
    m = int(g.integers(1, max(2, min(12, 200 // d))))
    match g.integers(0, 6):
        case 0:
            domain: Any = Ball(tuple(middle), wide)
        case 1:
            domain = Reframed(tuple(middle), tuple(half))
        case 2:
            unknown = tuple(int(j) for j in np.flatnonzero(g.random(d) < 0.5))
            ends = [UNKNOWN if j in unknown else (-(2.0 ** int(g.integers(-3, 10))),) for j in range(d)]
            box = Box(tuple(e[0] for e in ends), tuple(-e[0] for e in ends))
            sides = [2**15 if j in unknown else 1 << (int(s) - 1).bit_length() for j, s in enumerate(box.sides)]
            return Graded(box, unknown), [(count, Columns(tuple(max(1, s) for s in sides), int(g.integers(1, 5))))]
        case _:
            domain = Box(tuple(low), tuple(high))
    kinds = g.choice(sorted(QUESTIONS), int(g.integers(1, 3)), replace=False)
    return domain, [one for kind in kinds for one in asked_of(str(kind), domain, m, seed)]


def compared(engine: TestEngine, seed: int) -> None:
    domain, asked = drawn(seed)
    rows = rows_for(domain, seed, int(np.random.default_rng(seed).choice([1, 30, 300])))
    if np.isfinite(rows).all(axis=1).any():
        assert differences(engine.put("search", as_table(rows)), rows, domain, *asked) == [], seed


@pytest.mark.parametrize("engine", mostly("duckdb"), indirect=True)
def test_no_difference_is_found_soon(engine: TestEngine) -> None:
    for seed in range(1, 8 if engine.name == "duckdb" else 4):
        compared(engine, seed)


@pytest.mark.long
def test_no_difference_is_found(engine: TestEngine) -> None:
    start, seed = time.monotonic(), 100
    while time.monotonic() - start < SEARCHED:
        compared(engine, seed)
        seed += 1
    assert seed > 100
    print(f"{seed - 100} rounds were compared over {engine.name}")

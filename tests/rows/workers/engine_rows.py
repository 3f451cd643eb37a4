"""What the tests of engines share: rows in files, and a bucketing that can end its worker."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from cloister.core.buckets import Space
from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.questions import Rows, count, vector_sum
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Session
from cloister.plugins.oracles.central.exact import Exact
from tests.rows.stored import stored

SQUARE = Box((-1.0,) * 2, (1.0,) * 2)
NAMES = ("processes", "dask")


@attrs.frozen(eq=False)
class Halves:
    """A nested bucketing of the first column: id of a level = id of the finest level >> levels between them.

    Args:
        levels: below the root.
        traps: folder; whoever takes a file out of it ends at once, as a worker does that is killed.
    """

    digest_tag = "tests.engine_rows.Halves"

    levels: int = 4
    traps: str | None = None

    @property
    def space(self) -> Space:
        return Space(tuple(2**level for level in range(self.levels + 1)))

    def locate(self, rows: np.ndarray) -> np.ndarray:
        if self.traps is not None:
            for name in os.listdir(self.traps):
                try:
                    os.unlink(os.path.join(self.traps, name))
                except FileNotFoundError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
        side = int(SQUARE.sides[0])
        finest = (rows[:, 0] + side) * 2**self.levels // (2 * side + 1)
        return finest[:, None] >> np.arange(self.levels, -1, -1)


class NotForTravel(Halves):
    """A bucketing with something in it that does not pickle."""

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle this")


def some_rows(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.1, 1.1, (n, 2))


def write(path: Path, rows: np.ndarray, group: int = 100) -> Path:
    return stored(pa.table({"x": rows[:, 0], "y": rows[:, 1]}), path, group)


def answers(population: Any, cells: Any = None, counts: Any = None) -> list[list[float]]:
    """All counts and sums of one round, under seeded noise."""
    cells = Halves() if cells is None else cells
    counts, sums = Exact() if counts is None else counts, Exact()
    problem = Problem(2, SQUARE, 1000, Budget(counts.measure, 1.0, delta=1e-3))
    session: Session[Any] = Session(problem, PublicRng.from_seed(3), population, noise=NoiseRng.for_tests(4))
    asked = [count(cells, oracle=counts, budget=problem.budget)]
    if isinstance(counts, Exact):
        asked.append(vector_sum(Rows.of(cells, SQUARE), oracle=sums, budget=problem.budget))
    every = [(np.arange(size), level) for level, size in enumerate(cells.space.sizes)]
    return [table.at(ids, level).ravel().tolist() for table in session.ask(*asked) for ids, level in every]

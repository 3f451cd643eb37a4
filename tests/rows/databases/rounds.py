"""One round of exact questions, put to a population."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cloister.core.buckets import QuestionContext
from cloister.core.budget import Budget
from cloister.core.domains import Box
from cloister.core.nearest import NearestCenter
from cloister.core.questions import OpenedQuestion, Round, Rows, count, vector_sum
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.registry import registry
from cloister.core.trust import Central
from cloister.core.types import Floats, Ints
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.sql_table import PASSES, SqlTable
from cloister.rows.options import Reading
from tests.rows.databases.engines import TestEngine
from tests.rows.databases.hostile import as_table

MANY = 2**12
"""Buckets of a level, all of which are read; of more only those that rows are in, and their siblings."""


def exact_round(domain: Any, *asked: tuple[Any, Any]) -> Round[Any]:
    """Args: asked, ``count`` or ``vector_sum``, and of what."""
    context, budget = QuestionContext(1000, 1.0, PublicRng.from_seed(1)), Budget("exact", 1.0)
    parts = []
    for kind, of in asked:
        role = "FrequencyOracle" if kind is count else "VectorSumOracle"
        question = kind(of, oracle=registry().load(registry().spec(role, "exact"))(), budget=budget)
        parts.append(OpenedQuestion(question.cells, question.vectors, None, question.open(context)))
    return Round(0, Central, domain, tuple(parts))


def answers(population: Any, domain: Any, *asked: tuple[Any, Any], rows: Floats | None = None) -> list[Any]:
    """The exact answers to questions, level by level. Args: asked, as of ``exact_round``; rows (n, d), finite, whose
    buckets are read where there are ``MANY``."""
    round = exact_round(domain, *asked)
    with np.errstate(all="raise", under="ignore"):
        summaries = population.gather(round, NoiseRng.for_tests(2))
    found, points = [], None if rows is None else domain.snap(rows)
    for part, summary in zip(round.parts, summaries, strict=True):
        table = part.channel.decode(summary, NoiseRng.for_tests(82))
        for level, size in enumerate(part.cells.space.sizes):
            found.append(table.at(_read(part.cells, points, level, size), level))
    return found


def _read(cells: Any, points: Ints | None, level: int, size: int) -> Ints:
    """The ids that are read of a level."""
    if size <= MANY or points is None:
        return np.arange(size)
    ids = np.unique(cells.locate(points)[:, level])
    ids = np.unique(np.concatenate([ids, ids ^ 1]))
    return np.asarray(ids[(ids >= 0) & (ids < size)])


def same(found: list[Any], wanted: list[Any]) -> bool:
    return all(a.shape == b.shape and np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def differences(engine: TestEngine, rows: Floats, domain: Any, *asked: tuple[Any, Any]) -> list[str]:
    """What is other over an engine's table of these rows (n, d) than over them in memory, and what was told; nothing,
    if all is right.

    Args: rows, NaN for NULL.
    """
    told, found, usable = list[str](), dict[str, list[Any]](), rows[np.isfinite(rows).all(axis=1)]
    table = engine.put("compared", as_table(rows))
    for passes in PASSES if engine.name == "pyspark" else PASSES[:2]:
        with SqlTable(table, Reading(columns="*", missing="drop", passes=passes, told=told.append)) as population:
            found[passes] = answers(population, domain, *asked, rows=usable)
    wanted = answers(Arrays(rows, Reading(missing="drop")), domain, *asked, rows=usable)
    return told + [
        f"answer {i} by {passes} of {len(wanted)}"
        for passes, some in found.items()
        for i, (a, b) in enumerate(zip(some, wanted, strict=True))
        if not same([a], [b])
    ]


SQUARE = Box((-1.0,) * 2, (1.0,) * 2)
NEAR = NearestCenter(SQUARE.snap(np.array([[-0.5, 0.0], [0.0, 0.5], [0.5, -0.5]])), SQUARE.max_norm)


def in_square(population: Any) -> list[Any]:
    """How many rows of the square are nearest to each of three points, and their sums."""
    return answers(population, SQUARE, (count, NEAR), (vector_sum, Rows.of(NEAR, SQUARE)))


def agrees(population: Any, rows: Floats) -> bool:
    """Whether a population answers as these rows (n, 2) do in memory, without those that cannot be used."""
    return same(in_square(population), in_square(Arrays(rows, Reading(missing="drop"))))


def shuffled(table: pa.Table, seed: int) -> pa.Table:
    return table.take(np.random.default_rng(seed).permutation(table.num_rows))


def with_users(population: SqlTable) -> pa.Table:
    """The rows that are kept, with the names of their users: rounds read these, and no others."""
    rows = population._chosen(population._named.table)
    found = population._database.answer(rows.filter(rows["kept"]))
    read = population._database.answer(population._usable.table)
    assert by_cells(found.select(population._features)) == by_cells(read.select(population._features))
    return found


def by_cells(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))

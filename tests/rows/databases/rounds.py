"""One round of exact questions, put to a population."""

from __future__ import annotations

from typing import Any

import numpy as np

from cloister.core.buckets import QuestionContext
from cloister.core.budget import Budget
from cloister.core.questions import OpenedQuestion, Round, count
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.registry import registry
from cloister.core.trust import Central
from cloister.core.types import Floats, Ints
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.sql_table import PASSES, SqlTable

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


def differences(table: Any, rows: Floats, domain: Any, *asked: tuple[Any, Any]) -> list[str]:
    """What is other over a table than over the same rows (n, d) in memory, and what was told; nothing, if all is right.

    Args: rows, NaN for NULL.
    """
    told, found, usable = list[str](), dict[str, list[Any]](), rows[np.isfinite(rows).all(axis=1)]
    for passes in PASSES if table.get_backend().name == "pyspark" else PASSES[:2]:
        with SqlTable(table, "*", "drop", passes=passes, told=told.append) as population:
            found[passes] = answers(population, domain, *asked, rows=usable)
    wanted = answers(Arrays(rows, missing="drop"), domain, *asked, rows=usable)
    return told + [
        f"answer {i} by {passes} of {len(wanted)}"
        for passes, some in found.items()
        for i, (a, b) in enumerate(zip(some, wanted, strict=True))
        if a.shape != b.shape or not np.array_equal(a, b)
    ]

"""Methods with exact oracles over a database: all that they look at, and their centres, are those of rows in memory."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.errors import UnknownName
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.compose import Composed, compose
from cloister.core.registry.registry import built_in
from cloister.core.session import Session
from cloister.core.types import Floats
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.sql_table import SqlTable
from tests.rows.databases.engines import ENGINES, TestEngine, mostly
from tests.rows.databases.hostile import as_table, hostile
from tests.rows.databases.rounds import same

pytestmark = pytest.mark.usefixtures("way")

SEED = PublicRng.from_seed(90)
EXACT = {"counts": "exact", "sums": "exact"}
NAMED = ("fastlloyd", "hst-means", "tree-coreset", "auto", "su-lloyd")


def wired(name: str) -> Composed[Any]:
    """A method with exact oracles in all slots; with its own, whose noise is seeded, if it fills slots as it runs."""
    started, tree = {f"start.{path}": "exact" for path in EXACT}, {"tree_counts": "exact"}
    for wires in (EXACT, EXACT | tree, EXACT | started, EXACT | started | {"start.tree_counts": "exact"}):
        with suppress(UnknownName):
            made = compose(built_in(), "Method", name, wires, {})
            if made.measures == {"exact"}:
                return made
    return compose(built_in(), "Method", name, {}, {})


EVERY = tuple(name for name in (spec.name for spec in built_in().specs("Method")) if wired(name).trust != "Local")
"""Whose people do not each answer by themselves."""

CASES = [
    *(("duckdb", "query", of, NAMED) for of in ("adult", "shuttle", "birch2")),
    *((engine, "query", "hostile", EVERY if engine != "pyspark" else NAMED) for engine in ENGINES),
    *((engine, "stream", "hostile", EVERY) for engine in ENGINES),
    ("duckdb", "stream again and again", "hostile", EVERY),
]
"""Engine, way of a pass, whose rows, and which methods: a query of Spark's takes seconds."""


def the_rows(name: str, n: int) -> Floats:
    """The first rows of a public data set in random order; or hostile ones."""
    if name == "hostile":
        return hostile(91, n, np.full(4, -1.0), np.full(4, 1.0), 2.0**-19)
    folder = Path(os.environ.get("CLOISTER_DATA", "."))
    if not (folder / f"{name}.npz").exists():
        pytest.skip("CLOISTER_DATA has no such rows")
    with np.load(folder / f"{name}.npz") as file:
        rows = np.asarray(file["X"], np.float64)
    return rows[np.random.default_rng(92).permutation(len(rows))[:n]]


def bounds_of(rows: Floats) -> Box:
    """Bounds that some rows are beyond."""
    low, high = np.nanquantile(np.where(np.isfinite(rows), rows, np.nan), [0.002, 0.998], axis=0)
    return Box(tuple(low), tuple(np.where(high > low, high, low + 1)))


def ran(name: str, rows: Floats, population: Any) -> list[Any]:
    """Centres, and every look at an answer."""
    made = wired(name)
    budget = Budget("exact", math.inf) if made.measures == {"exact"} else Budget("zcdp", 1.0)
    domain = Box((-1.0,) * 4, (1.0,) * 4) if rows.shape[1] == 4 else bounds_of(rows)
    session: Any = Session(Problem(6, domain, len(rows), budget), SEED, population, noise=NoiseRng.for_tests(93))
    found = made.value.cluster(session.problem, session, SEED.child("method"))
    return [found.centers, *(value for look in session.record.lookups for value in (look.ids, look.values))]


def compared(engine: TestEngine, name: str, of: str, n: int, terms: int | None = None) -> list[str]:
    """What was told. Args: of, whose rows; terms, products that a query may have; None: as many as the engine's."""
    rows, told = the_rows(of, n), list[str]()
    with SqlTable(engine.put("methods", as_table(rows)), "*", "drop", told=told.append) as population:
        if terms is not None:
            dialect = population._database.dialect
            population._database.dialect = attrs.evolve(dialect, terms=lambda backend: terms)
        found = ran(name, rows, population)
    wanted = ran(name, rows, Arrays(rows, missing="drop"))
    assert same(found, wanted)
    return told


@pytest.mark.parametrize("engine", mostly("duckdb"), indirect=True)
@pytest.mark.parametrize(
    ("name", "of"),
    [("fastlloyd", "adult"), ("fastlloyd", "hostile"), ("hst-means", "shuttle"), ("su-lloyd", "birch2")],
)
def test_methods_see_the_same_answers_and_nothing_leaves_the_engine(engine: TestEngine, name: str, of: str) -> None:
    assert compared(engine, name, of, 5000) == []


@pytest.mark.parametrize("engine", mostly("duckdb"), indirect=True)
def test_queries_that_would_be_slow_are_not_made_and_the_answers_are_the_same(engine: TestEngine, way: str) -> None:
    told = compared(engine, "tree-coreset", "shuttle", 5000, terms=100)
    assert bool(told) == (way == "query")  # a stream makes none
    assert all("products is slower than reading the rows" in line for line in told)


@pytest.mark.long
@pytest.mark.parametrize(
    ("engine", "way", "of", "name"),
    [(engine, way, of, name) for engine, way, of, names in CASES for name in names],
    indirect=["engine", "way"],
)
def test_every_method_sees_the_same_answers_if_queries_may_be_long_or_else_as_the_engine_is_left_to_do(
    engine: TestEngine, name: str, of: str
) -> None:
    assert all("have no form in SQL" in line for line in compared(engine, name, of, 5000, terms=2**14))
    if name in NAMED:
        assert all("products is slower than reading the rows" in line for line in compared(engine, name, of, 20_000))

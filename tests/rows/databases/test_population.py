"""Populations of rows in a database, over every engine: the kit's laws, and what methods find in them."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count as numbers
from typing import Any

import ibis
import numpy as np
import pytest

from cloister.core.randomness import NoiseRng
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import built_in, registry
from cloister.core.types import Floats
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases.database import DIALECTS
from cloister.rows.options import Reading
from cloister.run.fit import fit
from cloister.run.request import Request
from cloister.testing import parametrize
from tests.rows.databases.engines import TestEngine, mostly
from tests.rows.databases.hostile import as_table, hostile
from tests.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("way")

NAMES = (f"kit{i}" for i in numbers())


@pytest.mark.parametrize("materialise", [False, True])
@mostly("duckdb", "postgres")
@parametrize(registry().load(registry().spec("Population", "sql")), role="Population")
def test_rows_in_a_database_conform(component: Any, check: Any, engine: TestEngine, materialise: bool) -> None:
    with ExitStack() as last:

        def make(rows: Floats) -> SqlTable:
            last.close()
            table = engine.put(next(NAMES), as_table(rows))
            return last.enter_context(SqlTable(table, Reading(columns="*", materialise=materialise)))

        check(component if check.name == "the_registry_says_what_the_class_is" else make)


# methods: what they find under noise that is the same is what they find in rows in memory


ROWS = hostile(91, 5000, np.full(4, -1.0), np.full(4, 1.0), 2.0**-19)
QUICK = ("fastlloyd", "hst-means", "su-lloyd", "tree-coreset", "auto")


def central() -> list[str]:
    """Methods whose people do not each answer by themselves."""
    named = {spec.name: compose(built_in(), "Method", spec.name, {}, {}) for spec in built_in().specs("Method")}
    return [name for name, made in named.items() if made.private and made.trust == "Central"]


@mostly("duckdb")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in central()]
)
def test_every_method_finds_what_it_finds_in_memory_though_queries_be_long(
    engine: TestEngine, name: str, dialect: Callable[..., None]
) -> None:
    dialect(engine.name, terms=lambda backend: 2**14)
    request = Request(k=4, epsilon=8.0, delta=1e-6, bounds="-1:1", rows=len(ROWS), method=name, seed=1)
    with SqlTable(engine.put("methods", as_table(ROWS)), Reading(columns="*", missing="drop")) as population:
        found = fit(request, population, noise=NoiseRng.for_tests(1)).centers
    assert np.array_equal(
        found, fit(request, Arrays(ROWS, Reading(missing="drop")), noise=NoiseRng.for_tests(1)).centers
    )


# interrupts


@pytest.mark.parametrize("beside", ["", "import polars; polars.DataFrame({'x': [1]}).lazy().collect()"])
def test_ctrl_c_while_duckdb_works_ends_the_run_as_one_that_was_interrupted(
    dialect: Callable[..., None], beside: str
) -> None:
    """Args: beside: what else the process does before, which may bring a handler of signals."""
    exec(beside)
    endless = "SELECT CAST(a.range * b.range AS DOUBLE) AS x FROM range(1000000) a, range(1000000) b"
    backend, works, stream = ibis.duckdb.connect(), threading.Event(), DIALECTS["duckdb"].stream

    def streamed(expression: Any, size: int) -> Any:
        if "1000000" in backend.compile(expression):
            works.set()
        return stream(expression, size)

    def interrupt() -> None:
        assert works.wait(PATIENCE)
        time.sleep(0.5)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    dialect(stream=streamed)
    population = SqlTable(backend.sql(endless, schema={"x": "float64"}), Reading(columns="*"))
    presses = threading.Thread(target=interrupt)
    presses.start()
    with pytest.raises(KeyboardInterrupt):
        population.check()
    presses.join()
    backend.disconnect()

"""The kit's laws of populations, over every engine; parties and simulated users whose rows are in databases."""

from __future__ import annotations

import signal
import threading
import time
from itertools import count as numbers
from typing import Any

import attrs
import ibis
import pytest

from cloister.core.registry.registry import registry
from cloister.core.types import Floats
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases.database import DIALECTS
from cloister.testing import parametrize
from tests.rows.databases.engines import ENGINES, TestEngine
from tests.rows.databases.hostile import as_table
from tests.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("way")

QUICK = [name for name in ENGINES if name != "pyspark"]
"""Spark takes a second for each query."""

NAMES = (f"kit{i}" for i in numbers())


class Populations:
    """Makes populations of rows in an engine."""

    def __init__(self, engine: TestEngine, **options: Any) -> None:
        self._engine, self._options = engine, options
        self._open: list[SqlTable] = []

    def __call__(self, rows: Floats) -> SqlTable:
        self.close()
        self._open.append(SqlTable(self._engine.put(next(NAMES), as_table(rows)), "*", **self._options))
        return self._open[-1]

    def close(self) -> None:
        while self._open:
            self._open.pop().close()


@pytest.mark.parametrize("materialise", [False, True])
@pytest.mark.parametrize("engine", [*QUICK, pytest.param("pyspark", marks=pytest.mark.long)], indirect=True)
@parametrize(registry().load(registry().spec("Population", "sql")), role="Population")
def test_rows_in_a_database_conform(component: Any, check: Any, engine: TestEngine, materialise: bool) -> None:
    make = Populations(engine, materialise=materialise)
    try:
        check(component if check.name == "the_registry_says_what_the_class_is" else make)
    finally:
        make.close()


@pytest.mark.parametrize("beside", ["", "import polars; polars.DataFrame({'x': [1]}).lazy().collect()"])
def test_ctrl_c_while_duckdb_works_ends_the_run_as_one_that_was_interrupted(
    monkeypatch: pytest.MonkeyPatch, beside: str
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

    monkeypatch.setitem(DIALECTS, "duckdb", attrs.evolve(DIALECTS["duckdb"], stream=streamed))
    population = SqlTable(backend.sql(endless, schema={"x": "float64"}), "*")
    presses = threading.Thread(target=interrupt)
    presses.start()
    with pytest.raises(KeyboardInterrupt):
        population.check()
    presses.join()
    backend.disconnect()

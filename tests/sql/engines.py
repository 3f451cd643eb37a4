"""The engines that tests of SQL run on: each takes a table of Arrow and gives it back as one of Ibis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import ibis
import pyarrow as pa

from tests.sql.spark import Spark, session


class TestEngine(Protocol):
    """An engine that runs on this machine for as long as a test needs it."""

    __test__ = False
    name: str

    def put(self, name: str, table: pa.Table) -> Any:
        """A table of Ibis with these columns and rows."""
        ...


class DuckDB:
    name = "duckdb"

    def __init__(self) -> None:
        self.backend = ibis.duckdb.connect()

    def put(self, name: str, table: pa.Table) -> Any:
        self.backend.con.register("given", table)
        quoted = name.replace('"', '""')
        self.backend.raw_sql(f'CREATE OR REPLACE TABLE "{quoted}" AS SELECT * FROM given')
        self.backend.con.unregister("given")
        return self.backend.table(name)


@contextmanager
def started(name: str) -> Iterator[TestEngine]:
    """An engine of this name; it ends with the block."""
    if name == "pyspark":
        with session() as running:
            yield Spark(running)
    else:
        yield DuckDB()


ENGINES = ("duckdb", "pyspark")

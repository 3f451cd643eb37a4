"""The engines that tests of SQL run on: each takes a table of Arrow and gives it back as one of Ibis."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

import ibis
import pyarrow as pa
import pytest

from tests.rows.databases.postgres import Postgres, postgres
from tests.rows.databases.spark import Spark, spark


class DuckDB:
    """An engine that runs in this process."""

    name = "duckdb"

    def __init__(self) -> None:
        self.backend = ibis.duckdb.connect()

    def put(self, name: str, table: pa.Table) -> Any:
        """A table of Ibis with these columns and rows."""
        self.backend.con.register("given", table)
        quoted = name.replace('"', '""')
        self.backend.raw_sql(f'CREATE OR REPLACE TABLE "{quoted}" AS SELECT * FROM given')
        self.backend.con.unregister("given")
        return self.backend.table(name)

    def collated(self, name: str, table: pa.Table) -> Any:
        """The table with columns x and c, where the collation of c takes letters of either case for one."""
        found = self.put(name, table)
        self.backend.raw_sql(f"ALTER TABLE {name} ALTER c TYPE VARCHAR COLLATE NOCASE.NOACCENT")
        return found

    def cut(self, table: Any) -> None:
        """What runs on this table's connection now fails, and perhaps all that comes. From another thread."""
        self.backend.con.interrupt()

    def again(self, name: str) -> Any:
        """The table as it is, through a connection that works."""
        return self.backend.table(name)

    def apart(self) -> DuckDB:
        """The same engine through connections of a test's own, which it may break: others keep theirs. Spark has none,
        and loses jobs alone."""
        return DuckDB()


TestEngine: TypeAlias = DuckDB | Postgres | Spark
"""An engine that runs on this machine for as long as a test needs it."""


ENGINES: dict[str, Callable[[], AbstractContextManager[TestEngine]]] = {
    "duckdb": lambda: nullcontext(DuckDB()),
    "postgres": postgres,
    "pyspark": spark,
}
"""What starts an engine, and ends it with the block."""


def mostly(*quick: str) -> pytest.MarkDecorator:
    """Marks a test that takes seconds on all engines but these: on the others it is ``long``."""
    names = [name if name in quick else pytest.param(name, marks=pytest.mark.long) for name in ENGINES]
    return pytest.mark.parametrize("engine", names, indirect=True)

"""A Spark session on this machine, that a test session starts for itself, in a folder that goes with it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet
import pytest
import sqlglot as sg

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def session() -> Iterator[Any]:
    """Spark on two cores. Skips the test where PySpark or Java is not installed."""
    sql = pytest.importorskip("pyspark.sql", reason="PySpark is not installed (ibis-framework[pyspark])")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip("Java is not installed (Debian package: default-jre-headless)")
    with tempfile.TemporaryDirectory(prefix="spark", ignore_cleanup_errors=True) as folder:
        folders = {"spark.sql.warehouse.dir": f"{folder}/warehouse", "spark.local.dir": folder}
        building = sql.SparkSession.builder.master("local[2]").appName("tests")
        for name, value in (SETTINGS | folders).items():
            building = building.config(name, value)
        running = building.getOrCreate()
        try:
            yield running
        finally:
            running.stop()


class Spark:
    """An engine of tests, over a session: tables are views of Parquet files, as lakes are."""

    name = "pyspark"

    def __init__(self, session: Any) -> None:
        self.session = session
        self.backend = ibis.pyspark.connect(session)
        self._folder = Path(session.conf.get("spark.local.dir"))
        self._numbers = count()

    def put(self, name: str, table: pa.Table) -> Any:
        file = self._folder / f"{next(self._numbers)}.parquet"
        pa.parquet.write_table(table, file, row_group_size=2000, coerce_timestamps="us")
        quoted = sg.to_identifier(name, quoted=True).sql("spark")
        self.session.read.parquet(str(file)).createOrReplaceTempView(quoted)
        if not name.isidentifier():  # Ibis reads the name of a table as SQL
            return self.backend.sql(f"SELECT * FROM {quoted}")
        return self.backend.table(name)

    def cut(self, table: Any) -> None:
        self.session.sparkContext.cancelAllJobs()

    def again(self, name: str) -> Any:
        return self.backend.table(name)

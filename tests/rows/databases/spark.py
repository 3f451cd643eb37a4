"""A Spark session on this machine, that a test session starts for itself, in a folder that goes with it."""

from __future__ import annotations

import os
import shutil
import sys
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

ROOT = Path(__file__).parents[3]
"""Where workers find these tests."""

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # many short queries
    "spark.driver.memory": "1g",
    "spark.log.level": "OFF",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def folder() -> Iterator[Path]:
    """Where Spark may run. Skips the test where PySpark or Java is not installed."""
    pytest.importorskip("pyspark.sql", reason="PySpark is not installed (extra spark)")
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        pytest.skip("Java is not installed (Debian package: default-jre-headless)")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # whose packages its workers find
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory(prefix="spark", ignore_cleanup_errors=True) as found:
        yield Path(found)


class Spark:
    """An engine of tests, a session on two cores: tables are views of Parquet files, as lakes are.

    Args: folder, of all that Spark writes, and of the files.
    """

    name = "pyspark"

    def __init__(self, folder: Path) -> None:
        self._folder, self._numbers = folder, count()
        self.files = dict[str, Path]()
        self.start()

    def start(self) -> None:
        """A session, in the virtual machine of the one before if there was any."""
        from pyspark.sql import SparkSession

        folders = {"spark.sql.warehouse.dir": f"{self._folder}/warehouse", "spark.local.dir": str(self._folder)}
        building = SparkSession.builder.master("local[2,4]").appName("tests")
        for setting, value in (SETTINGS | folders).items():
            building = building.config(setting, value)
        self.session = building.getOrCreate()
        self.backend = ibis.pyspark.connect(self.session)

    def put(self, name: str, table: pa.Table) -> Any:
        self.files[name] = self._folder / f"{next(self._numbers)}.parquet"
        pa.parquet.write_table(table, self.files[name], row_group_size=2000, coerce_timestamps="us")
        return self._view(name)

    def collated(self, name: str, table: pa.Table) -> Any:
        self.put(f"{name}_as_it_is", table)
        view = self.session.sql(f"SELECT x, c COLLATE UNICODE_CI_AI AS c FROM {name}_as_it_is")
        view.createOrReplaceTempView(name)
        return self.backend.table(name)

    def cut(self, table: Any) -> None:
        self.session.sparkContext.cancelAllJobs()

    def again(self, name: str) -> Any:
        return self._view(name)

    def _view(self, name: str) -> Any:
        quoted = sg.to_identifier(name, quoted=True).sql("spark")
        self.session.read.parquet(str(self.files[name])).createOrReplaceTempView(quoted)
        if not (name.isascii() and name.isidentifier()):  # Ibis reads the name of a table as SQL
            return self.backend.sql(f"SELECT * FROM {quoted}")
        return self.backend.table(name)

    def apart(self) -> Spark:
        return self


@contextmanager
def spark() -> Iterator[Spark]:
    with folder() as home:
        running = Spark(home)
        yield running
        running.session.stop()

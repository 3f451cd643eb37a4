"""The engines that were tried."""

from __future__ import annotations

from typing import Any

from cloister.sql.dialect import Dialect
from cloister.sql.duckdb import DUCKDB
from cloister.sql.postgres import POSTGRES
from cloister.sql.spark import SPARK

DIALECTS = {"duckdb": DUCKDB, "postgres": POSTGRES, "pyspark": SPARK}
"""By Ibis' name of the backend."""


def dialect_of(backend: Any) -> Dialect:
    return DIALECTS.get(backend.name, Dialect())

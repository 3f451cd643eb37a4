"""Engines for tests of SQL, started once a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs
import pytest

pytest.importorskip("ibis")

from cloister.plugins.populations import sql_table
from cloister.rows.databases.database import DIALECTS, Database
from tests.rows.databases.engines import ENGINES, TestEngine
from tests.run.conftest import ledger

__all__ = ["ledger"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All tests of this folder are about real engines. PySpark, where it is installed, closes sockets by forgetting
    them, which is noticed in whatever test comes later."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.thorough)
    if find_spec("pyspark") is not None:
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(autouse=True)
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass is a query by default, on any machine."""
    monkeypatch.setattr(Database, "fastest_pass", lambda self, columns: ("query", ""))


@pytest.fixture(params=["query", "stream", "stream again and again"])
def way(request: pytest.FixtureRequest, untried: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every way in which a pass over a table is made by default."""
    monkeypatch.setattr(Database, "fastest_pass", lambda self, columns: (request.param.split()[0], ""))
    if "again" in request.param:
        monkeypatch.setattr(sql_table, "HELD", 0)
    return str(request.param)


@pytest.fixture
def dialect(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has something else known of an engine, by default DuckDB."""

    def changed(name: str = "duckdb", **facts: Any) -> None:
        monkeypatch.setitem(DIALECTS, name, attrs.evolve(DIALECTS[name], **facts))

    return changed


@pytest.fixture(scope="session")
def running() -> Iterator[Callable[[str], TestEngine]]:
    """Engines by name, each started when it is first asked for."""
    with ExitStack() as held:
        yield cache(lambda name: held.enter_context(ENGINES[name]()))


@pytest.fixture(scope="session")
def postgres(running: Callable[[str], TestEngine]) -> TestEngine:
    return running("postgres")


@pytest.fixture(scope="session")
def pyspark(running: Callable[[str], TestEngine]) -> TestEngine:
    return running("pyspark")


@pytest.fixture(scope="session", params=list(ENGINES))
def engine(request: pytest.FixtureRequest, running: Callable[[str], TestEngine]) -> TestEngine:
    return running(request.param)


@pytest.fixture
def breakable_postgres(postgres: TestEngine) -> TestEngine:
    """The engine through connections that the test may break."""
    return postgres.apart()

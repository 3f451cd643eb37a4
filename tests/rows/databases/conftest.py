"""Engines for tests of SQL, started once a session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ibis")

from tests.rows.databases.engines import ENGINES, TestEngine, apart, started

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder are about real engines."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.thorough)


MARKS = {"pyspark": [pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]}
"""PySpark closes a socket by forgetting it."""


@pytest.fixture(scope="session")
def postgres() -> Iterator[TestEngine]:
    with started("postgres") as found:
        yield found


@pytest.fixture(scope="session")
def pyspark() -> Iterator[TestEngine]:
    with started("pyspark") as found:
        yield found


@pytest.fixture(scope="session", params=[pytest.param(name, marks=MARKS.get(name, ())) for name in ENGINES])
def engine(request: pytest.FixtureRequest) -> Iterator[TestEngine]:
    if request.param in ("postgres", "pyspark"):
        yield request.getfixturevalue(request.param)
    else:
        with started(request.param) as found:
            yield found


@pytest.fixture
def breakable(engine: TestEngine) -> TestEngine:
    """The engine through connections that the test may break."""
    return apart(engine)


@pytest.fixture
def breakable_postgres(postgres: TestEngine) -> TestEngine:
    return apart(postgres)

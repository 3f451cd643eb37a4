"""Engines for tests of SQL, started once a session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("ibis")

from tests.sql.engines import ENGINES, TestEngine, started


@pytest.fixture(scope="session")
def postgres() -> Iterator[TestEngine]:
    with started("postgres") as found:
        yield found


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[TestEngine]:
    if request.param == "postgres":
        yield request.getfixturevalue("postgres")
    else:
        with started(request.param) as found:
            yield found

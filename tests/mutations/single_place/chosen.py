"""A plugin of pytest that keeps the tests that a file lists, a node id or a file of tests a line."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--chosen", metavar="FILE", required=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    order = {name: place for place, name in enumerate(Path(config.getoption("--chosen")).read_text().splitlines())}

    def place(item: pytest.Item) -> int | None:
        return order.get(item.nodeid, order.get(item.nodeid.partition("::")[0]))

    items[:] = sorted((item for item in items if place(item) is not None), key=lambda item: place(item) or 0)

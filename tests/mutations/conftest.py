"""``--faults-of``: the faults of what somebody has changed."""

from __future__ import annotations

from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--faults-of",
        action="append",
        metavar="PATH",
        help="of the deliberate faults those in a file or folder, or seen by a test of it; may be repeated",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if of := tuple(config.getoption("--faults-of") or ()):
        gone = [item for item in items if not any(where.startswith(of) for where in _places(item))]
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if item not in gone]


def _places(item: Any) -> list[str]:
    entry = item.callspec.params["entry"] if hasattr(item, "callspec") else {"file": "", "tests": ()}
    return [entry["file"], *entry["tests"]]

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
    of = tuple(config.getoption("--faults-of") or ())
    if of:
        kept = [item for item in items if any(where.startswith(of) for where in _places(item))]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept


def _places(item: pytest.Item) -> list[str]:
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return []
    entry: Any = item.callspec.params["entry"]
    return [entry["file"], *entry["tests"]]

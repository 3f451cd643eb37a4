"""Fixtures that several test folders share."""

from __future__ import annotations

import os
import signal

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # workers share the cores
    os.environ.setdefault(_name, "1")

from pathlib import Path

import pytest
from hypothesis import settings

from tests.alarms import Alarm, stated

settings.register_profile("every day", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    """Every day the same examples on every machine, so that a change alone makes a test fail; with ``-m long`` others
    each time. Interrupts arrive, also where a shell that runs this in the background has its jobs ignore them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.load_profile("search" if "long" in config.option.markexpr else "every day")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the benchmark data, which is stored outside the repository."""
    folder = os.environ.get("CLOISTER_DATA")
    if not folder:
        pytest.skip("CLOISTER_DATA names no folder")
    return Path(folder)


@pytest.fixture
def alarm(request: pytest.FixtureRequest) -> Alarm:
    """The false-alarm rate that the test's mark states."""
    rate = stated(request.node)
    assert rate, "a test that takes `alarm` says its rate: @pytest.mark.alarm(1e-8)"
    return Alarm(rate)


ASKED_FOR = {"thorough": ("thorough", "long"), "long": ("long",), "mutations": ("mutations",)}
"""Markers of what is run where ``-m`` has one of these words; what is thorough also where a test is asked for by its
name (``file.py::test``)."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    named = any("::" in argument for argument in config.args)
    left_out = list[pytest.Item]()
    for item in items:
        for name, words in ASKED_FOR.items():
            asked = any(word in config.option.markexpr for word in words) or (named and name == "thorough")
            if not asked and item.get_closest_marker(name):
                left_out.append(item)
                break
    gone = set(left_out)
    items[:] = [item for item in items if item not in gone]
    config.hook.pytest_deselected(items=left_out)

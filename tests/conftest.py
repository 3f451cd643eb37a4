"""Fixtures that several test folders share."""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # workers share the cores
    os.environ.setdefault(_name, "1")

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the benchmark data, which is stored outside the repository."""
    folder = os.environ.get("CLOISTER_DATA")
    if not folder:
        pytest.skip("CLOISTER_DATA names no folder")
    return Path(folder)


SLOW = "VectorSumOracle-ldp-average-one_report_hides_its_row"
"""The one check of the kit that draws a million Gaussian numbers, one by one."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if SLOW in item.name:
            item.add_marker(pytest.mark.slow)

"""Fixtures that several test folders share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the benchmark data, which is stored outside the repository."""
    folder = os.environ.get("CLOISTER_DATA")
    if not folder:
        pytest.skip("CLOISTER_DATA names no folder")
    return Path(folder)

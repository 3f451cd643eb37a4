"""Good files of every kind for the fuzzers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.commands.bad_inputs_folder import made

    return made(tmp_path_factory.mktemp("odd"))


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    """A copy, which a test may change."""
    ignored = shutil.ignore_patterns("pipe.json", "loop.csv")
    return Path(shutil.copytree(good, tmp_path / "odd", symlinks=True, ignore=ignored))

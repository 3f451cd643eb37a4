"""Errors say what was given, what was expected and what to do, by names that pip can find."""

from __future__ import annotations

import importlib.metadata
import json
import re
from pathlib import Path
from typing import Any

import pytest

from cloister.core import errors
from cloister.core.errors import BudgetExceeded, MissingExtra, command


def test_a_missing_library_says_how_to_install_it_and_an_exceeded_budget_what_is_left() -> None:
    missing = str(MissingExtra("pyarrow", "files", "reading Parquet"))
    assert re.fullmatch(r"reading Parquet needs pyarrow: pip install '.*\[files\]'", missing)
    error = BudgetExceeded("epsilon 2", "epsilon 1", "the data set 'a'")
    assert str(error) == "the data set 'a' has epsilon 1 left, epsilon 2 was asked: nothing was read or spent"
    assert (error.asked, error.left) == ("epsilon 2", "epsilon 1")


def installed(folder: Path, origin: dict[str, Any] | None) -> Path:
    """A folder in which cloister is installed, as far as pip's notes go."""
    facts = folder / "site" / "cloister-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Name: cloister\nVersion: 1.0\n")
    if origin is not None:
        (facts / "direct_url.json").write_text(json.dumps(origin))
    return facts.parent


@pytest.mark.parametrize(
    ("origin", "told"),
    [
        (None, "pip install 'cloister[files]'"),
        (
            {"url": "https://host.example/cloister.whl", "archive_info": {}},
            "pip install 'cloister[files] @ https://host.example/cloister.whl'",
        ),
        (
            {"url": "https://host.example/cloister.git", "vcs_info": {"vcs": "git", "commit_id": "1f"}},
            "pip install 'cloister[files] @ git+https://host.example/cloister.git'",
        ),
    ],
)
def test_what_came_from_an_index_or_an_address_is_named_by_it(
    origin: dict[str, Any] | None, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(installed(tmp_path, origin))
    assert command("pyarrow", "files") == told


def test_a_clone_or_an_archive_on_this_machine_is_named_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "with space {0} and %"
    clone.mkdir()
    monkeypatch.syspath_prepend(installed(tmp_path, {"url": clone.as_uri(), "dir_info": {}}))
    assert command("pyarrow", "files") == f"pip install '{clone}[files]'"
    monkeypatch.chdir(clone)
    assert command("pyarrow", "files") == "pip install '.[files]'"


def test_source_that_is_not_installed_at_all_is_named_by_its_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    clone = Path(__file__).parents[2]
    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    monkeypatch.setattr(errors, "SOURCE", clone)  # tests may run on an installed copy
    monkeypatch.chdir("/")
    assert command("pyarrow", "files") == f"pip install '{clone}[files]'"
    monkeypatch.setattr(errors, "SOURCE", Path("/nowhere"))
    assert command("pyarrow", "files") == "pip install pyarrow"

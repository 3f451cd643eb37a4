"""Errors say what was given, what was expected and what to do, by names that pip can find."""

from __future__ import annotations

import errno
import json
import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from cloister.core.errors import cause, command


@pytest.mark.parametrize(
    ("asked", "shut", "there"),
    [("file", "file", "file"), ("sub/gone", "", "sub"), ("sub/gone", "sub", "sub"), ("sub/deeper/gone", "sub", "sub")],
)
def test_who_is_denied_a_file_is_told_whose_it_is_who_runs_this_and_what_to_do(
    asked: str, shut: str, there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch(0o440)
    (tmp_path / "sub").mkdir(0o500)
    monkeypatch.setattr(os, "access", lambda path, *_, **__: not shut or path != tmp_path / shut)
    denied, path = PermissionError(errno.EACCES, "Permission denied", str(tmp_path / asked)), tmp_path / there
    owner = pwd.getpwuid(os.geteuid()).pw_name
    told = f"Permission denied: {path} belongs to {owner}, with permissions {path.stat().st_mode & 0o777:o}, and "
    assert cause(denied) == f"{told}its owner runs this: chmod u+rwX {path}"
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_000)
    assert cause(denied) == (
        f"{told}this runs as user 4000000000: run it as {owner}, have it given to user 4000000000 (chown -R), or "
        f"choose another place"
    )
    monkeypatch.undo()
    path.chmod(0o700)
    assert cause(denied) == "Permission denied", "for another reason"
    assert cause(PermissionError(errno.EPERM, "Operation not permitted")) == "Operation not permitted"


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
        (None, "cloister[files]"),
        (
            {"url": "https://host.example/cloister.whl", "archive_info": {}},
            "cloister[files] @ https://host.example/cloister.whl",
        ),
        (
            {"url": "https://host.example/cloister.git", "vcs_info": {"vcs": "git", "commit_id": "1f"}},
            "cloister[files] @ git+https://host.example/cloister.git",
        ),
    ],
)
def test_what_came_from_an_index_or_an_address_is_named_by_it(
    origin: dict[str, Any] | None, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(installed(tmp_path, origin))
    assert command("pyarrow", "files") == f"pip install '{told}'"


@pytest.mark.parametrize("name", ["clone", "with space {0} and %"])
def test_a_clone_or_an_archive_on_this_machine_is_named_by_its_path_and_without_it_the_library(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / name
    monkeypatch.syspath_prepend(installed(tmp_path, {"url": clone.as_uri(), "dir_info": {}}))
    assert command("pyarrow", "files") == "pip install pyarrow"
    clone.mkdir()
    assert command("pyarrow", "files") == f"pip install '{clone}[files]'"
    monkeypatch.chdir(clone)
    assert command("pyarrow", "files") == "pip install '.[files]'"

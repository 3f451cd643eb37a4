"""Errors say what was given, what was expected and what to do, by names that pip can find."""

from __future__ import annotations

import errno
import importlib.metadata
import json
import os
import pwd
import re
from pathlib import Path
from typing import Any

import pytest

from cloister.core import errors
from cloister.core.errors import BudgetExceeded, CloisterError, MissingExtra, UnknownName, cause, command


def test_all_errors_have_one_base() -> None:
    found = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    kinds = [kind for kind in found if not issubclass(kind, Warning)]
    assert len(kinds) == 8
    assert all(issubclass(kind, CloisterError) for kind in kinds)


def test_an_unknown_name_offers_near_names_or_all() -> None:
    error = UnknownName("option", "count", iter(["counts", "county"]))
    assert str(error).startswith("no option 'count': did you mean count")
    assert " or count" in str(error)
    assert (error.kind, error.name) == ("option", "count")
    told = UnknownName("option", "z", ["epsilon", "delta"], "(of 'here')")
    assert str(told) == "no option 'z': choose from: delta, epsilon (of 'here')"


def test_a_missing_library_says_how_to_install_it_and_an_exceeded_budget_what_is_left() -> None:
    missing = str(MissingExtra("pyarrow", "files", "reading Parquet"))
    assert re.fullmatch(r"reading Parquet needs pyarrow: pip install '.*\[files\]'", missing)
    error = BudgetExceeded("epsilon 2", "epsilon 1", "the data set 'a'")
    assert str(error) == "the data set 'a' has epsilon 1 left, epsilon 2 was asked: nothing was read or spent"
    assert (error.asked, error.left) == ("epsilon 2", "epsilon 1")


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
    denied = PermissionError(errno.EACCES, "Permission denied", str(tmp_path / asked))
    mode, mine, path = (tmp_path / there).stat().st_mode & 0o777, os.geteuid(), re.escape(str(tmp_path / there))
    owner = pwd.getpwuid(mine).pw_name
    assert cause(denied) == (
        f"Permission denied: {tmp_path / there} belongs to {owner}, with permissions {mode:o}, and its owner runs "
        f"this: chmod u+rwX {tmp_path / there}"
    )
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_000)
    assert re.fullmatch(
        rf"Permission denied: {path} belongs to {owner}, with permissions {mode:o}, and this runs as user 4000000000: "
        rf"run it as {owner}, have it given to user 4000000000 \(chown -R\), or choose another place",
        cause(denied),
    )
    monkeypatch.undo()
    (tmp_path / there).chmod(0o700)
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


@pytest.mark.parametrize("name", ["clone", "with space {0} and %"])
def test_a_clone_or_an_archive_on_this_machine_is_named_by_its_path(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / name
    clone.mkdir()
    monkeypatch.syspath_prepend(installed(tmp_path, {"url": clone.as_uri(), "dir_info": {}}))
    assert command("pyarrow", "files") == f"pip install '{clone}[files]'"
    monkeypatch.chdir(clone)
    assert command("pyarrow", "files") == "pip install '.[files]'"


def test_where_the_clone_is_gone_the_library_itself_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(installed(tmp_path, {"url": (tmp_path / "gone").as_uri(), "dir_info": {}}))
    assert command("pyarrow", "files") == "pip install pyarrow"


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

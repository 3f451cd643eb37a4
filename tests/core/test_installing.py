"""A hint names what pip can find: where this cloister was installed from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cloister.core import installing
from cloister.core.errors import MissingExtra


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
    assert installing.command("pyarrow", "files") == told


@pytest.mark.parametrize("name", ["clone", "with space {0} and %"])
def test_a_clone_or_an_archive_on_this_machine_is_named_by_its_path(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / name
    clone.mkdir()
    monkeypatch.syspath_prepend(installed(tmp_path, {"url": clone.as_uri(), "dir_info": {}}))
    assert installing.command("pyarrow", "files") == f"pip install '{clone}[files]'"
    monkeypatch.chdir(clone)
    assert installing.command("pyarrow", "files") == "pip install '.[files]'"


def test_where_the_clone_is_gone_the_library_itself_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(installed(tmp_path, {"url": (tmp_path / "gone").as_uri(), "dir_info": {}}))
    assert str(MissingExtra("pyarrow", "files", "reading")) == "reading needs pyarrow: pip install pyarrow"


def test_source_that_is_not_installed_at_all_is_named_by_its_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise installing.PackageNotFoundError(name)

    clone = Path(__file__).parents[2]
    monkeypatch.setattr(installing, "distribution", missing)
    monkeypatch.setattr(installing, "SOURCE", clone)  # tests may run on an installed copy
    monkeypatch.chdir("/")
    assert installing.command("pyarrow", "files") == f"pip install '{clone}[files]'"
    monkeypatch.setattr(installing, "SOURCE", Path("/nowhere"))
    assert installing.command("pyarrow", "files") == "pip install pyarrow"

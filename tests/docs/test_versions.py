"""Sites of several versions beside one another: how they get there, and the choice of them in a real browser."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT

PAGE = """<!doctype html><html data-content_root="{root}"><title>{version}</title>
<a class="sidebar-brand">cloister</a><script defer src="{root}versions.js"></script>"""


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``docs/_ext/versions.py``."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    import versions

    return versions


def built(folder: Path, version: str) -> Path:
    """A site of two pages."""
    (folder / "howto").mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "docs" / "_static" / "versions.js", folder)
    (folder / "index.html").write_text(PAGE.format(root="./", version=version))
    (folder / "howto" / "page.html").write_text(PAGE.format(root="../", version=version))
    return folder


def test_the_newest_comes_first_and_a_release_candidate_is_nobody_s_first_page(versions: Any, tmp_path: Path) -> None:
    site = tmp_path / "site"
    for version in ("0.9.0", "0.10.0", "0.2.0", "0.11.0rc1", "0.10.0"):
        found = versions.add(built(tmp_path / "html", version), site, version)
    assert found == json.loads((site / "versions.json").read_text()) == ["0.11.0rc1", "0.10.0", "0.9.0", "0.2.0"]
    assert "url=0.10.0/" in (site / "index.html").read_text()
    assert "<title>0.9.0</title>" in (site / "0.9.0" / "index.html").read_text()

"""The README where only its text is, on an index of packages."""

from __future__ import annotations

import re
import runpy
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.docs.pages import ROOT

README = (ROOT / "README.md").read_text("utf-8")
HOOK = "docs/_ext/readme.py"
LINK = re.compile(r'(?:\]\(|src=")([^)"\s]+)')


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The text that the build's hook makes of the README, with an address of the repository."""
    plugin: Any = ModuleType("hatchling.metadata.plugin.interface")
    plugin.MetadataHookInterface = object
    monkeypatch.setitem(sys.modules, plugin.__name__, plugin)
    update = runpy.run_path(str(ROOT / HOOK))["Readme"].update

    def made(**urls: str) -> str:
        metadata: dict[str, Any] = {"version": "1.2.3", "urls": urls}
        update(SimpleNamespace(root=ROOT), metadata)
        assert metadata["readme"]["content-type"] == "text/markdown"
        return str(metadata["readme"]["text"])

    return made


def test_links_and_pictures_of_the_readme_lead_to_the_version_in_the_repository(shown: Any) -> None:
    before, after = LINK.findall(README), LINK.findall(shown(Source="https://forge.example/cloister/"))
    pictures = {link for link in before if link.endswith(".png")}
    assert len(pictures) == 2
    home = {link: f"https://forge.example/cloister/{'raw' if link in pictures else 'blob'}/v1.2.3/" for link in before}
    assert after == [link if "://" in link else home[link] + link for link in before]


def test_without_an_address_the_readme_stays_as_it_is(shown: Any) -> None:
    assert shown() == README

"""Sites of several versions beside one another: how they get there, and the choice of them in a real browser."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from tests.browser import CHROMIUM, Browser
from tests.clients.test_browser import Quiet
from tests.clients.test_other_origins import served
from tests.docs.pages import ROOT, extension

PAGE = """<!doctype html><html data-content_root="{root}"><title>{version}</title>
<a class="sidebar-brand">cloister</a><script defer src="{root}versions.js"></script>"""
CHOICE = "[...document.querySelectorAll('.versions option')].map((each) => each.text + (each.selected ? '!' : ''))"
add = extension("versions").add


def built(folder: Path, version: str) -> Path:
    """A site of two pages."""
    (folder / "howto").mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "docs" / "_static" / "versions.js", folder)
    (folder / "index.html").write_text(PAGE.format(root="./", version=version))
    (folder / "howto" / "page.html").write_text(PAGE.format(root="../", version=version))
    return folder


def test_the_newest_comes_first_and_a_release_candidate_is_nobody_s_first_page(tmp_path: Path) -> None:
    site = tmp_path / "site"
    for version in ("0.9.0", "0.10.0", "0.2.0", "0.11.0rc1", "0.10.0"):
        found = add(built(tmp_path / "html", version), site, version)
    assert found == json.loads((site / "versions.json").read_text()) == ["0.11.0rc1", "0.10.0", "0.9.0", "0.2.0"]
    assert "url=0.10.0/" in (site / "index.html").read_text()
    assert "<title>0.9.0</title>" in (site / "0.9.0" / "index.html").read_text()


@pytest.mark.thorough
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_a_reader_goes_from_one_version_to_another(tmp_path: Path) -> None:
    """From a page inside a folder too; a site that stands alone offers nothing."""
    site = tmp_path / "site"
    for version in ("0.1.0", "0.2.0"):
        add(built(tmp_path / "html", version), site, version)
    with served(partial(Quiet, directory=str(tmp_path))) as origin, Browser(tmp_path / "profile") as browser:
        browser.open(f"{origin}/html/index.html")
        assert browser.value(CHOICE) == []
        browser.open(f"{origin}/site/0.2.0/howto/page.html")
        browser.wait("document.querySelector('.versions')")
        assert browser.value(CHOICE) == ["0.2.0!", "0.1.0"]
        chosen = "s => { s.value = '0.1.0'; setTimeout(s.onchange, 50); }"  # the page answers before it goes
        browser.value(f"({chosen})(document.querySelector('.versions'))")
        browser.wait("document.title === '0.1.0' && document.querySelector('.versions')")
        assert browser.value("location.pathname") == "/site/0.1.0/"
        assert browser.value(CHOICE) == ["0.2.0", "0.1.0!"]

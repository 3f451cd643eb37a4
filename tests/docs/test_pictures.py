"""Stored pictures: their scripts run, and pages show all that these draw, each with a text in its place."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.docs.pages import PAGES, ROOT

SCRIPTS = {
    path.stem: path for path in (ROOT / "docs" / "_figures").glob("*.py") if '"--quick"' in path.read_text("utf-8")
}
"""Scripts that draw the pictures of a page, by the page's name."""

LARGEST, WIDEST = 150_000, 1_200
"""Bytes and pixels of a picture: small enough for a phone."""

PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
scripts = pytest.mark.parametrize("name", SCRIPTS)


def shown(name: str) -> dict[str, str]:
    """Pictures of a page, and the text in place of each."""
    text = PAGES[f"docs/explanation/{name}.md"].read_text("utf-8")
    return {file: words for words, file in PICTURE.findall(text)}


@scripts
def test_each_stored_picture_is_small_shown_and_has_a_text_in_its_place(name: str) -> None:
    folder = ROOT / "docs" / "explanation"
    assert {path.name for path in folder.glob(f"{name}_*.png")} == set(shown(name))
    for file, words in shown(name).items():
        assert len(words) > 60, f"{file}: say what it shows"
        assert (folder / file).stat().st_size < LARGEST
        with Image.open(folder / file) as image:
            assert image.width <= WIDEST


@pytest.mark.long
@scripts
def test_the_script_of_a_page_draws_what_the_page_shows(name: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, SCRIPTS[name], "--quick", "--folder", tmp_path], check=True)
    assert {path.name for path in tmp_path.iterdir()} == set(shown(name))

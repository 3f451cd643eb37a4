"""What a version is published with: one version everywhere, files that tools read."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from cloister import __version__
from tests.docs.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
TAG = f"v{__version__}"
ADDRESS = "https://example.org/people/cloister"


CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))


def test_the_version_is_one_wherever_it_stands() -> None:
    """In results and plans, in the distribution, in what one cites, in the changelog."""
    assert PROJECT["project"]["version"] == CITATION["version"] == __version__
    assert f"\n## {__version__}\n" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_citation_says_what_the_format_demands_and_the_project_says() -> None:
    """Citation File Format 1.2.0: four members are required."""
    assert (CITATION["cff-version"], CITATION["type"], bool(CITATION["message"])) == ("1.2.0", "software", True)
    names = {"title": "name", "license": "license", "abstract": "description"}
    for name, here in (names | {"authors": "authors", "keywords": "keywords"}).items():
        assert CITATION[name] == PROJECT["project"][here]


def test_what_builds_a_release_is_pinned_by_digest_and_allowed_by_the_project() -> None:
    lines = [line for line in (ROOT / ".ci" / "build.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+( --hash=sha256:[0-9a-f]{64})+", line) for line in lines)
    pinned = dict(line.split(" ")[0].split("==") for line in lines)
    (name, least), *others = (each.split(">=") for each in PROJECT["build-system"]["requires"])
    assert not others
    assert tuple(map(int, pinned[name].split("."))) >= tuple(map(int, least.split(".")))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A source that says where it is."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "tagged.py", tmp_path / ".ci")
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## {__version__}\n")
    (tmp_path / "pyproject.toml").write_text(
        f'[project]\nversion = "{__version__}"\n[project.urls]\nSource = "{ADDRESS}"\n'
    )
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "tag", "said"),
    [
        ("", "", TAG, ""),
        ("", "", __version__, f"the tag is {__version__}, the version {__version__}: tag {TAG}"),
        (ADDRESS, "https://example.org/a/fork", TAG, "and pyproject.toml says https://example.org/a/fork"),
        ("[project.urls]", "[other]", TAG, "and pyproject.toml says None"),
    ],
)
def test_another_version_or_repository_than_the_source_says_is_not_published(
    old: str, new: str, tag: str, said: str, source: Path
) -> None:
    project = source / "pyproject.toml"
    project.write_text(project.read_text().replace(old, new))
    words = [sys.executable, source / ".ci" / "tagged.py", tag, ADDRESS]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, said in done.stderr) == (int(bool(said)), True)

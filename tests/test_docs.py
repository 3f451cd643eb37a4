"""The pages: links lead somewhere, commands and their options exist, Python runs or at least compiles."""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from cloister.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(page: Path, language: str) -> list[str]:
    """Its fenced blocks in a language, also inside lists; not the tutorial's, which name the file they are from."""
    found = re.findall(rf"^( *)```{language}\b[^\n/]*\n(.*?)^\1```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(text) for _, text in found]


def anchors(page: Path) -> set[str]:
    """What its headings are called in links."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pages
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if "://" not in link:
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


@pages
def test_commands_and_their_options_exist(page: Path) -> None:
    """Those of this program, that is, in blocks of shell."""
    for line in "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["cloister"]:
            command: Any = typer.main.get_command(app)
            rest = words[1:]
            while hasattr(command, "commands"):
                assert rest[0] in command.commands, line
                command, rest = command.commands[rest[0]], rest[1:]
            known = {name for option in command.params for name in option.opts + option.secondary_opts}
            assert {word.partition("=")[0] for word in rest if re.match("--?[a-zA-Z]", word)} <= known, line


@pages
def test_python_compiles(page: Path) -> None:
    for block in blocks(page, "python"):
        compile(block, page.name, "exec")


def test_the_readme_s_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    (block,) = blocks(ROOT / "README.md", "python")
    exec(block, {"rows": np.random.default_rng(0).normal(0, 0.3, (1000, 2))})
    assert "epsilon = 1, delta = 1e-07, Central trust" in capsys.readouterr().out

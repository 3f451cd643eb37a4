"""The pages and the blocks of code on them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import pytest

ROOT = Path(__file__).parents[2]
MADE = {"_build", "pictures", "generated", "jupyter_execute"}
"""Folders of what the site's build makes."""

PAGES = {
    str(page.relative_to(ROOT)): page
    for page in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    if not MADE & set(page.relative_to(ROOT).parts)
}

REASONS = (
    "installs software",  # tests install nothing; .ci/run does
    "run by .ci/run",  # the README's two commands, in a fresh environment
    "other machines",  # needs machines that tests do not have
    "other programs",  # needs programs that neither Python nor cloister brings
    "runs for hours",  # a benchmark over all its sets
)
"""Why a block may not be run: ``no-run: REASON`` after its language. Nothing else is a reason."""


@cache
def extension(name: str) -> Any:
    """A module of docs/_ext, of those that need no Sphinx."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs" / "_ext"))
        return import_module(name)


@attrs.frozen
class Block:
    """Fenced code. Args: page, line (of its first line, from 1), language, info (what follows it), text."""

    page: str
    line: int
    language: str
    info: str
    text: str

    @property
    def reason(self) -> str | None:
        """Why it is not run, if it says that it is not."""
        return self.info.removeprefix("no-run:").strip() if self.info.startswith("no-run") else None

    @property
    def file(self) -> str | None:
        """The file that it is, if it is one."""
        return self.info if re.fullmatch(r"[\w-]+(\.[\w-]+)+", self.info) else None


def blocks(page: str) -> Iterator[Block]:
    """A page's, in order, also those inside lists."""
    text = PAGES[page].read_text("utf-8")
    for found in re.finditer(r"^( *)```(\S+)?[ ]*([^\n`]*)\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, found.start(4)) + 1
        yield Block(page, line, found[2] or "", found[3].strip(), textwrap.dedent(found[4]))


def commands(text: str) -> list[str]:
    """A shell block's lines, joined where they end in a backslash; no comments by themselves."""
    lines = (line.strip() for line in text.replace("\\\n", " ").splitlines())
    return [line for line in lines if line and not line.startswith("#")]

"""Links lead somewhere, and commands in a line of prose exist with all their options."""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import Any

import pytest
import typer

from cloister.cli import app
from tests.docs.pages import PAGES, blocks, commands

pages = pytest.mark.parametrize("page", PAGES)


def anchors(text: str) -> set[str]:
    """What a page's headings are called in links."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@cache
def program() -> Any:
    """The command line as its parser has it, which takes a while to build."""
    return typer.main.get_command(app)


@pages
def test_links_lead_somewhere(page: str) -> None:
    for link in re.findall(r"(?:\]\(|<img src=\")([^)\s\"]+)", PAGES[page].read_text("utf-8")):
        name, _, anchor = link.partition("#")
        target = PAGES[page].parent / name if name else PAGES[page]
        if "://" not in link:
            assert target.exists(), link
            assert not anchor or anchor in anchors(target.read_text("utf-8")), link


@pages
def test_commands_and_their_options_exist(page: str) -> None:
    """Of this program: in blocks that are not run, and in prose, where they may lack what the reader knows."""
    shown = [line for block in blocks(page) if block.language == "sh" for line in commands(block.text)]
    for line in [*shown, *re.findall(r"`(cloister [^`]+)`", PAGES[page].read_text("utf-8"))]:
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            continue  # a quotation that ends elsewhere
        if words[0] == "cloister" and not words[1].isupper():
            command, rest = program(), words[1:]
            while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
                assert rest[0] in command.commands, line
                command, rest = command.commands[rest[0]], rest[1:]
            known = {name for option in command.params for name in option.opts + option.secondary_opts} | {"--help"}
            assert {word.partition("=")[0] for word in rest if re.match("--?[a-zA-Z]", word)} <= known, line

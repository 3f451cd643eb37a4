"""What the site is made with: docstrings become pages that mean the same, and a built site is looked over."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cloister.core.registry.components import ROLES
from cloister.core.registry.registry import registry
from tests.docs.pages import ROOT, extension

DOCSTRING = """What it does: x_ and |y| * 2 *h* b*, ``a_`` as code.

**Why.** Because *of all things* 2 * 3 * 4 is one.

Args:
    rows: a table (n, d),
        with more to say.
    k: how many.

* one thing_
* another

    shown   as it
    stands  here

The end:
    like this

1. first_,
   on two lines

       a formula_

   and more_ of it
2. second

text

    1. also a list

Warns:
    ThisWarning: of that
"""


def test_docstrings_mean_the_same_on_the_site() -> None:
    lines = extension("prose").rst(DOCSTRING)
    assert lines[0] == r"What it does: x\_ and \|y\| \* 2 *h* b\*, ``a_`` as code."
    assert lines[2] == r"**Why.** Because *of all things* 2 \* 3 \* 4 is one."
    assert "* ``rows``: a table (n, d), with more to say." in lines
    assert "* ``k``: how many." in lines
    assert r"* one thing\_" in lines
    assert lines[lines.index("::") + 2 :][:2] == ["        shown   as it", "        stands  here"]
    end = lines.index("The end:")
    assert lines[end : end + 6] == ["The end:", "", "::", "", "        like this", ""]
    assert lines[end + 6 : end + 9] == [r"1. first\_,", "   on two lines", ""]
    assert lines[end + 9 :] == [
        "   ::",
        "",
        "           a formula_",
        "",
        r"   and more\_ of it",
        "2. second",
        "",
        "text",
        "",
        "1. also a list",
        "",
        "**Warns**",
        "",
        "* ``ThisWarning``: of that",
        "",
    ]


def test_every_command_and_every_component_has_a_page(tmp_path: Path) -> None:
    import typer

    from cloister.cli import app

    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "gone.rst").write_text("of a command that is no more")
    extension("reference").write(tmp_path)
    command: Any = typer.main.get_command(app)
    assert {page.stem for page in (tmp_path / "cli").iterdir()} == set(command.commands)
    index = (ROOT / "docs" / "reference" / "components.md").read_text("utf-8")
    for role in ROLES:
        names = {spec.name for spec in registry().specs(role)}
        assert {page.stem for page in (tmp_path / "components" / role).glob("*")} == names
        assert f"components/{role}/*" in index or not names
    page = (tmp_path / "components" / "Method" / "hst-means.rst").read_text("utf-8")
    assert "``--set start_share=0.7``" in page
    options = (tmp_path / "options.txt").read_text("utf-8")
    why = "the result has the categories, and figures are of rows."
    assert f"* ``evaluate`` takes no ``--category``, ``--user-column``: {why}" in options
    assert ".. option:: --epsilon" in (tmp_path / "cli" / "fit.rst").read_text("utf-8")
    estimators = (tmp_path / "python" / "estimators.rst").read_text("utf-8")
    assert {"fit", "predict", "load", "set_params"} <= set(re.findall(r"\w+", estimators))
    assert (tmp_path / "cli.txt").read_text("utf-8").count("\n* ") == len(command.commands)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="gone.html">x</a>', "there is no gone.html"),
        ('<a href="other.html#gone">x</a>', "names no part"),
        ('<img src="gone.png">', "there is no gone.png"),
        ('<script src="https://cdn.example/x.js"></script>', "fetches https://cdn.example/x.js"),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', "fetches //cdn.example/x.css"),
    ],
)
def test_a_dead_link_and_what_is_fetched_from_elsewhere_are_found(body: str, fault: str, tmp_path: Path) -> None:
    faults = extension("site_check").faults
    good = (
        '<p id="part"><a href="other.html#part">x</a> <a href="https://elsewhere.example/">x</a> <a href="#part">x</a>'
    )
    (tmp_path / "index.html").write_text(good)
    (tmp_path / "other.html").write_text('<p id="part">')
    assert faults(tmp_path) == []
    (tmp_path / "index.html").write_text(good + body)
    (found,) = faults(tmp_path)
    assert fault in found

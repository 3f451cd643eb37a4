"""The site's own Sphinx extension: generates the reference, reads docstrings, and checks what was built."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import promises
import reference
from prose import rst
from site_check import faults
from sphinx.errors import SphinxError


def setup(app: Any) -> dict[str, Any]:
    app.connect("builder-inited", lambda app: reference.write(Path(app.srcdir) / "reference" / "generated"))
    app.connect("builder-inited", _forgotten)
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("source-read", _links_that_leave)
    app.connect("source-read", _tests_of_threats)
    app.connect("build-finished", _checked)
    return {"parallel_read_safe": True}


def _forgotten(app: Any) -> None:
    """Take away what the gallery has made of scripts that are there no more."""
    root = Path(app.srcdir)
    for made in (root / "pictures").glob("plot_*"):
        if not (root / "gallery" / made.name.partition(".")[0]).with_suffix(".py").exists():
            made.unlink()


def _docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = rst("\n".join(lines))


def _links_that_leave(app: Any, page: str, source: list[str]) -> None:
    """The pages are also read beside the code: there they may link to a folder or a script, which the site lacks. The
    gallery's scripts have pages here, and files of ``deploy/`` come with the site; of other links the text stays."""
    here, root = (Path(app.srcdir) / page).parent, Path(app.srcdir)

    def site(found: re.Match[str]) -> str:
        text, target = found[1], (here / found[2].partition("#")[0]).resolve()
        if target == root / "gallery":
            return f"[{text}](/pictures/index.rst)"
        if target.parent == root / "gallery" and target.suffix == ".py":
            return f"[{text}](/pictures/{target.stem}.rst)"
        if root.parent / "deploy" in target.parents:
            return f"{{download}}`{text} <{found[2]}>`"
        return found[0] if root in target.parents or "://" in found[2] or found[2].startswith("#") else text

    if (Path(app.srcdir) / f"{page}.md").exists():
        source[0] = re.sub(r"(?<!!)\[([^\[\]]+)\]\(([^)\s]+)\)", site, source[0])


def _tests_of_threats(app: Any, page: str, source: list[str]) -> None:
    if f"docs/{page}.md" == promises.THREATS:
        source[0] = promises.played(source[0])


def _checked(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        found = faults(Path(app.outdir))
        if found:
            raise SphinxError("the site has faults:\n" + "\n".join(found))

"""``cloister report``: a result as one page for people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloister.commands.common import AsJson, print_json, show
from cloister.commands.endings import printing


def report(
    result: Annotated[Path, typer.Argument(help="A result that fit, decode, advance or join saved.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The page: .html.")],
    opened: Annotated[bool, typer.Option("--open", help="Also open the page in a browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a result as one page of HTML: the promise, the clusters, maps, what was spent. Released values only: reads
    no rows, and the page asks no network."""
    from cloister.run.result import Result, checked_target

    target = checked_target(out, (".html",), "reports")
    loaded = Result.load(result)
    loaded.report(target)
    with printing(lambda: f"the report is in {target}"):
        if as_json:
            facts = {"report": str(target), "clusters": len(loaded.centers), "columns": len(loaded.columns)}
            print_json({**facts, "privacy": loaded.privacy.headline, "bytes": target.stat().st_size})
        else:
            show(f"saved to {target}: open it in a browser")
    if opened:
        import webbrowser

        webbrowser.open(target.absolute().as_uri())

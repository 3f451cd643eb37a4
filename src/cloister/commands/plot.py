"""``cloister plot``: a result as a picture.

``cloister report``: a result as one page for people.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cloister.commands.common import AsJson, OpenIt, names, plain, print_json, show
from cloister.commands.program import printing
from cloister.core.errors import InvalidInput


def plot(
    result: Annotated[Path, typer.Argument(help="A result that fit, decode, advance or join saved.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The picture: .png or .svg.")],
    curve: Annotated[bool, typer.Option("--curve", help="The tree program's cost against k, not the map.")] = False,
    parallel: Annotated[
        bool, typer.Option("--parallel", help="Parallel coordinates: a line per centre over the columns.")
    ] = False,
    axes: Annotated[
        str | None, typer.Option(help="Two columns, separated by a comma; default: the first two of numbers.")
    ] = None,
    described: Annotated[
        bool, typer.Option("--described", help="What the groups hold: a histogram per described column.")
    ] = False,
    project: Annotated[
        bool, typer.Option("--project", help="The tree's public projection, or else the centres' principal axes.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Draw a result: its centres and tree cells, a line per centre, what groups hold, or cost against k. Released
    values only: reads no rows."""
    from cloister.run.result import Result, checked_target
    from cloister.showing.lines import Parallel
    from cloister.showing.plot_data import Curve, Map
    from cloister.showing.plots import ENDINGS, figure_of, save
    from cloister.showing.telling import Histograms

    kinds: list[Any] = [Curve] * curve + [Parallel] * parallel + [Histograms] * described
    if kinds and (axes is not None or project):
        raise InvalidInput("--axes and --project are for the map: give --curve, --parallel or --described alone")
    if len(kinds) > 1:
        raise InvalidInput("one picture a file: give one of --curve, --parallel and --described")
    target = checked_target(out, ENDINGS, "pictures")
    loaded = Result.load(result)
    picture = kinds[0].of(loaded) if kinds else Map.of(loaded, names(axes), project)
    save(figure_of(picture), target, f"{picture.heading.title} ({picture.heading.guarantee})")
    with printing(lambda: f"the picture is in {target}"):
        if as_json:
            print_json({**picture.as_dict(), "file": str(target)})
        else:
            show(f"{plain(picture.text())}\nsaved to {target}")


def report(
    result: Annotated[Path, typer.Argument(help="A result that fit, decode, advance or join saved.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The page: .html.")],
    opened: OpenIt = False,
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

"""``cloister plot``: a result as a picture.

``cloister report``: a result as one page for people, and as a record of the registry of deployments.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cloister.commands.common import (
    AsJson,
    GroupNames,
    OpenIt,
    names as split,
    plain,
    print_json,
    show,
)
from cloister.commands.option_groups import mapping_in, result_from
from cloister.commands.program import printing
from cloister.core.errors import InvalidInput

Axes = Annotated[
    str | None,
    typer.Option(
        help="The map's two columns, separated by a comma. Default: of plot the first two of numbers, of "
        "report those in which the centres differ most."
    ),
]


def plot(
    result: Annotated[Path, typer.Argument(help="A result that fit, decode, advance or join saved.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The picture: .png or .svg.")],
    curve: Annotated[bool, typer.Option("--curve", help="The tree program's cost against k, not the map.")] = False,
    parallel: Annotated[
        bool, typer.Option("--parallel", help="Parallel coordinates: a line per centre over the columns.")
    ] = False,
    axes: Axes = None,
    described: Annotated[
        bool, typer.Option("--described", help="What the groups hold: a histogram per described column.")
    ] = False,
    project: Annotated[
        bool, typer.Option("--project", help="The tree's public projection, or else the centres' principal axes.")
    ] = False,
    names: GroupNames = None,
    as_json: AsJson = False,
) -> None:
    """Draw a result: its centres and tree cells, a line per centre, what groups hold, or cost against k. Released
    values only: reads no rows."""
    from cloister.run.saving import checked_target
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
    loaded = result_from(result, names)
    picture = kinds[0].of(loaded) if kinds else Map.of(loaded, split(axes), project)
    save(figure_of(picture), target, f"{picture.heading.title} ({picture.heading.guarantee})")
    with printing(lambda: f"the picture is in {target}"):
        if as_json:
            print_json({**picture.as_dict(), "file": str(target)})
        else:
            show(f"{plain(picture.text())}\nsaved to {target}")


def report(
    result: Annotated[Path, typer.Argument(help="A result that fit, decode, advance or join saved.")],
    out: Annotated[Path | None, typer.Option("-o", "--out", help="The page: .html.")] = None,
    axes: Axes = None,
    names: GroupNames = None,
    registry: Annotated[
        Path | None,
        typer.Option(
            help="Write the run's facts as a record of the Differential Privacy Deployments Registry, too: .yaml."
        ),
    ] = None,
    facts: Annotated[
        Path | None,
        typer.Option(help="What a run cannot know for --registry (who, where, when, links): a .toml or .json file."),
    ] = None,
    opened: OpenIt = False,
    as_json: AsJson = False,
) -> None:
    """Write a result as one page of HTML: what was found, the promise, the clusters, maps, what was spent. Released
    values only: reads no rows, and the page asks no network."""
    from cloister.run.saving import checked_target, put
    from cloister.showing.registry import record_of

    if out is None and registry is None:
        raise InvalidInput("there is nothing to write: give -o page.html, or --registry record.yaml")
    if (facts is not None and registry is None) or ((opened or axes is not None) and out is None):
        raise InvalidInput(
            "--facts are for --registry record.yaml, --axes and --open are for -o page.html: give both of a pair"
        )
    page = None if out is None else checked_target(out, (".html",), "reports")
    target = None if registry is None else checked_target(registry, (".yaml",), "records")
    loaded, told = result_from(result, names), dict[str, Any]()
    record = "" if target is None else record_of(loaded, mapping_in(facts, "facts"), target.stem)
    if page is not None:
        loaded.report(page, split(axes))
        told |= {"report": str(page), "bytes": page.stat().st_size}
    if target is not None:
        put(target, record.encode())
        told["registry"] = str(target)
    pairs = (page, ": open it in a browser"), (target, "")
    words = "\n".join(f"saved to {path}{hint}" for path, hint in pairs if path is not None)
    with printing(lambda: words):
        if as_json:
            told |= {"clusters": len(loaded.centers), "columns": len(loaded.columns)}
            print_json({**told, "privacy": loaded.privacy.headline})
        else:
            show(words)
    if opened and page is not None:
        import webbrowser

        webbrowser.open(page.absolute().as_uri())

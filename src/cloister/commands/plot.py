"""``cloister plot`` and ``cloister report``: a result as a picture, as a page, and as a record of the registry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cloister.commands.common import (
    AsJson,
    GroupNames,
    OpenIt,
    SavedResult,
    plain,
    print_json,
    show,
)
from cloister.commands.names import split_names
from cloister.commands.option_groups import mapping_in, result_from
from cloister.commands.program import printing
from cloister.core.errors import InvalidInput

Axes = Annotated[
    str | None,
    typer.Option(
        help="Two columns for the map, separated by a comma. Default: for plot the first two columns of numbers, for "
        "report those in which the centres differ most."
    ),
]


def plot(
    result: SavedResult,
    out: Annotated[Path, typer.Option("-o", "--out", help="File for the picture: .png or .svg.")],
    curve: Annotated[
        bool,
        typer.Option("--curve", help="Plot cost against k, as a tree method computed it, instead of the map."),
    ] = False,
    parallel: Annotated[
        bool, typer.Option("--parallel", help="Plot parallel coordinates instead: a line per centre over the columns.")
    ] = False,
    axes: Axes = None,
    described: Annotated[
        bool, typer.Option("--described", help="Plot the groups' histograms instead, one per described column.")
    ] = False,
    project: Annotated[
        bool,
        typer.Option(
            "--project", help="Project the map: on the tree's public projection, or the centres' principal axes."
        ),
    ] = False,
    names: GroupNames = None,
    as_json: AsJson = False,
) -> None:
    """Plot a map, parallel lines, histograms or costs.

    The map shows the centres and the cells of a tree. Uses released values only, and reads no rows.
    """
    from cloister.run.saving import checked_target
    from cloister.showing.histograms import Histograms
    from cloister.showing.parallel import Parallel
    from cloister.showing.plot_data import Curve, Map
    from cloister.showing.plots import ENDINGS, figure_of, save

    kinds: list[Any] = [Curve] * curve + [Parallel] * parallel + [Histograms] * described
    if kinds and (axes is not None or project):
        raise InvalidInput("--axes and --project are for the map: give --curve, --parallel or --described alone")
    if len(kinds) > 1:
        raise InvalidInput("one picture a file: give one of --curve, --parallel and --described")
    target = checked_target(out, ENDINGS, "pictures")
    loaded = result_from(result, names)
    picture = kinds[0].of(loaded) if kinds else Map.of(loaded, split_names(axes), project)
    save(figure_of(picture), target, f"{picture.heading.title} ({picture.heading.guarantee})")
    with printing(lambda: f"the picture is in {target}"):
        if as_json:
            print_json({**picture.as_dict(), "file": str(target)})
        else:
            show(f"{plain(picture.text())}\nsaved to {target}")


def report(
    result: SavedResult,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="File for the page: .html.")] = None,
    axes: Axes = None,
    names: GroupNames = None,
    registry: Annotated[
        Path | None,
        typer.Option(help="Also write a record for the Differential Privacy Deployments Registry: .yaml."),
    ] = None,
    facts: Annotated[
        Path | None,
        typer.Option(help="Facts for --registry that no run knows (who, where, when, links): a .toml or .json file."),
    ] = None,
    opened: OpenIt = False,
    as_json: AsJson = False,
) -> None:
    """Write a result as one HTML page for people.

    The page has the clusters, the privacy guarantee, maps and the budget. It uses released values only, reads no rows,
    and loads nothing from a network.
    """
    from cloister.run.saving import checked_target, put
    from cloister.showing.registry import record_of

    if out is None and registry is None:
        raise InvalidInput("there is nothing to write: give -o page.html, or --registry record.yaml")
    if (facts is not None and registry is None) or ((opened or axes is not None) and out is None):
        raise InvalidInput("--facts needs --registry record.yaml, and --axes and --open need -o page.html")
    page = None if out is None else checked_target(out, (".html",), "reports")
    target = None if registry is None else checked_target(registry, (".yaml",), "records")
    loaded, written = result_from(result, names), dict[str, Any]()
    record = "" if target is None else record_of(loaded, mapping_in(facts, "facts"), target.stem)
    if page is not None:
        loaded.report(page, split_names(axes))
        written |= {"report": str(page), "bytes": page.stat().st_size}
    if target is not None:
        put(target, record.encode())
        written["registry"] = str(target)
    pairs = (page, ": open it in a browser"), (target, "")
    text = "\n".join(f"saved to {path}{hint}" for path, hint in pairs if path is not None)
    with printing(lambda: text):
        if as_json:
            written |= {"clusters": len(loaded.centers), "columns": len(loaded.columns)}
            print_json({**written, "privacy": loaded.privacy.headline})
        else:
            show(text)
    if opened and page is not None:
        import webbrowser

        webbrowser.open(page.absolute().as_uri())

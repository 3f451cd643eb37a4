"""``cloister plot``: a result as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloister.commands.common import AsJson, names, plain, print_json, show
from cloister.commands.endings import printing
from cloister.core.errors import InvalidInput


def plot(
    result: Annotated[Path, typer.Argument(help="A result that fit, decode, advance or join saved.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The picture: .png or .svg.")],
    curve: Annotated[bool, typer.Option("--curve", help="The tree program's cost against k, not the map.")] = False,
    parallel: Annotated[bool, typer.Option("--parallel", help="Parallel coordinates: a line per centre over the "
        "columns.")] = False,
    axes: Annotated[str | None, typer.Option(help="Two columns, separated by a comma; default: the first two.")] = None,
    project: Annotated[bool, typer.Option("--project", help="The tree's public projection, or else the centres' "
        "principal axes.")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Draw a result: its centres and tree cells, a line per centre, or cost against k. Released values only: reads no
    rows."""
    from cloister.plotting.data import Curve, Map
    from cloister.plotting.figures import ENDINGS, figure_of, save
    from cloister.plotting.parallel import Parallel
    from cloister.run.result import Result, checked_target

    if (curve or parallel) and (axes is not None or project):
        raise InvalidInput("--axes and --project are for the map: give --curve or --parallel alone")
    if curve and parallel:
        raise InvalidInput("one picture a file: give --curve or --parallel, not both")
    target = checked_target(out, ENDINGS, "pictures")
    loaded = Result.load(result)
    if parallel:
        picture: Map | Curve | Parallel = Parallel.of(loaded)
    else:
        picture = Curve.of(loaded) if curve else Map.of(loaded, names(axes), project)
    save(figure_of(picture), target, f"{picture.heading.title} ({picture.heading.guarantee})")
    with printing(lambda: f"the picture is in {target}"):
        if as_json:
            print_json({**picture.as_dict(), "file": str(target)})
        else:
            show(f"{plain(picture.text())}\nsaved to {target}")

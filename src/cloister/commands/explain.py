"""``cloister explain``: what a run would do, before any row is read."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloister.commands.common import ADDRESS_HELP, print_json, show, tell_columns
from cloister.commands.options import ROWS, Config, Printed, Reading, Wanted
from cloister.commands.taking import lacks, taking
from cloister.core.errors import InvalidInput

if TYPE_CHECKING:
    from cloister.rows.columns import Selection


@taking
def explain(
    reading: Reading,
    asked: Wanted,
    printed: Annotated[Printed, lacks("nothing is released", "out")],
    rows: Annotated[
        list[str] | None,
        typer.Argument(help=f"{ADDRESS_HELP} Only names and types of columns are read."),
    ] = None,
    dimension: Annotated[
        int | None, typer.Option(help="Number of columns, instead of files.", rich_help_panel=ROWS)
    ] = None,
    config: Config = None,
) -> None:
    """Candidates with their predicted errors, what is picked, and the questions that fit would ask with these very
    options. Reads no rows."""
    from cloister.run.fit import source

    request, as_json = asked.request(len(rows or ()) if asked.pooled else 0), bool(printed.as_json)
    if not rows or dimension is not None:
        show_forecast(request, _named(rows, reading, dimension), None, as_json)
        return
    with closing(source(rows, bounds=asked.bounds, **reading.arguments())) as population:
        tell_columns(population)
        show_forecast(request, population.selection, population, as_json)


def show_forecast(request: Any, chosen: Selection, population: Any, as_json: bool) -> None:
    """Print what a request would do. Args: population (whose rows are meant; None: columns alone are known)."""
    from cloister.run import users
    from cloister.run.explaining import explain as explained

    found = explained(request, chosen.features, chosen)
    if population is not None:
        users.check(found.plan.total, population, found.plan.composed.trust or "Central")
    if as_json:
        print_json(found.as_dict())
    else:
        show(found.text)


def _named(files: list[str] | None, reading: Reading, dimension: int | None) -> Selection:
    """The columns, without a file that has them. Raises: InvalidInput: nothing names them, or things that do not go
    together."""
    from cloister.rows.columns import TableColumn, select

    named, categories = reading.columns, reading.categories or {}
    if not files and reading.of_a_source:
        raise InvalidInput(
            f"{', '.join(reading.of_a_source)}: for files or databases, and there are no rows to read: leave them out"
        )
    if named is not None and not files and dimension is None:
        if not all(named):
            raise InvalidInput("a column has no name: give --columns a,b,c")
        return select([TableColumn(name, "cells") for name in dict.fromkeys([*named, *categories])], named, categories)
    if dimension is not None and dimension > 0 and not files and named is None and not categories:
        return select([TableColumn(str(i), "numbers") for i in range(dimension)], None, everything=True)
    raise InvalidInput(
        "give the columns: files that have them, their names (--columns a,b,c, and --category) or --dimension 10"
    )

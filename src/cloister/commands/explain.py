"""``cloister explain``: what a run would do, before any row is read."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated, cast

import typer

from cloister.commands.common import (
    AsJson,
    Categories,
    Centers,
    Delimiter,
    Encoding,
    TableName,
    TrustModel,
    listed_values,
    names,
    number_or_text,
    pairs,
    print_json,
    share_or_word,
    show,
    tell_columns,
    whole,
)
from cloister.core.errors import InvalidInput

if TYPE_CHECKING:
    from cloister.core.columns import Selection


def explain(
    k: Centers,
    epsilon: Annotated[float, typer.Option(help="Privacy budget of the run, in nats.")],
    bounds: Annotated[str, typer.Option(help="Public bounds: -1:1, or 0:120,0:1, or a .toml/.json file, or "
        "ball:RADIUS.")],
    public_rows: Annotated[int | None, typer.Option("--rows", parser=whole, metavar="<int>", help="Public number of "
        "rows; by default a noisy count would be asked for.")] = None,
    rows: Annotated[list[str] | None, typer.Argument(help="Files whose columns are meant, or a database's "
        "address with --table: only names and types of columns are read.")] = None,
    dimension: Annotated[int | None, typer.Option(help="Number of columns, instead of files.")] = None,
    columns: Annotated[str | None, typer.Option(help="Names of the columns, separated by commas.")] = None,
    category: Categories = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    table: TableName = None,
    method: Annotated[str, typer.Option(help="Which algorithm; auto shows all candidates.")] = "auto",
    trust: TrustModel = None,
    delta: Annotated[float, typer.Option(help="Probability of failure of the guarantee.")] = 0.0,
    zoom: Annotated[str, typer.Option(help="auto, off, or a share of the budget.")] = "auto",
    scale: Annotated[str | None, typer.Option(help="bounds, none, or a file of weights.")] = None,
    rows_per_user: Annotated[int | None, typer.Option(help="Most rows of one user that count.")] = None,
    wire: Annotated[list[str] | None, typer.Option("--with", help="slot=component. Repeatable.")] = None,
    values: Annotated[list[str] | None, typer.Option("--set", help="option=value. Repeatable.")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Candidates with their predicted errors, what is picked, and the questions that would be asked. Reads no rows."""
    from cloister.run.explaining import explain as explained
    from cloister.run.request import Request

    request = Request(
        k=number_or_text(k), method=method, epsilon=epsilon, delta=delta, bounds=bounds, rows=public_rows, trust=trust,
        zoom=share_or_word(zoom), scale=scale, rows_per_user=rows_per_user,
        components=pairs(wire, "--with"), options=pairs(values, "--set"), not_private=True,
    )  # fmt: skip
    form = {"delimiter": delimiter, "encoding": encoding, "table": table}
    chosen = _table(rows, names(columns), dimension, listed_values(category), bounds, form)
    found = explained(request, chosen.features, chosen)
    if as_json:
        print_json(found.as_dict())
    else:
        show(found.text)


def _table(
    files: list[str] | None, named: list[str] | None, dimension: int | None, categories: dict[str, list[str]],
    bounds: str, form: dict[str, str | None],
) -> Selection:  # fmt: skip
    """The columns, from what was given. Args: form (options of ``source``, about files and databases).

    Raises: InvalidInput: nothing, or things that do not go together.
    """
    from cloister.core.columns import TableColumn, select
    from cloister.run.fit import source

    if files and dimension is None:
        with closing(
            source(files, named, "refuse", categories=categories, bounds=bounds, **form)  # type: ignore[arg-type]  # texts
        ) as population:
            tell_columns(population)
            return cast("Selection", population.selection)
    if not files and any(value is not None for value in form.values()):
        raise InvalidInput("delimiter and encoding are for CSV files, table for a database: leave them out")
    if named is not None and not files and dimension is None:
        if not all(named):
            raise InvalidInput("a column has no name: give --columns a,b,c")
        return select([TableColumn(name, "cells") for name in dict.fromkeys([*named, *categories])], named, categories)
    if dimension is not None and dimension > 0 and not files and named is None and not categories:
        return select([TableColumn(str(i), "numbers") for i in range(dimension)], None, everything=True)
    raise InvalidInput(
        "give the columns: files that have them, their names (--columns a,b,c, and --category) or --dimension 10"
    )

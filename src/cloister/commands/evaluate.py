"""``cloister evaluate``: how well a result fits rows that one holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloister.commands import AsJson, Columns, Rows, print_json


def evaluate(
    result: Annotated[Path, typer.Argument(help="A result that fit saved.")],
    rows: Rows,
    columns: Columns = None,
    reference: Annotated[bool, typer.Option(help="Also compare with non-private k-means++ on the same rows.")] = False,
    as_json: AsJson = False,
) -> None:
    """How well released centres fit rows. NOT private: the figures tell about the rows."""
    from cloister import metrics
    from cloister.core.results import Result
    from cloister.runs import source

    loaded = Result.load(result)
    names = columns.split(",") if columns else list(loaded.columns)
    table = source(rows, names, "drop").table()
    other = metrics.reference_centers(table, len(loaded.centers), seed=0) if reference else None
    figures = metrics.evaluate(table, loaded.centers, other).as_dict()
    if as_json:
        print_json({"private": False, **figures})
        return
    typer.echo(
        "NOT private: these figures were computed from the rows themselves. Do not publish them with the result."
    )
    for name, value in figures.items():
        typer.echo(f"  {name:<16} {'-' if value is None else value}")

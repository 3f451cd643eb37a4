"""``cloister predict``: the nearest centre of each of the caller's own rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloister.commands.common import (
    AsJson,
    Delimiter,
    Encoding,
    Rows,
    names,
    print_json,
    progress,
    say,
    show,
    tell_columns,
)
from cloister.commands.endings import ending, printing


def predict(
    result: Annotated[Path, typer.Argument(help="A result that fit, decode, advance or join saved.")],
    rows: Rows,
    out: Annotated[Path, typer.Option("-o", "--out", help="File of the labels, a row for each row, in their order: "
        ".parquet or .csv with a column 'cluster', or .npy.")],
    columns: Annotated[str | None, typer.Option(help="What the result's columns are called in these files, in its "
        "order, separated by commas; default: as in the result.")] = None,
    keep: Annotated[str | None, typer.Option(help="Columns to copy along, separated by commas, such as id.")] = None,
    distances: Annotated[bool, typer.Option("--distances", help="Add each row's distance to its centre, in the run's "
        "units where it scaled columns.")] = False,
    missing: Annotated[str, typer.Option(help="Rows with missing or infinite cells: refuse, or drop (label "
        "-1).")] = "refuse",
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Label rows by their nearest released centre, files of any size. NOT private: labels tell about the rows."""
    from cloister.commands.predicting import ENDINGS, NOT_PRIVATE, Labels, rows_of
    from cloister.run.result import Result, checked_target

    target = checked_target(out, ENDINGS, "labels")
    loaded = Result.load(result)
    with ending(lambda error: "no labels were written: run it again"), progress("rows read") as advance:
        table = rows_of(loaded, rows, names(columns), missing, delimiter=delimiter, encoding=encoding)
        labels = Labels(loaded, table, names(keep) or (), distances, missing, advance)
        counts = labels.save(target)
    tell_columns(table)
    say(NOT_PRIVATE)
    with printing(lambda: f"the labels are in {target}"):
        if as_json:
            print_json(
                {
                    "private": False, "rows": counts.rows, "unused": counts.unused, "sizes": counts.sizes,
                    "file": str(target),
                }
            )  # fmt: skip
            return
        rest = f", {counts.unused:,} of them -1: they could not be used" if counts.unused else ""
        show(f"{counts.rows:,} labels{rest}, saved to {target}")

"""``cloister encode``: rows to reports, where the rows are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloister.commands import AsJson, names, print_json, progress, say
from cloister.core.errors import InvalidInput


def encode(
    plan: Annotated[Path, typer.Argument(help="Folder of the plan.")],
    rows: Annotated[list[str], typer.Argument(help="Files of rows: Parquet, Arrow, CSV, NPY, NPZ, or a pattern in quotes.")],
    out: Annotated[Path, typer.Option(help="Folder that the reports are put in.")],
    first: Annotated[int | None, typer.Option(help="User number of the first row; the others follow. Default: 0.")] = None,
    user_column: Annotated[str | None, typer.Option(help="Column that holds the user numbers.")] = None,
    columns: Annotated[str | None, typer.Option(help="Columns to use, in the plan's order, separated by commas; default: the plan's.")] = None,
    state: Annotated[Path | None, typer.Option(help="File that remembers what was answered and spent; made if it is not there.")] = None,
    lifetime: Annotated[float | None, typer.Option(help="Most epsilon that a person may ever spend; needs --state.")] = None,
    missing: Annotated[str, typer.Option(help="Rows with missing or infinite cells: refuse, or drop (which tells who has such a row).")] = "refuse",
    format: Annotated[str, typer.Option(help="parquet or arrow.")] = "parquet",
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Randomise rows into reports that may leave. Runs where the rows are; nothing else leaves."""
    if first is not None and user_column is not None:
        raise InvalidInput(
            "user numbers come from the rows' positions or from a column: give --first or --user-column, not both"
        )
    if lifetime is not None and state is None:
        raise InvalidInput("--lifetime needs a file that remembers what was spent: give --state FILE")

    from cloister.collecting import FORMATS, Naming, Table, collect
    from cloister.encoder import Encoder, State, read
    from cloister.plans import loud

    if format not in FORMATS:
        raise InvalidInput(f"format is '{format}': choose parquet or arrow")
    if missing not in ("refuse", "drop"):
        raise InvalidInput(f"missing is '{missing}': choose refuse or drop")
    kept = None if state is None else State(state, lifetime)
    opened = read(plan)
    for warning in loud(opened.total):
        say(f"WARNING: {warning}")
    if kept is None:
        say(
            "no --state: nothing remembers these reports. Encoding the same rows again, under this plan or another, spends again"
        )
    elsewhere = sorted(out.glob("part-*")) if out.is_dir() else []
    if elsewhere:
        say(f"{out} already holds {len(elsewhere)} files of reports: people who are in two files count once at most")
    encoder = Encoder(opened)
    with progress("rows read") as advance:
        table = Table(encoder, rows, Naming(first=first or 0, column=user_column), names(columns), missing, advance)
        path, written = collect(encoder, table, out, "arrow" if format == "arrow" else "parquet", kept)
    if as_json:
        print_json(
            {
                "plan": opened.hash,
                "epsilon": opened.total.epsilon,
                "delta": opened.total.delta,
                "reports": written,
                "file": str(path),
            }
        )
    else:
        if opened.crowd is not None:
            typer.echo(f"messages of {written:,} people under plan {opened.hash[:16]}, for the shuffler, in {path}")
            return
        delta = f", delta = {opened.total.delta:g}" if opened.total.delta else ""
        typer.echo(
            f"{written:,} reports under plan {opened.hash[:16]}, each epsilon = {opened.total.epsilon:g}{delta}, in {path}"
        )

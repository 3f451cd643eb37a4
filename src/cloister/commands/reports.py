"""``cloister reports``: reports as a table, for people to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloister.commands.common import AsJson, PlanFolder, ReportFiles, given_reports, print_json, say, show
from cloister.commands.program import ending, printing
from cloister.commands.progress import counting


def reports(
    plan: PlanFolder,
    reports: ReportFiles,
    out: Annotated[Path, typer.Option(help="Parquet file to write.")],
    number: Annotated[
        int | None,
        typer.Option("--round", help="Round that the reports answer, counted from 1. Default: the last one opened."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Convert reports into a Parquet table.

    The table shows every person's report, which is as private as the report itself.
    """
    from cloister.collection.intake.tables import write_table
    from cloister.collection.plan.transcript import Transcript

    def next_step() -> str:
        return f"the table is in {out}" if out.exists() else "no table was written: run it again"

    with ending(lambda error: next_step()), counting("reports read") as advance:
        done = write_table(Transcript.read(plan), given_reports(reports), out, number, advance)
    for line in done.intake.lines():
        say(line)
    with printing(next_step):
        if as_json:
            print_json({"round": done.round, "rows": done.rows, "file": str(out), "refused": done.intake.reasons})
        else:
            show(f"{done.rows:,} rows of round {done.round} in {out}")

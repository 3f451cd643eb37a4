"""``cloister decode``: reports to centres, where the reports are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloister.commands import AsJson, PlanFolder, print_json, print_result, progress, say


def decode(
    plan: PlanFolder,
    reports: Annotated[list[str], typer.Argument(help="Folders or files of reports, or a pattern in quotes.")],
    out: Annotated[Path | None, typer.Option(help="Save the result: .json or .npz.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail at the first file or report that would be refused.")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Cluster the people who have sent reports. Sees no row."""
    from cloister.core.results import checked_target
    from cloister.decoder import decode as run

    target = None if out is None else checked_target(out)
    with progress("reports read") as advance:
        done = run(plan, reports, strict=strict, progress=advance)
    if target is not None:
        done.result.save(target)
    for line in done.intake.lines():
        say(line)
    if as_json:
        print_json(done.result.as_dict())
        return
    count = done.intake.accepted
    typer.echo(f"{count:,} reports, {count / done.result.problem['rows']:.1%} of the planned users\n")
    print_result(done.result)
    if target is not None:
        typer.echo(f"\nsaved to {target}")

"""``cloister shuffle``: messages in random order, without their senders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloister.commands.common import AsJson, PlanFolder, ReportFiles, given_reports, print_json, say, show
from cloister.commands.option_groups import excludes, option_groups
from cloister.commands.options import ReportOptions
from cloister.commands.program import ending, printing
from cloister.commands.progress import counting


@option_groups
def shuffle(
    plan: PlanFolder,
    reports: ReportFiles,
    options: Annotated[ReportOptions, excludes("a shuffler decodes nothing", "accept_shares", "robust")],
    out: Annotated[
        Path, typer.Option(help="Folder to make. Its parent holds temporary files, which nobody else may read.")
    ],
    as_json: AsJson = False,
) -> None:
    """Shuffle messages, so that nobody can tell who sent which.

    Runs on a machine of neither the users nor the server, where nobody else looks.
    """
    from cloister.collection.shuffler.shuffler import shuffle as run

    def next_step() -> str:
        if out.is_dir() and any(out.iterdir()):
            return f"the messages are in {out}, whole and shuffled: do not shuffle this plan again"
        return "nothing was released: run it again, which also clears away what this run has left"

    with ending(lambda error: next_step()), counting("messages read and written") as advance:
        done = run(plan, given_reports(reports), out, progress=advance, **options.arguments("accept_shares", "robust"))
    for line in done.intake.lines():
        say(line)
    with printing(next_step):
        if as_json:
            print_json(done.as_dict())
            return
        show(f"{done.messages:,} messages of {done.people:,} people under plan {done.plan[:16]}, shuffled, in {out}")

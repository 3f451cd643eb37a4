"""``cloister shuffle``: take the senders off the users' messages, on a machine of neither the users nor the server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cloister.commands.common import (
    AsJson,
    PlanFolder,
    Strict,
    given_reports,
    print_json,
    say,
    show,
)
from cloister.commands.options import EngineName, Scheduler, Workers
from cloister.commands.program import ending, printing
from cloister.commands.progress import counting


def shuffle(
    plan: PlanFolder,
    reports: Annotated[
        list[str],
        typer.Argument(help="Folders or files of people's messages, or a pattern in quotes; - for standard input."),
    ],
    out: Annotated[Path, typer.Option(help="Folder to make; its parent is worked in, and nobody else may read it.")],
    strict: Strict = False,
    engine: EngineName = "serial",
    workers: Workers = None,
    scheduler: Scheduler = None,
    as_json: AsJson = False,
) -> None:
    """Take off who sent which message, and put all in random order. Runs where nobody else looks."""
    from cloister.collection.shuffler.shuffler import shuffle as run

    def standing() -> str:
        if out.is_dir() and any(out.iterdir()):
            return f"the messages are in {out}, whole and shuffled: do not shuffle this plan again"
        return "nothing was released: run it again, which also clears away what this run has left"

    with ending(lambda error: standing()), counting("messages read and written") as advance:
        done = run(
            plan,
            given_reports(reports),
            out,
            strict=strict,
            progress=advance,
            engine=engine,
            workers=workers,
            scheduler=scheduler,
        )
    for line in done.intake.lines():
        say(line)
    with printing(standing):
        if as_json:
            print_json(done.as_dict())
            return
        show(f"{done.messages:,} messages of {done.people:,} people under plan {done.plan[:16]}, shuffled, in {out}")

"""``cloister advance`` and ``cloister rounds``: close rounds, and show which is open."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cloister.commands.cli_option import REPORTS
from cloister.commands.common import (
    AsJson,
    PlanFolder,
    console,
    given_reports,
    plain,
    print_json,
    print_saved,
    print_table,
    say,
    show,
)
from cloister.commands.option_groups import option_groups
from cloister.commands.options import ReportOptions, SaveTo
from cloister.commands.program import ending, printing
from cloister.commands.progress import Log, counting, event_log, signs_of_life

GO_ON = (
    "'cloister rounds' says which round is open; run it again: a round that is closed stays closed, and the result of "
    "all is the same"
)


Only = Annotated[
    int | None,
    typer.Option(
        "--round", help="Close this round, counted from 1; nothing happens if it is closed. Default: the open one."
    ),
]


@option_groups
def advance(
    plan: PlanFolder,
    options: ReportOptions,
    reports: Annotated[
        list[str] | None,
        typer.Option(
            help="Files or folders of reports, patterns in quotes, or - for standard input. Repeatable.",
            rich_help_panel=REPORTS,
        ),
    ] = None,
    out: SaveTo = None,
    only: Only = None,
    least: Annotated[
        int, typer.Option(min=1, help="Minimum number of accepted reports; with fewer the round stays open.")
    ] = 1,
    as_json: AsJson = False,
    log: Log = None,
) -> None:
    """Close a round with its reports, and open the next.

    After the last round, cluster. Sees no row.
    """
    from cloister.collection.server.aggregator import advance as run
    from cloister.run.saving import checked_target

    target = None if out is None else checked_target(out)
    with (
        ending(lambda error: GO_ON),
        event_log(log) as write,
        counting("reports read") as read,
        signs_of_life(lambda: read.words, write),
    ):
        done = run(
            plan,
            given_reports(reports or []),
            only=None if only is None else only - 1,
            min_reports=least,
            progress=read,
            **options.arguments(),
        )
        for line in [] if done.intake is None else done.intake.lines():
            say(line)
        if target is not None and done.result is not None:
            done.result.save(target)
    with printing(lambda: GO_ON):
        if as_json:
            result = None if done.result is None else done.result.as_dict()
            print_json({**_progress(done.transcript), "result": result})
            return
        closed, length = done.transcript.index, done.transcript.plan.length
        if done.intake is not None:
            show(f"round {closed} of {length} is closed with {done.intake.accepted:,} reports")
        if done.result is None:
            show(f"round {closed + 1} of {length} is open: publish {plan} as it is now")
            return
        show(f"all {length} rounds are closed\n")
        print_saved(done.result, target, as_json=False)


def rounds(plan: PlanFolder, as_json: AsJson = False) -> None:
    """Show the rounds of a plan, and which one is open.

    For each: who is asked, the questions, the bytes that each user sends, and the bytes that the server publishes.
    """
    from cloister.collection.plan.transcript import Transcript

    progress = _progress(Transcript.read(plan))
    if as_json:
        print_json(progress)
        return
    from rich.table import Table

    table = Table(
        title=f"plan {progress['plan'][:16]}: epsilon = {progress['epsilon']:g}, delta = {progress['delta']:g} in all"
    )
    for heading in ("round", "state", "users asked", "questions", "bytes each", "reports", "published"):
        table.add_column(heading, justify="left" if heading in {"state", "questions"} else "right", overflow="fold")
    for facts in progress["rounds"]:
        table.add_row(
            str(facts["round"]),
            facts["state"],
            f"{facts['asked']:.1%}",
            plain(_counted(facts["mechanisms"])),
            f"{facts['bytes']:,}",
            f"{facts['reports']:,}",
            f"{facts['published']:,}",
        )
    print_table(table, console())


def _counted(mechanisms: list[str]) -> str:
    """Return the mechanisms' names, each with the number of questions that it answers."""
    return ", ".join(f"{mechanisms.count(name)} {name}" for name in dict.fromkeys(mechanisms))


def _progress(transcript: Any) -> dict[str, Any]:
    """Return the state of a plan's rounds as plain data."""
    from cloister.collection.plan.costs import Step, sent_bytes

    plan = transcript.plan
    rounds = list[dict[str, Any]]()
    questions = plan.rounds()
    steps = plan.schedule or [Step.of(round) for round in questions]
    for number, (step, round_) in enumerate(zip(steps, questions, strict=True)):
        closed = transcript.closed[number] if number < transcript.index else None
        state = "closed" if closed is not None else "open" if number == transcript.index else "to come"
        rounds.append(
            {
                "round": number + 1,
                "state": state,
                "asked": step.asked,
                "users": round(step.asked * plan.rows),
                "mechanisms": [event["mechanism"] for event in step.events],
                "bytes": sent_bytes(round_),
                "reports": 0 if closed is None else closed.reports["accepted"],
                "published": 0 if closed is None else len(closed.content) + 1,
            }
        )
    return {
        "plan": plan.hash,
        "head": transcript.head,
        "epsilon": plan.total.epsilon,
        "delta": plan.total.delta,
        "users": plan.rows,
        "open": None if transcript.done else transcript.index + 1,
        "bytes per user": round(sum(round_["asked"] * round_["bytes"] for round_ in rounds), 6),
        "rounds": rounds,
    }

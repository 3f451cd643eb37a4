"""``cloister advance`` and ``cloister rounds``: closing rounds, and seeing which is open."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cloister.commands.common import (
    AcceptShares,
    AsJson,
    PlanFolder,
    Robust,
    Strict,
    console,
    given_reports,
    plain,
    print_json,
    print_result,
    print_table,
    say,
    show,
)
from cloister.commands.options import EngineName, SaveTo, Scheduler, Workers
from cloister.commands.program import ending, printing
from cloister.commands.progress import Log, counting, event_log, signs_of_life

GO_ON = (
    "'cloister rounds' says which round is open; run it again: a round that is closed stays closed, and the result of "
    "all is the same"
)


def advance(
    plan: PlanFolder,
    reports: Annotated[
        list[str] | None,
        typer.Option(help="Folder or file of reports, a pattern in quotes, or - for standard input. Repeatable."),
    ] = None,
    out: SaveTo = None,
    only: Annotated[
        int | None,
        typer.Option(
            "--round", help="Close this round, from 1; nothing happens if it is closed. Default: the open one."
        ),
    ] = None,
    least: Annotated[int, typer.Option(min=1, help="Reports that must count, or nothing is closed.")] = 1,
    strict: Strict = False,
    accept_shares: AcceptShares = False,
    robust: Robust = None,
    engine: EngineName = "serial",
    workers: Workers = None,
    scheduler: Scheduler = None,
    as_json: AsJson = False,
    log: Log = None,
) -> None:
    """Close the open round with these reports and publish the next; after the last one, cluster. Sees no row."""
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
            strict=strict,
            accept_shares=accept_shares,
            robust=robust,
            progress=read,
            engine=engine,
            workers=workers,
            scheduler=scheduler,
        )
        for line in [] if done.intake is None else done.intake.lines():
            say(line)
        if target is not None and done.result is not None:
            done.result.save(target)
    with printing(lambda: GO_ON):
        if as_json:
            result = None if done.result is None else done.result.as_dict()
            print_json({**_standing(done.transcript), "result": result})
            return
        closed, length = done.transcript.index, done.transcript.plan.length
        if done.intake is not None:
            show(f"round {closed} of {length} is closed with {done.intake.accepted:,} reports")
        if done.result is None:
            show(f"round {closed + 1} of {length} is open: publish {plan} as it is now")
            return
        show(f"all {length} rounds are closed\n")
        print_result(done.result)
        if target is not None:
            show(f"\nsaved to {target}")


def rounds(plan: PlanFolder, as_json: AsJson = False) -> None:
    """Say which round of a plan is open, who is asked in each, by what, how many bytes she sends, and how many the
    server publishes."""
    from cloister.collection.plan.transcript import Transcript

    standing = _standing(Transcript.read(plan))
    if as_json:
        print_json(standing)
        return
    from rich.table import Table

    table = Table(
        title=f"plan {standing['plan'][:16]}: epsilon = {standing['epsilon']:g}, delta = {standing['delta']:g} in all"
    )
    for heading in ("round", "state", "users asked", "questions", "bytes each", "reports", "published"):
        table.add_column(heading, justify="left" if heading in {"state", "questions"} else "right", overflow="fold")
    for one in standing["rounds"]:
        asked = f"{one['asked']:.1%}"
        table.add_row(
            str(one["round"]),
            one["state"],
            asked,
            plain(_counted(one["mechanisms"])),
            f"{one['bytes']:,}",
            f"{one['reports']:,}",
            f"{one['published']:,}",
        )
    print_table(table, console())


def _counted(mechanisms: list[str]) -> str:
    """Mechanism names, each once, with the number of questions it answers."""
    return ", ".join(f"{mechanisms.count(name)} {name}" for name in dict.fromkeys(mechanisms))


def _standing(transcript: Any) -> dict[str, Any]:
    """The state of a plan's rounds as plain data."""
    from cloister.collection.plan.costs import Step, sent_bytes

    plan = transcript.plan
    rounds = list[dict[str, Any]]()
    asked = plan.rounds()
    steps = plan.schedule or [Step.of(round) for round in asked]
    for number, (step, round_) in enumerate(zip(steps, asked, strict=True)):
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
        "bytes per user": round(sum(one["asked"] * one["bytes"] for one in rounds), 6),
        "rounds": rounds,
    }

"""``cloister answer`` and ``cloister encode``: rows to reports, on the machine that holds the rows. One program;
``encode`` is for plans of one round."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.commands.common import AsJson, PlanFolder, RowsOrAddress, print_json, say, show, tell_columns
from cloister.commands.option_groups import excludes, option_groups
from cloister.commands.options import Reading
from cloister.commands.program import ending, printing
from cloister.core.errors import InvalidInput
from cloister.showing.progress import progress

if TYPE_CHECKING:
    from cloister.collection.plan.transcript import Transcript

STATE = typer.Option(help="File that remembers what was answered and spent; made if it is not there.")

Out = Annotated[Path, typer.Option(help="Folder that the reports are put in.")]
First = Annotated[
    int | None,
    typer.Option(
        help="User number of the first row; the others follow. Default: "
        "0, for everybody's rows; one person's row needs her number."
    ),
]
Lifetime = Annotated[
    float | None,
    typer.Option(
        help="Most epsilon that a person may ever spend, over all plans: the --state keeps it, and it only goes down."
    ),
]
LifetimeDelta = Annotated[
    float | None,
    typer.Option(help="Most delta beside it. Default: what the --state says, or 0.001 with a first --lifetime."),
]
Rowwise = Annotated[
    Reading,
    excludes("the plan says which they are", "categories"),
    excludes("reports are drawn by this process, person by person", "engine", "workers", "scheduler", "threads"),
]


@option_groups
def answer(
    plan: PlanFolder,
    rows: RowsOrAddress,
    out: Out,
    reading: Rowwise,
    state: Annotated[Path, STATE],
    first: First = None,
    lifetime: Lifetime = None,
    lifetime_delta: LifetimeDelta = None,
    as_json: AsJson = False,
) -> None:
    """Answer a plan's open round. Runs where the rows are; refuses what was changed since, and pays for a plan once."""
    _reported(plan, rows, out, reading, state, first, lifetime, lifetime_delta, as_json)


@option_groups
def encode(
    plan: PlanFolder,
    rows: RowsOrAddress,
    out: Out,
    reading: Rowwise,
    state: Annotated[Path | None, STATE] = None,
    first: First = None,
    lifetime: Lifetime = None,
    lifetime_delta: LifetimeDelta = None,
    as_json: AsJson = False,
) -> None:
    """Randomise rows into reports that may leave. Runs where the rows are; nothing else leaves."""
    _reported(plan, rows, out, reading, state, first, lifetime, lifetime_delta, as_json)


def _reported(
    plan: Path,
    rows: list[str],
    out: Path,
    reading: Reading,
    state: Path | None,
    first: int | None,
    lifetime: float | None,
    lifetime_delta: float | None,
    as_json: bool,
) -> None:
    user_column, missing = reading.user_column, "refuse" if reading.missing is None else reading.missing
    if first is not None and user_column is not None:
        raise InvalidInput(
            "user numbers come from the rows' positions or from a column: give --first or --user-column, not both"
        )
    if (lifetime, lifetime_delta) != (None, None) and state is None:
        raise InvalidInput("--lifetime needs a file that remembers what was spent: give --state FILE")

    from cloister.collection.client.encode_files import RowTable, collect
    from cloister.collection.client.encoder import PlanEncoder, State, privacy_warnings, transcript_of

    if missing not in ("refuse", "drop"):
        raise InvalidInput(f"missing is '{missing}': choose refuse or drop")
    kept = None if state is None else State(state, lifetime, lifetime_delta=lifetime_delta)
    transcript = transcript_of(plan)
    total, length = transcript.total, transcript.plan.length
    elsewhere = sorted(out.glob("part-*")) if out.is_dir() else []
    encoder = PlanEncoder(transcript)

    def warned() -> None:
        for caution in privacy_warnings(transcript, kept):
            say(f"WARNING: {caution}")
        if elsewhere and length == 1:
            files = f"{len(elsewhere)} files of reports"
            say(f"{out} already holds {files}: people who are in two files count once at most")

    def standing() -> str:
        written = [path for path in out.glob("part-*") if path not in elsewhere]
        if written:
            return f"the reports are in {written[0]}, whole: send them"
        if state is None:
            return "no report was written: run it again"
        return (
            f"no report was written: run it again with --state {state}, which gives the same reports and pays nothing "
            f"twice"
        )

    with ending(lambda error: standing()), progress() as bar:
        checked = tell_columns if transcript.plan.columns is None else lambda table: None
        with closing(RowTable(encoder, rows, reading.arguments(), first, bar.advance, checked)) as table:
            path, written = collect(encoder, table, out, kept, warned)
    with printing(standing):
        if as_json:
            more = {} if length == 1 else {"round": transcript.index + 1, "rounds": length}
            facts = {"plan": transcript.hash, "epsilon": total.epsilon, "delta": total.delta, "reports": written}
            print_json({**facts, "file": None if path is None else str(path), **more})
        else:
            show(_told(transcript, written, path))


def _told(transcript: Transcript, written: int, path: Path | None) -> str:
    """One line on what was written."""
    total, length = transcript.total, transcript.plan.length
    delta = f", delta = {total.delta:g}" if total.delta else ""
    cost = f"epsilon = {total.epsilon:g}{delta}"
    if transcript.plan.crowd is not None:
        return f"messages of {written:,} people under plan {transcript.hash[:16]}, for the shuffler, in {path}"
    if length == 1:
        return f"{written:,} reports under plan {transcript.hash[:16]}, each {cost}, in {path}"
    where = f"round {transcript.index + 1} of {length} of plan {transcript.hash[:16]}"
    if path is None:
        return f"none of these people is asked in {where}: nothing was written or paid"
    return f"{written:,} reports in {where}, which costs each person {cost} over all rounds, in {path}"

"""``cloister answer`` and ``cloister encode``: reports from rows, on the machine that holds the rows.

``encode`` is for plans of one round.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import attrs

from cloister.commands.cli_option import OUTPUT, REPORTS, cli_option
from cloister.commands.common import AsJson, PlanFolder, RowsOrAddress, print_json, say, show, tell_columns
from cloister.commands.option_groups import excludes, option_groups, requires
from cloister.commands.program import ending, printing
from cloister.core.errors import InvalidInput
from cloister.rows.options import Reading
from cloister.showing.progress import progress

if TYPE_CHECKING:
    from cloister.collection.plan.transcript import Transcript


@final
@attrs.frozen(kw_only=True)
class AnswerOptions:
    """Destination of people's reports, and what they may spend."""

    out: Path = cli_option("Folder that gets the reports.", OUTPUT, default=attrs.NOTHING)
    state: Path | None = cli_option(
        "File that records what was answered and spent, so that nobody pays twice; made if it does not exist.", REPORTS
    )
    first: int | None = cli_option(
        "User number of the first row; the others follow. Default: 0, for everybody's rows; a person's own row needs "
        "her number.",
        REPORTS,
    )
    lifetime: float | None = cli_option(
        "Maximum epsilon that a person may spend over all plans; kept in --state, and only ever lowered.", REPORTS
    )
    lifetime_delta: float | None = cli_option(
        "Maximum delta beside --lifetime. Default: that of --state, or 0.001 with the first --lifetime.", REPORTS
    )


Rowwise = Annotated[
    Reading,
    excludes("the plan has the categories", "categories"),
    excludes("reports are drawn by this process, person by person", "engine", "workers", "scheduler", "threads"),
]


@option_groups
def answer(
    plan: PlanFolder,
    rows: RowsOrAddress,
    reading: Rowwise,
    answering: Annotated[AnswerOptions, requires("state")],
    as_json: AsJson = False,
) -> None:
    """Answer the open round of a plan with private reports.

    Runs where the rows are. Refuses rows that changed since an earlier round; each person pays once per plan.
    """
    _report(plan, rows, reading, answering, as_json)


@option_groups
def encode(
    plan: PlanFolder,
    rows: RowsOrAddress,
    reading: Rowwise,
    answering: AnswerOptions,
    as_json: AsJson = False,
) -> None:
    """Randomise rows into reports that may leave this machine.

    For plans of one round. Runs where the rows are, and nothing but the reports leaves.
    """
    _report(plan, rows, reading, answering, as_json)


def _report(plan: Path, rows: list[str], reading: Reading, answering: AnswerOptions, as_json: bool) -> None:
    out, state, first = answering.out, answering.state, answering.first
    missing = "refuse" if reading.missing is None else reading.missing
    if first is not None and reading.user_column is not None:
        raise InvalidInput(
            "user numbers come from the rows' positions or from a column: give --first or --user-column, not both"
        )
    if (answering.lifetime, answering.lifetime_delta) != (None, None) and state is None:
        raise InvalidInput("--lifetime needs a file that records what was spent: give --state FILE")

    from cloister.collection.client.encode_files import RowTable, collect
    from cloister.collection.client.encoder import PlanEncoder, State, privacy_warnings, transcript_of

    if missing not in ("refuse", "drop"):
        raise InvalidInput(f"missing is '{missing}': choose refuse or drop")
    spending = None if state is None else State(state, answering.lifetime, lifetime_delta=answering.lifetime_delta)
    transcript = transcript_of(plan)
    total, length = transcript.total, transcript.plan.length
    elsewhere = sorted(out.glob("part-*")) if out.is_dir() else []
    encoder = PlanEncoder(transcript)

    def warn() -> None:
        for caution in privacy_warnings(transcript, spending):
            say(f"WARNING: {caution}")
        if elsewhere and length == 1:
            files = f"{len(elsewhere)} files of reports"
            say(f"{out} already holds {files}: people who are in two files count once at most")

    def next_step() -> str:
        written = [path for path in out.glob("part-*") if path not in elsewhere]
        if written:
            return f"the reports are in {written[0]}, whole: send them"
        if state is None:
            return "no report was written: run it again"
        return (
            f"no report was written: run it again with --state {state}, which gives the same reports and pays nothing "
            f"twice"
        )

    with ending(lambda error: next_step()), progress() as bar:
        checked = tell_columns if transcript.plan.columns is None else lambda table: None
        with closing(RowTable(encoder, rows, reading, first, bar.advance, checked)) as table:
            path, written = collect(encoder, table, out, spending, warn)
    with printing(next_step):
        if as_json:
            rounds = {} if length == 1 else {"round": transcript.index + 1, "rounds": length}
            facts = {"plan": transcript.hash, "epsilon": total.epsilon, "delta": total.delta, "reports": written}
            print_json({**facts, "file": None if path is None else str(path), **rounds})
        else:
            show(_summary(transcript, written, path))


def _summary(transcript: Transcript, written: int, path: Path | None) -> str:
    """Return a line on what was written."""
    total, length = transcript.total, transcript.plan.length
    delta = f", delta = {total.delta:g}" if total.delta else ""
    cost = f"epsilon = {total.epsilon:g}{delta}"
    if transcript.plan.crowd is not None:
        return f"messages of {written:,} people under plan {transcript.hash[:16]}, for the shuffler, in {path}"
    if length == 1:
        return f"{written:,} reports under plan {transcript.hash[:16]}, each {cost}, in {path}"
    round_text = f"round {transcript.index + 1} of {length} of plan {transcript.hash[:16]}"
    if path is None:
        return f"none of these people is asked in {round_text}: nothing was written or paid"
    return f"{written:,} reports in {round_text}, which costs each person {cost} over all rounds, in {path}"

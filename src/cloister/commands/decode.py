"""``cloister decode``: centres from reports, on the server that holds the reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.commands.common import (
    AsJson,
    PlanFolder,
    ReportFiles,
    given_reports,
    print_saved,
    say,
    show,
)
from cloister.commands.option_groups import option_groups
from cloister.commands.options import ReportOptions, SaveTo
from cloister.commands.program import ending, printing
from cloister.commands.progress import Log, counting, event_log, signs_of_life

if TYPE_CHECKING:
    from cloister.collection.plan.plan import CollectionPlan

GO_ON = "run it again: the reports are as they were, and decoding them costs nobody anything"


@option_groups
def decode(
    plan: PlanFolder,
    reports: ReportFiles,
    options: ReportOptions,
    out: SaveTo = None,
    as_json: AsJson = False,
    log: Log = None,
) -> None:
    """Cluster the people who have sent reports.

    For plans of one round. Sees no row.
    """
    from cloister.collection.plan.plan import CollectionPlan
    from cloister.collection.server.aggregator import decode as run
    from cloister.run.saving import checked_target

    target = None if out is None else checked_target(out)
    published = CollectionPlan.read(plan)
    with (
        ending(lambda error: GO_ON),
        event_log(log) as write,
        counting("reports read") as read,
        signs_of_life(lambda: read.words, write),
    ):
        done = run(published, given_reports(reports), progress=read, **options.arguments())
        if target is not None:
            done.result.save(target)
    for line in [*done.intake.lines(), *_too_few(published, done.intake.accepted)]:
        say(line)
    with printing(lambda: GO_ON if target is None else f"the result is in {target}"):
        count = done.intake.accepted
        if not as_json:
            show(f"{count:,} reports, {count / done.result.problem['rows']:.1%} of the planned users\n")
        print_saved(done.result, target, as_json)


def _too_few(plan: CollectionPlan, reports: int) -> list[str]:
    """Repeat the plan's warning of too few users, for the reports that came."""
    # the predicted error falls as one over their number; a shuffler refuses too few messages itself
    if plan.crowd is not None or plan.outlook is None or plan.outlook.error * plan.rows < reports:
        return []
    return [
        f"WARNING: of {reports:,} reports expect no better than one centre: about {plan.outlook.rows_needed:,} would "
        f"be needed for a small error"
    ]

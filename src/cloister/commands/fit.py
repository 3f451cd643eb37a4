"""``cloister fit``: a run from rows to released centres."""

from __future__ import annotations

from collections.abc import Sized
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloister.commands.common import RowsOrAddress, print_saved, say, tell_columns, told_once
from cloister.commands.explain import show_forecast
from cloister.commands.options import OUTPUT, Charged, Config, Printed, Reading, Verbose, Wanted
from cloister.commands.program import Standing, ending, printing
from cloister.commands.progress import Log, event_log, signs_of_life
from cloister.commands.taking import taking
from cloister.showing.progress import progress

if TYPE_CHECKING:
    from cloister.run.request import PreparedRun


@taking
def fit(
    rows: RowsOrAddress,
    reading: Reading,
    asked: Wanted,
    charged: Charged,
    printed: Printed,
    config: Config = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Say what would be run, as 'cloister explain' does: reads no row, spends nothing.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    verbose: Verbose = False,
    log: Log = None,
) -> None:
    """Release k private centres of the rows."""
    from cloister.run.fit import fit as run, parties, source
    from cloister.run.result import checked_target

    request = asked.request(len(rows) if asked.pooled else 0)
    target = None if printed.out is None else checked_target(printed.out)
    account = charged.account()
    standing = Standing(account, target)
    with ExitStack() as held:
        held.enter_context(ending(standing.how, standing.open))
        write = held.enter_context(event_log(log))
        bar, once = held.enter_context(progress()), told_once()
        held.enter_context(signs_of_life(lambda: bar.words, write))

        def read(paths: list[str]) -> Any:
            found = source(paths, progress=bar.advance, bounds=asked.bounds, told=once, **reading.arguments())
            return held.enter_context(closing(found))

        population = read(rows)  # all paths together: also refuses a file given twice, and columns that differ
        told = partial(tell_columns, population)
        if dry_run:
            told()
            show_forecast(request, population.selection, population, bool(printed.as_json))
            return
        if asked.pooled:
            population = parties({path: read([path]) for path in rows})

        warnings = list[UserWarning]()

        def priced(plan: PreparedRun, rounds: int, opened: Sized) -> None:
            while warnings:  # once nothing can refuse the run any more: a refusal is one line
                say(f"WARNING: {warnings.pop(0)}.")
            if plan.price and plan.rows is not None:
                say(plan.price)
            bar.started(plan, rounds, opened)

        standing.result = result = run(
            request,
            population,
            account=account,
            started=priced,
            keep=standing.keep,
            reserved=standing.reserved,
            caution=warnings.append,
            checked=told,
        )
    with printing(standing.where, only=target is None):
        print_saved(result, target, bool(printed.as_json), verbose)

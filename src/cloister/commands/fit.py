"""``cloister fit``: a run from rows to released centres.

``cloister explain``: what a run would do, before any row is read.
"""

from __future__ import annotations

from collections.abc import Sized
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, final

import attrs
import typer

from cloister.commands.common import (
    ADDRESS_HELP,
    RowsOrAddress,
    print_json,
    print_saved,
    say,
    show,
    tell_columns,
    told_once,
)
from cloister.commands.option_groups import excludes, option_groups, with_start
from cloister.commands.options import (
    OUTPUT,
    PRIVACY,
    Charged,
    Config,
    Dimension,
    Printed,
    Verbose,
    Wanted,
    cli_option,
)
from cloister.commands.program import RunProgress, ending, printing
from cloister.commands.progress import Log, event_log, signs_of_life
from cloister.core.defaults import DELTA
from cloister.core.errors import InvalidInput, MissingExtra
from cloister.rows.options import Reading
from cloister.showing.progress import progress

if TYPE_CHECKING:
    from cloister.rows.selection import Selection
    from cloister.run.request import PreparedRun


@final
@attrs.frozen(kw_only=True)
class Sought:
    """An error from which a budget is wanted."""

    error: float | None = cli_option(
        "What the predicted error may be, in parts of a single centre's cost, such as 0.01: say which epsilon that "
        "takes with --rows, and how many rows with --epsilon (default: 1).",
        PRIVACY,
        in_config=False,
    )
    picture: str | None = cli_option(
        "With --error: draw the predicted error against epsilon, .png or .svg.", OUTPUT, in_config=False
    )


@final
@attrs.frozen(kw_only=True)
class Repeated:
    """A run that is repeated, and the lifetime that pays for it."""

    every: int | None = cli_option(
        "How many such runs there are in a year: say how many a lifetime holds (--ledger, or --lifetime-epsilon).",
        PRIVACY,
        in_config=False,
    )
    lifetime_epsilon: float | None = cli_option("With --every: the lifetime's epsilon, without a ledger.", PRIVACY)
    lifetime_delta: float | None = cli_option(f"With --every: the lifetime's delta. Default: {DELTA:g}.", PRIVACY)


@option_groups
def explain(
    reading: Reading,
    asked: Wanted,
    sought: Sought,
    repeated: Repeated,
    charged: Annotated[Charged, excludes("nothing is charged", "resume", "same_rows", "note")],
    printed: Annotated[Printed, excludes("nothing is released", "out")],
    rows: Annotated[
        list[str] | None,
        typer.Argument(help=f"{ADDRESS_HELP} Only names and types of columns are read."),
    ] = None,
    dimension: Dimension = None,
    config: Config = None,
) -> None:
    """Candidates with their predicted errors, what is picked, and the questions that fit would ask with these very
    options; with --error the budget, or the rows, that an error takes. Reads no rows."""
    from cloister.run.fit import source

    if sought.picture is not None and sought.error is None:
        raise InvalidInput("--picture draws predicted errors: give --error too, the one that is wanted")
    if sought.error is not None and asked.epsilon is None:
        asked = attrs.evolve(asked, epsilon=1.0)
    reading, asked = with_start(reading, asked)
    request, as_json = asked.request(len(rows or ()) if asked.pooled else 0), bool(printed.as_json)
    account = charged.account()
    if repeated.every is None and repeated != Repeated():
        raise InvalidInput("a lifetime is of a run that is repeated: give --every too, such as 12 for one a month")
    if sought.error is not None and (repeated.every is not None or account is not None):
        raise InvalidInput("--every and a ledger are of one budget, and --error looks for one: give either")
    request = request if account is None else account.asked(request)
    if not rows or dimension is not None:
        chosen = _named(rows, reading, dimension, asked)
        show_forecast(request, chosen, None, as_json, sought, repeated, account)
        return
    try:
        population = source(rows, reading, **asked.columns_of)
    except MissingExtra as error:
        raise InvalidInput(
            f"{error}; or name the columns and give no file: --columns a,b,c, or --dimension 3"
        ) from error
    with closing(population):
        tell_columns(population)
        show_forecast(request, population.selection, population, as_json, sought, repeated, account)


def show_forecast(
    request: Any,
    chosen: Selection,
    population: Any,
    as_json: bool,
    sought: Sought | None = None,
    repeated: Repeated | None = None,
    account: Any = None,
) -> None:
    """Print what a request would do. Args: population (whose rows are meant; None: columns alone are known), sought (an
    error whose price is wanted in place of that), repeated (how often, and within which lifetime), account (that it is
    within)."""
    from cloister.run.explaining import explain as explained
    from cloister.run.population import check_users

    if sought is not None and sought.error is not None:
        _show_needs(request, chosen, sought.error, sought.picture, as_json)
        return
    found = explained(request, chosen.features, chosen)
    if population is not None:
        check_users(found.plan.total, population, found.plan.composed.trust or "Central")
    lasts, every = None, None if repeated is None else repeated.every
    if account is not None:
        (account.admits if every is None else account.check)(found.plan)
    if repeated is not None and every is not None:
        from cloister.run.lifetime import lasting

        life = repeated.lifetime_epsilon, DELTA if repeated.lifetime_delta is None else repeated.lifetime_delta
        lasts = lasting(found.plan, every, account, *life)
    if as_json:
        print_json(found.as_dict() | ({} if lasts is None else {"repeated": attrs.asdict(lasts)}))
    else:
        show(found.text if lasts is None else f"{found.text}\n{lasts.text}")


def _show_needs(request: Any, chosen: Selection, error: float, picture: str | None, as_json: bool) -> None:
    """Print, and draw, what an error takes."""
    from cloister.run.required_budget import needs
    from cloister.run.saving import checked_target
    from cloister.showing.plots import ENDINGS, save

    drawn = None if picture is None else checked_target(picture, ENDINGS, "pictures")
    found = needs(request, chosen.features, error, chosen)
    if drawn is not None:
        from cloister.showing.forecasts import TITLE, figure_of

        save(figure_of(found), drawn, TITLE)
    if as_json:
        print_json(found.as_dict())
    else:
        show(found.text if drawn is None else f"{found.text}\npicture saved to {drawn}")


def _named(files: list[str] | None, reading: Reading, dimension: int | None, asked: Wanted) -> Selection:
    """The columns, without a file that has them. Raises: InvalidInput: nothing names them, or things that do not go
    together."""
    from cloister.rows.columns import TableColumn, select, select_by_name
    from cloister.run.bounds import named_in

    described = asked.columns_of["described"]
    if not files and (others := reading.elsewhere(None)):
        raise InvalidInput(
            f"{', '.join(others)}: for files or databases, and there are no rows to read: leave them out"
        )
    if not files and dimension is None:
        found = select_by_name(attrs.evolve(reading, bounded=named_in(asked.bounds), described=described))
        if found is not None:
            return found
    if dimension is not None and dimension > 0 and not files and reading.columns is None and not reading.categories:
        return select(
            [TableColumn(str(i), "numbers") for i in range(dimension)], Reading(), everything=True
        ).with_described(described)
    raise InvalidInput(
        "give the columns: files that have them, their names (--columns a,b,c and --category, or --bounds with a file "
        "that names them) or --dimension 10"
    )


@option_groups
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
    from cloister.run.saving import checked_target

    reading, asked = with_start(reading, asked)
    request = asked.request(len(rows) if asked.pooled else 0)
    target = None if printed.out is None else checked_target(printed.out)
    account = charged.account()
    standing = RunProgress(account, target)
    with ExitStack() as held:
        held.enter_context(ending(standing.how, standing.open))
        write = held.enter_context(event_log(log))
        bar, once = held.enter_context(progress()), told_once()
        held.enter_context(signs_of_life(lambda: bar.words, write))

        def read(paths: list[str]) -> Any:
            found = source(paths, reading, progress=bar.advance, told=once, **asked.columns_of)
            return held.enter_context(closing(found))

        population = read(rows)  # all paths together: also refuses a file given twice, and columns that differ
        write({"event": "begun", "by": population.by})
        told = partial(tell_columns, population)
        if dry_run:
            told()
            request = request if account is None else account.asked(request)
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

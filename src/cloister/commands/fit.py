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

from cloister.commands.cli_option import OUTPUT, PRIVACY, cli_option, declared
from cloister.commands.common import (
    ADDRESS_HELP,
    RowsOrAddress,
    notes_once,
    print_json,
    print_saved,
    say,
    show,
    tell_columns,
)
from cloister.commands.option_groups import excludes, option_groups, with_start
from cloister.commands.options import (
    Config,
    Dimension,
    LedgerOptions,
    OutputOptions,
    RunOptions,
    Verbose,
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
class TargetError:
    """Predicted error that a budget or a number of rows is sought for."""

    error: float | None = cli_option(
        "Target error, as a fraction of the one-centre cost, such as 0.01: print the epsilon that it needs with "
        "--rows, and the number of rows that it needs with --epsilon (default here: 1).",
        PRIVACY,
        in_config=False,
    )
    picture: str | None = cli_option(
        "With --error: plot the predicted error against epsilon, .png or .svg.", OUTPUT, in_config=False
    )


@final
@attrs.frozen(kw_only=True)
class RepeatedRuns:
    """Runs a year, and the lifetime budget that pays for them."""

    every: int | None = cli_option(
        "Number of such runs in a year: print how many a lifetime budget allows (--ledger or --lifetime-epsilon).",
        PRIVACY,
        in_config=False,
    )
    lifetime_epsilon: float | None = cli_option("With --every, without a ledger: epsilon of the lifetime.", PRIVACY)
    lifetime_delta: float | None = cli_option(f"With --every: delta of the lifetime. Default: {DELTA:g}.", PRIVACY)


@option_groups
def explain(
    reading: Reading,
    options: RunOptions,
    target: TargetError,
    repeated: RepeatedRuns,
    charged: Annotated[LedgerOptions, excludes("nothing is charged", "resume", "same_rows", "note")],
    printed: Annotated[OutputOptions, excludes("nothing is released", "out")],
    rows: Annotated[
        list[str] | None,
        typer.Argument(help=f"{ADDRESS_HELP} Only the names and types of columns are read."),
    ] = None,
    dimension: Dimension = None,
    config: Config = None,
) -> None:
    """Show what fit would do with the same options.

    Prints the methods to pick from with their predicted errors, the one picked, and its questions; with --error the
    budget or the number of rows that an error needs. Reads no rows, and spends nothing.
    """
    from cloister.run.fit import source

    if target.picture is not None and target.error is None:
        raise InvalidInput("--picture plots predicted errors: give --error too")
    if target.error is not None and options.epsilon is None:
        options = attrs.evolve(options, epsilon=1.0)
    reading, options = with_start(reading, options)
    request, as_json = options.request(len(rows or ()) if options.pooled else 0), bool(printed.as_json)
    account = charged.account()
    if repeated.every is None and repeated != RepeatedRuns():
        raise InvalidInput("a lifetime needs the number of runs in a year: give --every too, such as 12")
    if target.error is not None and (repeated.every is not None or account is not None):
        raise InvalidInput("--error looks for a budget, and --every and --ledger need one: give either")
    request = request if account is None else account.adjusted(request)
    if not rows or dimension is not None:
        chosen = _named(rows, reading, dimension, options)
        show_forecast(request, chosen, None, as_json, target, repeated, account)
        return
    try:
        population = source(rows, reading, **options.columns_of)
    except MissingExtra as error:
        raise InvalidInput(
            f"{error}; or name the columns and give no file: --columns a,b,c, or --dimension 3"
        ) from error
    with closing(population):
        tell_columns(population)
        show_forecast(request, population.selection, population, as_json, target, repeated, account)


def show_forecast(
    request: Any,
    chosen: Selection,
    population: Any,
    as_json: bool,
    target: TargetError | None = None,
    repeated: RepeatedRuns | None = None,
    account: Any = None,
) -> None:
    """Print what a request would do.

    Args:
        request: the request.
        chosen: the columns.
        population: whose rows are meant; None: only the columns are known.
        as_json: print JSON.
        target: an error, whose price is printed instead.
        repeated: how often the run is repeated.
        account: the ledger that the run is charged to.
    """
    from cloister.run.explaining import explain as explained
    from cloister.run.population import check_users

    if target is not None and target.error is not None:
        _show_needs(request, chosen, target.error, target.picture, as_json)
        return
    forecast = explained(request, chosen.features, chosen)
    if population is not None:
        check_users(forecast.plan.total, population, forecast.plan.composed.trust or "Central")
    lifetime, every = None, None if repeated is None else repeated.every
    if account is not None:
        (account.admits if every is None else account.check)(forecast.plan)
    if repeated is not None and every is not None:
        from cloister.run.lifetime import lasting

        delta = DELTA if repeated.lifetime_delta is None else repeated.lifetime_delta
        lifetime = lasting(forecast.plan, every, account, repeated.lifetime_epsilon, delta)
    if as_json:
        print_json(forecast.as_dict() | ({} if lifetime is None else {"repeated": attrs.asdict(lifetime)}))
    else:
        show(forecast.text if lifetime is None else f"{forecast.text}\n{lifetime.text}")


def _show_needs(request: Any, chosen: Selection, error: float, picture: str | None, as_json: bool) -> None:
    """Print, and plot, the budget and the number of rows that an error needs."""
    from cloister.run.required_budget import needs
    from cloister.run.saving import checked_target
    from cloister.showing.plots import ENDINGS, save

    file = None if picture is None else checked_target(picture, ENDINGS, "pictures")
    required = needs(request, chosen.features, error, chosen)
    if file is not None:
        from cloister.showing.budget_plot import TITLE, figure_of

        save(figure_of(required), file, TITLE)
    if as_json:
        print_json(required.as_dict())
    else:
        show(required.text if file is None else f"{required.text}\npicture saved to {file}")


def _named(files: list[str] | None, reading: Reading, dimension: int | None, options: RunOptions) -> Selection:
    """Return the columns without reading a file. Raises: InvalidInput: nothing names them, or options contradict."""
    from cloister.rows.columns import TableColumn, select, select_by_name
    from cloister.run.bounds import named_in

    described = options.columns_of["described"]
    if not files and (others := reading.elsewhere(None)):
        flags = ", ".join(declared(Reading)[name].flags[-1] for name in others)
        raise InvalidInput(f"there are no files or databases to read: leave out {flags}")
    if not files and dimension is None:
        selection = select_by_name(attrs.evolve(reading, bounded=named_in(options.bounds), described=described))
        if selection is not None:
            return selection
    if dimension is not None and dimension > 0 and not files and reading.columns is None and not reading.categories:
        columns = [TableColumn(str(i), "numbers") for i in range(dimension)]
        return select(columns, Reading(), everything=True).with_described(described)
    raise InvalidInput(
        "give the columns: files that have them, their names (--columns a,b,c and --category, or --bounds with a file "
        "that names them) or --dimension 10"
    )


DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Only show what would run, as 'cloister explain' does: reads no rows and spends nothing.",
        rich_help_panel=OUTPUT,
    ),
]


@option_groups
def fit(
    rows: RowsOrAddress,
    reading: Reading,
    options: RunOptions,
    charged: LedgerOptions,
    printed: OutputOptions,
    config: Config = None,
    dry_run: DryRun = False,
    verbose: Verbose = False,
    log: Log = None,
) -> None:
    """Cluster rows privately, and release the centres."""
    from cloister.run.fit import fit as run, parties, source
    from cloister.run.saving import checked_target

    reading, options = with_start(reading, options)
    request = options.request(len(rows) if options.pooled else 0)
    target = None if printed.out is None else checked_target(printed.out)
    account = charged.account()
    standing = RunProgress(account, target)
    with ExitStack() as stack:
        stack.enter_context(ending(standing.next_step, standing.open))
        write = stack.enter_context(event_log(log))
        bar, note = stack.enter_context(progress()), notes_once()
        stack.enter_context(signs_of_life(lambda: bar.label, write))

        def read(paths: list[str]) -> Any:
            rows_there = source(paths, reading, progress=bar.advance, told=note, **options.columns_of)
            return stack.enter_context(closing(rows_there))

        population = read(rows)  # all paths together: also refuses a file given twice, and columns that differ
        write({"event": "begun", "by": population.by})
        if dry_run:
            tell_columns(population)
            request = request if account is None else account.adjusted(request)
            show_forecast(request, population.selection, population, bool(printed.as_json))
            return
        checked = partial(tell_columns, population)
        if options.pooled:
            population = parties({path: read([path]) for path in rows})
        warnings = list[UserWarning]()
        standing.result = result = run(
            request,
            population,
            account=account,
            started=partial(_started, bar, warnings),
            keep=standing.keep,
            reserved=standing.reserved,
            caution=warnings.append,
            checked=checked,
        )
    with printing(standing.where, only=target is None):
        print_saved(result, target, bool(printed.as_json), verbose)


def _started(bar: Any, warnings: list[UserWarning], plan: PreparedRun, rounds: int, opened: Sized) -> None:
    """Print warnings and the price of a run, and start its bar."""
    while warnings:  # only now, when nothing can refuse the run any more: a refusal is one line
        say(f"WARNING: {warnings.pop(0)}.")
    if plan.price and plan.rows is not None:
        say(plan.price)
    bar.started(plan, rounds, opened)

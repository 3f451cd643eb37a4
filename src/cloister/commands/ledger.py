"""``cloister ledger``: lifetime budgets of data sets, and what was spent of them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cloister.commands.cli_option import by_itself
from cloister.commands.common import AsJson, plain, print_json, print_saved, show
from cloister.commands.options import LedgerOptions, SaveTo, Verbose
from cloister.commands.program import Commands, ending, printing
from cloister.core.defaults import DELTA
from cloister.core.errors import InvalidInput

if TYPE_CHECKING:
    from cloister.accounting import DatasetStatus

SHOWN = 12
"""Maximum number of columns of a run that are shown; --json has all."""

AGAIN = "the ledger keeps the result: run it again"

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of texts that a spreadsheet would evaluate."""

LedgerFile = Annotated[Path, typer.Argument(help="Ledger file.")]

ledger_app = typer.Typer(cls=Commands, no_args_is_help=True, help="Manage lifetime privacy budgets of data sets.")


@ledger_app.command()
def declare(
    ledger: Annotated[Path, typer.Argument(help="Ledger file; made if it does not exist.")],
    dataset: Annotated[str, typer.Argument(help="Name of the data set.")],
    epsilon: Annotated[float, typer.Option(help="Lifetime budget, in nats.")],
    delta: Annotated[
        float, typer.Option(help="Lifetime probability that the guarantee fails; 0 refuses runs that ask for a delta.")
    ] = DELTA,
    composition: Annotated[
        str,
        typer.Option(
            help="Composition: basic (epsilons and deltas add up) or zcdp (rho adds up; better for many runs)."
        ),
    ] = "basic",
    unit: Annotated[
        str, typer.Option(help="Unit of privacy: rows, or users with all their rows (fit --user-column).")
    ] = "rows",
    owner: Annotated[
        str | None, typer.Option(help="Person responsible for the data set, in one line; declare again to change it.")
    ] = None,
    note: Annotated[str | None, by_itself(LedgerOptions, "note").option] = None,
) -> None:
    """Declare a data set with its lifetime budget."""
    from cloister.accounting import Ledger
    from cloister.accounting.ledger.ledger import checked_lifetime

    if composition not in ("basic", "zcdp"):
        raise InvalidInput(f"composition is '{composition}': choose basic or zcdp")
    if unit not in ("rows", "users"):
        raise InvalidInput(f"unit is '{unit}': choose rows or users")
    how: Literal["basic", "zcdp"] = "zcdp" if composition == "zcdp" else "basic"
    whom: Literal["rows", "users"] = "users" if unit == "users" else "rows"
    checked_lifetime(dataset, epsilon, delta, how, whom, owner, note)  # before a file is made for it
    Ledger.open(ledger, create=True).declare(dataset, epsilon, delta, how, whom, owner, note)
    message = f"'{plain(dataset)}' is declared, which 'cloister ledger show {plain(str(ledger))}' shows"
    with printing(lambda: message):
        show(
            f"'{plain(dataset)}' may spend epsilon = {epsilon:g}, delta = {delta:g} in its lifetime ({composition} "
            f"composition{', for each user' if unit == 'users' else ''})"
        )


@ledger_app.command("show")
def show_ledger(ledger: LedgerFile, as_json: AsJson = False) -> None:
    """Show budgets, spending, and runs that were interrupted."""
    from cloister.accounting import Ledger

    datasets = Ledger.open(ledger).status()
    if as_json:
        print_json(_plain(datasets))
    else:
        show("\n".join(line for data in datasets for line in _lines(data)))


@ledger_app.command()
def export(
    ledger: LedgerFile,
    out: Annotated[
        Path, typer.Option(help="File to write: .csv with a line per run, or .json as 'show --json' prints it.")
    ],
) -> None:
    """Write the ledger as CSV or JSON for an audit."""
    from cloister.accounting import Ledger
    from cloister.run.saving import checked_target, put

    target, datasets = checked_target(out, (".csv", ".json"), "ledgers"), Ledger.open(ledger).status()
    text = _table(datasets) if target.suffix == ".csv" else json.dumps(_plain(datasets), indent=1) + "\n"
    put(target, text.encode())
    message = f"the ledger is in {target}"
    with printing(lambda: message):
        show(plain(message))


@ledger_app.command()
def give_back(
    ledger: LedgerFile,
    run: Annotated[str, typer.Argument(help="Id of an open run, as 'cloister ledger show' prints it.")],
) -> None:
    """Return the budget of a run that asked no question.

    The .count file beside the ledger proves that it asked none, unless both were restored from a backup.
    """
    from cloister.accounting import Ledger

    returned = Ledger.open(ledger).give_back(run)
    with printing(lambda: f"run {run} is given back, which 'cloister ledger show {plain(str(ledger))}' shows"):
        budget = f"epsilon {returned.epsilon:g}, delta {returned.delta:g}"
        show(f"run {run} asked nothing: {budget} are back in '{plain(returned.dataset)}'")


@ledger_app.command()
def result(
    ledger: LedgerFile,
    run: Annotated[str, typer.Argument(help="Id of a finished run, as 'cloister ledger show' prints it.")],
    out: SaveTo = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Print a finished run's result again, or save it.

    Reads no rows, and spends nothing.
    """
    from cloister.accounting import Ledger
    from cloister.run.result import Result
    from cloister.run.saving import checked_target

    target = None if out is None else checked_target(out)
    released = Result.from_text(Ledger.open(ledger).result(run))
    if target is not None:
        with ending(lambda error: AGAIN):
            released.save(target)
    with printing(lambda: AGAIN if target is None else f"the result is in {target}"):
        print_saved(released, target, as_json, verbose)


def _lines(data: DatasetStatus) -> Iterator[str]:
    """Yield a line for a data set, and one for each of its runs."""
    life = data.lifetime
    yield (
        f"{plain(data.dataset)}: lifetime epsilon {life.epsilon:g}, delta {life.delta:g} ({data.composition}"
        f"{', for each user' if data.unit == 'users' else ''}); left: {data.left}"
    )
    yield from (f"  {field}: {plain(text)}" for field, text in (("owner", data.owner), ("note", data.note)) if text)
    for run in data.runs:
        ended = "done" if run.rounds else "ended without a question"
        state = (
            f"cut off or running: resume with --resume {run.id}" if run.state == "open" else f"{ended} {run.finished}"
        )
        state += "" if run.rounds or run.state == "done" else ", or give it back ('cloister ledger give-back')"
        rounds = "1 round" if run.rounds == 1 else f"{run.rounds} rounds"
        cost = f"epsilon {run.epsilon:g}, delta {run.delta:g}, {rounds}"
        yield f"  run {run.id}, started {run.started}, {cost}, {state}"
        if run.method:
            yield f"    {plain(run.method)}, k = {plain(run.k)}, columns {_few(run.columns)}"
        if run.note:
            yield f"    note: {plain(run.note)}"


def _few(columns: Sequence[str]) -> str:
    hidden = f", and {len(columns) - SHOWN} more" if len(columns) > SHOWN else ""
    return ", ".join(map(plain, columns[:SHOWN])) + hidden


def _plain(datasets: Sequence[DatasetStatus]) -> list[Any]:
    import attrs

    return [attrs.asdict(data) for data in datasets]


def _table(datasets: Sequence[DatasetStatus]) -> str:
    """Return all runs as CSV, a column per field; texts that begin like a formula get a quote in front."""
    import attrs

    from cloister.accounting import RunStatus

    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([field.name for field in attrs.fields(RunStatus)])
    for run in (run for data in datasets for run in data.runs):
        cells = [json.dumps(cell) if isinstance(cell, tuple) else cell for cell in attrs.astuple(run, recurse=False)]
        lines.writerow([f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell for cell in cells])
    return text.getvalue()

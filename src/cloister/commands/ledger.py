"""``cloister ledger``: what data sets may spend in their lifetime, and what they have spent."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cloister.commands.common import AsJson, plain, print_json, print_saved, show
from cloister.commands.options import Charged, SaveTo, Verbose, by_itself
from cloister.commands.program import Commands, ending, printing
from cloister.core.defaults import DELTA
from cloister.core.errors import InvalidInput

if TYPE_CHECKING:
    from cloister.accounting.ledger.database import DatasetStatus

SHOWN = 12
"""Most columns of a run that are shown; --json has all."""

AGAIN = "the ledger keeps the result: run it again"

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of texts that a spreadsheet would work out."""

LedgerFile = Annotated[Path, typer.Argument(help="The ledger's file.")]

ledger_app = typer.Typer(cls=Commands, no_args_is_help=True, help="Lifetime privacy budgets of data sets, in one file.")


@ledger_app.command()
def declare(
    ledger: Annotated[Path, typer.Argument(help="The ledger's file; made if it is not there.")],
    dataset: Annotated[str, typer.Argument(help="The data set's name.")],
    epsilon: Annotated[float, typer.Option(help="Lifetime budget, in nats.")],
    delta: Annotated[
        float, typer.Option(help="Lifetime probability of failure. Without any, runs that ask for delta are refused.")
    ] = DELTA,
    composition: Annotated[
        str, typer.Option(help="basic: epsilons and deltas add; zcdp: rho adds, better for many runs.")
    ] = "basic",
    unit: Annotated[
        str, typer.Option(help="Whom it protects: rows, or users with all their rows (fit --user-column).")
    ] = "rows",
    owner: Annotated[
        str | None, typer.Option(help="Who answers for the data set, in a line; declare again to change it.")
    ] = None,
    note: Annotated[str | None, by_itself(Charged, "note")] = None,
) -> None:
    """Give a data set a lifetime budget."""
    from cloister.accounting.ledger.ledger import Ledger, checked_lifetime

    if composition not in ("basic", "zcdp"):
        raise InvalidInput(f"composition is '{composition}': choose basic or zcdp")
    if unit not in ("rows", "users"):
        raise InvalidInput(f"unit is '{unit}': choose rows or users")
    how: Literal["basic", "zcdp"] = "zcdp" if composition == "zcdp" else "basic"
    whom: Literal["rows", "users"] = "users" if unit == "users" else "rows"
    checked_lifetime(dataset, epsilon, delta, how, whom, owner, note)  # before a file is made for it
    Ledger.open(ledger, create=True).declare(dataset, epsilon, delta, how, whom, owner, note)
    where = f"'{plain(dataset)}' is declared, which 'cloister ledger show {plain(str(ledger))}' shows"
    with printing(lambda: where):
        show(
            f"'{plain(dataset)}' may spend epsilon = {epsilon:g}, delta = {delta:g} in its lifetime ({composition} "
            f"composition{', for each user' if unit == 'users' else ''})"
        )


@ledger_app.command("show")
def show_ledger(ledger: LedgerFile, as_json: AsJson = False) -> None:
    """What every data set may spend, has spent, and which runs were cut off."""
    from cloister.accounting.ledger.ledger import Ledger

    found = Ledger.open(ledger).status()
    if as_json:
        print_json(_plain(found))
    else:
        show("\n".join(line for data in found for line in _lines(data)))


@ledger_app.command()
def export(
    ledger: LedgerFile,
    out: Annotated[
        Path, typer.Option(help="File to write: .csv, a line per run, or .json, which is what 'show --json' prints.")
    ],
) -> None:
    """Write the ledger as a table of runs, or as JSON, for whoever audits it."""
    from cloister.accounting.ledger.ledger import Ledger
    from cloister.run.saving import checked_target, put

    target, found = checked_target(out, (".csv", ".json"), "ledgers"), Ledger.open(ledger).status()
    text = _table(found) if target.suffix == ".csv" else json.dumps(_plain(found), indent=1) + "\n"
    put(target, text.encode())
    where = f"the ledger is in {target}"
    with printing(lambda: where):
        show(plain(where))


@ledger_app.command()
def give_back(
    ledger: LedgerFile, run: Annotated[str, typer.Argument(help="Id of a run that was cut off or is running.")]
) -> None:
    """End a run that has asked nothing, and return its reservation: the .count file beside the ledger proves it, unless
    both were restored from a backup."""
    from cloister.accounting.ledger.ledger import Ledger

    was = Ledger.open(ledger).give_back(run)
    with printing(lambda: f"run {run} is given back, which 'cloister ledger show {plain(str(ledger))}' shows"):
        show(
            f"run {run} asked nothing: epsilon {was.epsilon:g}, delta {was.delta:g} are back in '{plain(was.dataset)}'"
        )


@ledger_app.command()
def result(
    ledger: LedgerFile,
    run: Annotated[str, typer.Argument(help="Id of a finished run, as 'cloister ledger show' prints it.")],
    out: SaveTo = None,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Print a finished run's result again, and save it: needs no rows, and costs nothing."""
    from cloister.accounting.ledger.ledger import Ledger
    from cloister.run.result import Result
    from cloister.run.saving import checked_target

    target = None if out is None else checked_target(out)
    found = Result.from_text(Ledger.open(ledger).result(run))
    if target is not None:
        with ending(lambda error: AGAIN):
            found.save(target)
    with printing(lambda: AGAIN if target is None else f"the result is in {target}"):
        print_saved(found, target, as_json, verbose)


def _lines(data: DatasetStatus) -> Iterator[str]:
    """A data set and its runs, a line each."""
    life = data.lifetime
    yield (
        f"{plain(data.dataset)}: lifetime epsilon {life.epsilon:g}, delta {life.delta:g} ({data.composition}"
        f"{', for each user' if data.unit == 'users' else ''}); left: {data.left}"
    )
    yield from (f"  {what}: {plain(said)}" for what, said in (("owner", data.owner), ("note", data.note)) if said)
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
    more = f", and {len(columns) - SHOWN} more" if len(columns) > SHOWN else ""
    return ", ".join(map(plain, columns[:SHOWN])) + more


def _plain(found: Sequence[DatasetStatus]) -> list[Any]:
    import attrs

    return [attrs.asdict(data) for data in found]


def _table(found: Sequence[DatasetStatus]) -> str:
    """All runs as CSV, a column per field; texts that a spreadsheet would take for a formula begin with a quote."""
    import attrs

    from cloister.accounting.ledger.database import RunStatus

    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([field.name for field in attrs.fields(RunStatus)])
    for run in (run for data in found for run in data.runs):
        cells = [json.dumps(cell) if isinstance(cell, tuple) else cell for cell in attrs.astuple(run, recurse=False)]
        lines.writerow([f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell for cell in cells])
    return text.getvalue()

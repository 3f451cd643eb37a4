"""``cloister ledger``: what data sets may spend in their lifetime, and what they have spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from cloister.commands.common import AsJson, plain, print_json
from cloister.core.errors import InvalidInput

ledger_app = typer.Typer(no_args_is_help=True, help="Lifetime privacy budgets of data sets, in one file.")


@ledger_app.command()
def declare(
    ledger: Annotated[Path, typer.Argument(help="The ledger's file; made if it is not there.")],
    dataset: Annotated[str, typer.Argument(help="The data set's name.")],
    epsilon: Annotated[float, typer.Option(help="Lifetime budget, in nats.")],
    delta: Annotated[float, typer.Option(help="Lifetime probability of failure.")] = 0.0,
    composition: Annotated[str, typer.Option(help="basic: epsilons and deltas add; zcdp: rho adds, better for many "
        "runs.")] = "basic",
    unit: Annotated[str, typer.Option(help="Whom it protects: rows, or users with all their rows (fit "
        "--user-column).")] = "rows",
) -> None:  # fmt: skip
    """Give a data set a lifetime budget."""
    from cloister.accounting.ledger.ledger import Ledger

    if composition not in ("basic", "zcdp"):
        raise InvalidInput(f"composition is '{composition}': choose basic or zcdp")
    if unit not in ("rows", "users"):
        raise InvalidInput(f"unit is '{unit}': choose rows or users")
    how: Literal["basic", "zcdp"] = "zcdp" if composition == "zcdp" else "basic"
    whom: Literal["rows", "users"] = "users" if unit == "users" else "rows"
    Ledger.open(ledger, create=True).declare(dataset, epsilon, delta, how, whom)
    typer.echo(
        f"'{plain(dataset)}' may spend epsilon = {epsilon:g}, delta = {delta:g} in its lifetime ({composition} "
        f"composition{', for each user' if unit == 'users' else ''})"
    )


@ledger_app.command()
def show(ledger: Annotated[Path, typer.Argument(help="The ledger's file.")], as_json: AsJson = False) -> None:
    """What every data set may spend, has spent, and which runs were cut off."""
    import attrs

    from cloister.accounting.ledger.ledger import Ledger

    found = Ledger.open(ledger).status()
    if as_json:
        print_json([attrs.asdict(data) for data in found])
        return
    for data in found:
        life = data.lifetime
        typer.echo(
            f"{plain(data.dataset)}: lifetime epsilon {life.epsilon:g}, delta {life.delta:g} ({data.composition}"
            f"{', for each user' if data.unit == 'users' else ''}); left: {data.left}"
        )
        for run in data.runs:
            state = (
                "cut off or running: resume with --resume " + run.id if run.state == "open" else f"done {run.finished}"
            )
            cost = f"epsilon {run.epsilon:g}, delta {run.delta:g}"
            typer.echo(f"  run {run.id}, started {run.started}, {cost}, {run.rounds} rounds, {state}")

"""``cloister fit``: a run from rows to released centres."""

from __future__ import annotations

from collections.abc import Sized
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloister.commands.common import (
    AsJson,
    Categories,
    Centers,
    Columns,
    Delimiter,
    Encoding,
    Note,
    RowsOrAddress,
    Scheduler,
    TableName,
    TrustModel,
    Verbose,
    Workers,
    listed_values,
    names,
    number_or_text,
    pairs,
    print_json,
    print_saved,
    say,
    share_or_word,
    show,
    tell_columns,
    told_once,
    whole,
)
from cloister.commands.config import flag, merged, read_config, typed
from cloister.commands.endings import Standing, ending, printing
from cloister.core.errors import InvalidInput
from cloister.run.progress import progress

if TYPE_CHECKING:
    from cloister.run.request import PreparedRun, Request

Missing = Annotated[str | None, typer.Option(help="Rows with missing or infinite cells: refuse (default) or drop.")]


def fit(
    rows: RowsOrAddress,
    k: Centers = None,
    method: Annotated[str | None, typer.Option(help="Which algorithm; see 'cloister list Method'. Default: auto, "
        "the one that predicts the least error.")] = None,
    trust: TrustModel = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget of this run, in nats.")] = None,
    delta: Annotated[float | None, typer.Option(help="Probability of failure of the guarantee; well below 1 / "
        "rows.")] = None,
    bounds: Annotated[str | None, typer.Option(help="Public bounds: -1:1, or 0:120,0:1, or a .toml/.json file, or "
        "ball:RADIUS; unknown, for all columns or in place of a pair.")] = None,
    zoom: Annotated[str | None, typer.Option(help="Pay to find where the rows are within wide bounds: auto (default), "
        "off, or a share of the budget.")] = None,
    scale: Annotated[str | None, typer.Option(help="Units of distances: none, bounds (each column's width; default "
        "where widths differ by more than two), or a .toml/.json file with a weight per column.")] = None,
    public_rows: Annotated[int | None, typer.Option("--rows", parser=whole, metavar="<int>", help="Public number of "
        "rows: a round figure of the right size. Default: 1% of the budget counts them.")] = None,
    columns: Columns = None,
    category: Categories = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    table: TableName = None,
    materialise: Annotated[bool, typer.Option("--materialise", help="Copy the table's columns into a temporary table "
        "first, so that all rounds see the same rows.")] = False,
    wire: Annotated[list[str] | None, typer.Option("--with", help="slot=component, e.g. counts=discrete-laplace. "
        "Repeatable.")] = None,
    values: Annotated[list[str] | None, typer.Option("--set", help="option=value, e.g. rounds=5. Repeatable.")] = None,
    missing: Missing = None,
    user_column: Annotated[str | None, typer.Option(help="Column that names each row's user: the promise is then about "
        "users. Needs --rows-per-user; of a table under local trust it numbers them instead.")] = None,
    rows_per_user: Annotated[int | None, typer.Option(help="Most rows of one user that count, a public number; "
        "--rows is then of these.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="File with lifetime budgets; needs --dataset.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Declared name of the data set in the ledger.")] = None,
    note: Note = None,
    resume: Annotated[str | None, typer.Option(help="Id of a run in the ledger that was cut off; of a finished one, "
        "to print its result again.")] = None,
    same_rows: Annotated[bool, typer.Option("--same-rows", help="Resume though the rows seem to be others: you say "
        "that they are the same.")] = False,
    engine: Annotated[str | None, typer.Option(help="Where files are read: serial (default), "
        "processes or dask.")] = None,
    workers: Workers = None, scheduler: Scheduler = None,
    threads: Annotated[int | None, typer.Option(help="Threads that work on the rows, of engine serial or "
        "of DuckDB; default: as many as BLAS may take.")] = None,
    pooled: Annotated[bool, typer.Option("--pooled", help="Simulate parties that pool masked sums: each path or "
        "pattern is one party's rows.")] = False,
    out: Annotated[Path | None, typer.Option(help="Save the result: .json or .npz.")] = None,
    config: Annotated[Path | None, typer.Option(help="A .toml or .json file with the same options.")] = None,
    seed: Annotated[int | None, typer.Option(help="Repeat the public choices (the start). Never the noise.")] = None,
    not_private: Annotated[bool, typer.Option("--not-private", help="Allow methods that give no guarantee.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be run, as 'cloister explain' does: reads "
        "no row, spends nothing.")] = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Release k private centres of the rows."""
    from cloister.run.account import Account
    from cloister.run.fit import fit as run, parties, source
    from cloister.run.result import checked_target

    given = {
        "k": number_or_text(k), "method": method, "trust": trust, "epsilon": epsilon, "delta": delta, "bounds": bounds,
        "zoom": zoom, "scale": scale, "rows": public_rows, "columns": columns,
        "missing": missing, "ledger": ledger, "dataset": dataset, "out": out, "seed": seed,
        "not_private": not_private or None,
        "with": pairs(wire, "--with"), "set": pairs(values, "--set"), "engine": engine, "workers": workers,
        "scheduler": scheduler, "threads": threads,
        "category": listed_values(category), "delimiter": delimiter, "encoding": encoding,
        "table": table, "materialise": materialise or None,
        "pooled": pooled or None, "user_column": user_column, "rows_per_user": rows_per_user,
    }  # fmt: skip
    o = merged(given, read_config(config))
    together = flag(o["pooled"], "pooled")
    request = _requested(o, len(rows) if together else 0)
    target = None if o["out"] is None else checked_target(o["out"])
    account = Account.of(o["ledger"], o["dataset"], resume, same_rows, note)
    standing = Standing(account, target)
    columns_used = names(o["columns"]) if isinstance(o["columns"], str) else o["columns"]
    spread = {
        "engine": o["engine"], "scheduler": o["scheduler"], "users": o["user_column"],
        "categories": o["category"], "bounds": o["bounds"], "delimiter": o["delimiter"], "encoding": o["encoding"],
        "table": o["table"], "materialise": flag(o["materialise"], "materialise"), "told": told_once(),
        **{name: None if o[name] is None else typed(o[name], int, name) for name in ("workers", "threads")},
    }  # fmt: skip
    with ending(standing.how, standing.open), progress() as (advance, started), ExitStack() as held:

        def read(paths: list[str]) -> Any:
            return held.enter_context(
                closing(
                    source(paths, columns_used, "refuse" if o["missing"] is None else o["missing"], advance, **spread)
                )
            )

        population = read(rows)  # all paths together: also refuses a file given twice, and columns that differ
        told = partial(tell_columns, population)
        if dry_run:
            told()
            from cloister.run.explaining import explain as explained

            found = explained(request, population.columns, population.selection)
            print_json(found.as_dict()) if as_json else show(found.text)
            return
        if together:
            population = parties({path: read([path]) for path in rows})

        warnings = list[UserWarning]()

        def priced(plan: PreparedRun, rounds: int, opened: Sized) -> None:
            while warnings:  # once nothing can refuse the run any more: a refusal is one line
                say(f"WARNING: {warnings.pop(0)}.")
            if plan.price and plan.rows is not None:
                say(plan.price)
            if started is not None:
                started(plan, rounds, opened)

        standing.result = result = run(
            request, population, account=account, started=priced, keep=standing.keep, reserved=standing.reserved,
            caution=warnings.append, checked=told,
        )  # fmt: skip
    with printing(standing.where, only=target is None):
        print_saved(result, target, as_json, verbose)


def _requested(o: dict[str, Any], parties: int) -> Request:
    """The request that the options describe. Args: o (all options), parties (that pool their rows; 0: not pooled)."""
    from cloister.run.request import Request

    for name, how in (("k", "-k"), ("epsilon", "--epsilon")):
        if o[name] is None:
            raise InvalidInput(f"no {name}: give {how}")
    return Request(
        k=o["k"] if isinstance(o["k"], (str, list)) else typed(o["k"], int, "k"),
        method="auto" if o["method"] is None else o["method"],
        epsilon=typed(o["epsilon"], float, "epsilon"),
        delta=typed(o["delta"] or 0.0, float, "delta"), bounds=o["bounds"], rows=o["rows"],
        components=o["with"], options=o["set"], trust="aggregated" if parties else o["trust"], parties=parties,
        zoom=share_or_word(o["zoom"]), scale=o["scale"],
        not_private=flag(o["not_private"], "not_private"), seed=o["seed"],
        rows_per_user=o["rows_per_user"],
    )  # fmt: skip

"""The command line: parse, call, print. Heavy libraries are imported by the command that needs them."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloister.commands.advance import advance, rounds
from cloister.commands.common import (
    AsJson,
    Columns,
    Rows,
    TrustModel,
    mute,
    names,
    pairs,
    plain,
    print_json,
    print_result,
    say,
    share_or_word,
    show,
    steady,
    whole,
)
from cloister.commands.config import flag, merged, read_config, typed
from cloister.commands.coordinate import coordinate
from cloister.commands.decode import decode
from cloister.commands.encode import answer, encode
from cloister.commands.endings import REFUSED, UNPRINTED, Standing, ending, printing, reason
from cloister.commands.evaluate import evaluate
from cloister.commands.explain import explain
from cloister.commands.join import join, make_certificates, party_key, sign
from cloister.commands.ledger import ledger_app
from cloister.commands.new_plugin import new_plugin
from cloister.commands.plan import plan
from cloister.commands.plot import plot
from cloister.commands.progress import progress
from cloister.commands.shuffle import shuffle
from cloister.core.errors import CloisterError, InvalidInput

if TYPE_CHECKING:
    from cloister.run.request import PreparedRun, Request

app = typer.Typer(
    name="cloister", no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
    help="Cluster rows that nobody is allowed to see.",
)  # fmt: skip
app.add_typer(ledger_app, name="ledger")

Missing = Annotated[str | None, typer.Option(help="Rows with missing or infinite cells: refuse (default) or drop.")]


def main() -> None:
    """Run the command line. A refusal is one line and exit code 2, and so is any failure of a file or of the output."""
    # products of a chunk of rows and a few centres are small: threads of a BLAS cost more than they bring
    # (docs/howto/scale.md)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    steady()
    try:
        app()
    except CloisterError as error:
        say(plain(f"cloister: {error}"))
        sys.exit(2)
    except SystemExit as end:
        if isinstance(
            getattr(end.__context__, "__cause__", None), KeyboardInterrupt
        ):  # typer ends by 130 without a word
            say("cloister: interrupted")
        raise
    except OSError as error:
        mute(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            say(plain(f"cloister: {'cannot write the output: ' if error.filename is None else ''}{reason(error)}"))
        sys.exit(UNPRINTED if error.filename is None else REFUSED)
    except MemoryError:
        say("cloister: there is not enough memory for this: ask for fewer centres, or fewer columns")
        sys.exit(REFUSED)


def _version(wanted: bool) -> None:
    if wanted:
        from cloister._version import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Cluster rows that nobody is allowed to see."""


@app.command("list")
def list_components(
    role: Annotated[str | None, typer.Argument(help="Method, FrequencyOracle, VectorSumOracle, TreeBuilder, "
        "NonPrivateSolver, Population.")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """What is installed: methods, oracles, trees, ..."""
    from cloister.core.errors import UnknownName
    from cloister.core.registry.components import ANY_TRUST, ROLES, Role
    from cloister.core.registry.registry import registry

    known: dict[str, Role] = {r.lower(): r for r in ROLES}
    if role is not None and role.lower().replace("-", "").rstrip("s") not in known:
        raise UnknownName("role", role, ROLES)
    wanted = None if role is None else known[role.lower().replace("-", "").rstrip("s")]
    specs = registry().specs(wanted)
    if as_json:
        print_json(
            [
                {
                    "name": s.name,
                    "role": s.role,
                    "trust": s.trust,
                    "summary": s.summary,
                    "paper": s.paper,
                    "private": s.private,
                }
                for s in specs
            ]
        )
        return
    width = max((len(s.name) for s in specs), default=0)
    for group in ROLES:
        members = [s for s in specs if s.role == group]
        if members:
            typer.echo(f"{group}")
            for s in members:
                typer.echo(f"  {s.name:<{width}}  {(s.trust or ANY_TRUST):<10}  {s.summary}")


@app.command("describe")
def describe_component(
    name: Annotated[str, typer.Argument(help="A component's name, as 'list' prints it.")], as_json: AsJson = False
) -> None:
    """A component's options, slots, guarantee and source."""
    from cloister.core.registry.describe import describe
    from cloister.core.registry.registry import registry

    found = [describe(registry(), spec) for spec in registry().find(name)]
    if as_json:
        print_json(found)
        return
    for facts in found:
        typer.echo(f"{facts['name']} ({facts['role']}): {facts['summary']}")
        typer.echo(
            f"trust: {facts['trust'] or 'any'}; runs under: {', '.join(facts['runs under'])}"
            + (f"; from {facts['paper']}" if facts["paper"] else "")
        )
        if facts["biased"]:
            typer.echo(
                "biased: released values may be off on average; their standard error is a root mean squared error"
            )
        typer.echo(f"\n{facts['documentation']}\n")
        if facts["slots"]:
            typer.echo(
                "Slots (what fills one has options of its own: --set SLOT.OPTION=...; 'cloister describe' lists them):"
            )
        for slot in facts["slots"]:
            typer.echo(
                f"  --with {slot['name']}={slot['default']}  {slot['help']} ({slot['role']}: "
                f"{', '.join(slot['takes'])})"
            )
        for option in facts["options"]:
            limits = ", ".join(filter(None, (option["range"], option["unit"])))
            typer.echo(
                f"  --set {option['name']}={option['default']}  {option['help']}" + (f" [{limits}]" if limits else "")
            )
        typer.echo("")


@app.command("plugins")
def list_plugins(as_json: AsJson = False) -> None:
    """Which plugins were found, what they offer, and which of them are broken."""
    from cloister.core.registry.registry import registry

    mine, *strangers = registry().plugins  # what is built in is tested, and slow to load
    found = [(mine, ()), *((p, registry().faults(p)) for p in strangers)]
    if as_json:
        print_json(
            [
                {
                    "name": p.name, "origin": p.origin, "error": p.error, "components": [s.name for s in p.specs],
                    "faults": list(faults),
                }
                for p, faults in found
            ]
        )  # fmt: skip
        return
    for p, faults in found:
        typer.echo(f"{p.name} ({p.origin}): " + (f"BROKEN: {p.error}" if p.error else f"{len(p.specs)} components"))
        for fault in faults:
            typer.echo(f"  BROKEN: {fault}")


@app.command()
def fit(
    rows: Rows,
    k: Annotated[int | None, typer.Option("-k", "--k", help="Number of centres.")] = None,
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
    wire: Annotated[list[str] | None, typer.Option("--with", help="slot=component, e.g. counts=discrete-laplace. "
        "Repeatable.")] = None,
    values: Annotated[list[str] | None, typer.Option("--set", help="option=value, e.g. rounds=5. Repeatable.")] = None,
    missing: Missing = None,
    user_column: Annotated[str | None, typer.Option(help="Column that names each row's user: the promise is then about "
        "users. Needs --rows-per-user.")] = None,
    rows_per_user: Annotated[int | None, typer.Option(help="Most rows of one user that count, a public number; "
        "--rows is then of these.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="File with lifetime budgets; needs --dataset.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Declared name of the data set in the ledger.")] = None,
    resume: Annotated[str | None, typer.Option(help="Id of a run in the ledger that was cut off; of a finished one, "
        "to print its result again.")] = None,
    same_rows: Annotated[bool, typer.Option("--same-rows", help="Resume though the rows seem to be others: you say "
        "that they are the same.")] = False,
    engine: Annotated[str | None, typer.Option(help="Where files are read: serial (default), processes or "
        "dask.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes that the engine starts; default: one per "
        "core.")] = None,
    scheduler: Annotated[str | None, typer.Option(help="Address of a running Dask scheduler.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads that work on the rows, with engine serial; default: as "
        "many as BLAS may take.")] = None,
    pooled: Annotated[bool, typer.Option("--pooled", help="Simulate parties that pool masked sums: each path or "
        "pattern is one party's rows.")] = False,
    out: Annotated[Path | None, typer.Option(help="Save the result: .json or .npz.")] = None,
    config: Annotated[Path | None, typer.Option(help="A .toml or .json file with the same options.")] = None,
    seed: Annotated[int | None, typer.Option(help="Repeat the public choices (the start). Never the noise.")] = None,
    not_private: Annotated[bool, typer.Option("--not-private", help="Allow methods that give no guarantee.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be run, as 'cloister explain' does: reads "
        "no row, spends nothing.")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Release k private centres of the rows."""
    from cloister.run.account import Account
    from cloister.run.fit import fit as run, parties, source
    from cloister.run.result import checked_target

    given = {
        "k": k, "method": method, "trust": trust, "epsilon": epsilon, "delta": delta, "bounds": bounds,
        "zoom": zoom, "scale": scale, "rows": public_rows, "columns": columns,
        "missing": missing, "ledger": ledger, "dataset": dataset, "out": out, "seed": seed,
        "not_private": not_private or None,
        "with": pairs(wire, "--with"), "set": pairs(values, "--set"), "engine": engine, "workers": workers,
        "scheduler": scheduler, "threads": threads,
        "pooled": pooled or None, "user_column": user_column, "rows_per_user": rows_per_user,
    }  # fmt: skip
    o = merged(given, read_config(config))
    together = flag(o["pooled"], "pooled")
    request = _requested(o, len(rows) if together else 0)
    target = None if o["out"] is None else checked_target(o["out"])
    account = Account.of(o["ledger"], o["dataset"], resume, same_rows)
    standing = Standing(account, target)
    columns_used = names(o["columns"]) if isinstance(o["columns"], str) else o["columns"]
    spread = {
        "engine": o["engine"], "scheduler": o["scheduler"], "users": o["user_column"],
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
        if dry_run:
            from cloister.run.explaining import explain as explained

            found = explained(request, population.columns)
            print_json(found.as_dict()) if as_json else show(found.text)
            return
        if together:
            population = parties({path: read([path]) for path in rows})

        def priced(plan: PreparedRun, rounds: int) -> None:
            if plan.price and plan.rows is not None:
                say(plan.price)
            if started is not None:
                started(plan, rounds)

        standing.result = result = run(
            request, population, account=account, started=priced, keep=standing.keep, reserved=standing.reserved
        )
    with printing(standing.where, only=target is None):
        if as_json:
            print_json(result.as_dict())
            return
        print_result(result)
        if target is not None:
            show(f"\nsaved to {target}")


app.command("explain")(explain)
app.command("plan")(plan)
app.command("encode")(encode)
app.command("answer")(answer)
app.command("advance")(advance)
app.command("rounds")(rounds)
app.command("shuffle")(shuffle)
app.command("decode")(decode)
app.command("coordinate")(coordinate)
app.command("join")(join)
app.command("sign")(sign)
app.command("party-key")(party_key)
app.command("test-certificates")(make_certificates)
app.command("plot")(plot)
app.command("evaluate")(evaluate)
app.command("new-plugin")(new_plugin)


@app.command()
def demo(
    epsilon: Annotated[float, typer.Option(help="Privacy budget, in nats.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Probability of failure of the guarantee.")] = 1e-5,
    k: Annotated[int, typer.Option("-k", "--k", help="Number of centres.")] = 10,
    seed: Annotated[int | None, typer.Option(help="Repeat the public choices. Never the noise.")] = None,
    federated: Annotated[
        bool, typer.Option("--federated", help="Deal the rows out to three parties who pool masked sums.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Cluster handwritten digits privately, beside what needs no privacy."""
    from cloister.commands.demo import demonstrate

    with progress() as (advance, started):
        shown = demonstrate(epsilon, delta, k, seed, advance, started, federated)
    if as_json:
        print_json({"costs": shown.costs, "result": shown.result.as_dict()})
        return
    n, d = shown.shape
    typer.echo(f"{n:,} handwritten digits of {d} pixels, {k} clusters. Mean squared distance to the nearest centre:\n")
    widest = max(shown.costs.values())
    for name, cost in shown.costs.items():
        typer.echo(f"  {name:<28} {cost:8.1f}  {'#' * round(40 * cost / widest)}")
    typer.echo(f"\n{shown.result.privacy.text()}")


def _requested(o: dict[str, Any], parties: int) -> Request:
    """The request that the options describe. Args: o (all options), parties (that pool their rows; 0: not pooled)."""
    from cloister.run.request import Request

    for name, how in (("k", "-k"), ("epsilon", "--epsilon")):
        if o[name] is None:
            raise InvalidInput(f"no {name}: give {how}")
    return Request(
        k=typed(o["k"], int, "k"), method="auto" if o["method"] is None else o["method"],
        epsilon=typed(o["epsilon"], float, "epsilon"),
        delta=typed(o["delta"] or 0.0, float, "delta"), bounds=o["bounds"], rows=o["rows"],
        components=o["with"], options=o["set"], trust="aggregated" if parties else o["trust"], parties=parties,
        zoom=share_or_word(o["zoom"]), scale=o["scale"],
        not_private=flag(o["not_private"], "not_private"), seed=o["seed"],
        rows_per_user=o["rows_per_user"],
    )  # fmt: skip


if __name__ == "__main__":
    main()

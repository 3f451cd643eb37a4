"""``cloister bench``: a benchmark that anyone can enter, and the audit that every entrant passes through."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.commands.cli_option import OUTPUT
from cloister.commands.common import AsJson, console, plain, print_json, show
from cloister.commands.program import Commands, ending, printing
from cloister.commands.progress import bar, titled_bar
from cloister.core.errors import InvalidInput

if TYPE_CHECKING:
    from cloister.lab.bench.audit.auditing import Audit

bench_app = typer.Typer(cls=Commands, no_args_is_help=True, help="Run benchmarks that anyone can enter.")

FAULTS_FOUND = 3
"""Exit code of an audit in which a check failed."""

EntrantText = Annotated[
    str,
    typer.Argument(help="Folder of an entrant, the name of one that comes with cloister, or a method: auto."),
]


@bench_app.command()
def run(
    benchmark: Annotated[Path, typer.Argument(help="Benchmark: a .toml file of sets, epsilons, runs and entrants.")],
    entrant: Annotated[
        list[str] | None,
        typer.Option(
            help="Entrant, once or more: a folder, a name that 'bench list' prints, or a method with its options, such "
            "as auto:trust=local. Default: those that the benchmark names."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File for the results, .jsonl. Default: the benchmark's name.", rich_help_panel=OUTPUT),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="One run, two epsilons, 1,000 rows of a set and a short audit: a trial."),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an existing file of results.")] = False,
    audit: Annotated[bool, typer.Option("--audit/--no-audit", help="Audit entrants before they run.")] = True,
    as_json: AsJson = False,
) -> None:
    """Run a benchmark.

    Every run is a process of its own, with a time limit; a failure is recorded and stops nothing. Entrants are
    programs, and run with your rights: read what you run.
    """
    from cloister.lab.bench.benchmark import read_benchmark
    from cloister.lab.bench.contest import entrants_of, run_benchmark
    from cloister.lab.bench.report import BenchSummary, text_of
    from cloister.run.saving import checked_target

    loaded = read_benchmark(benchmark)
    loaded = loaded.shortened() if quick else loaded
    target = Path(f"{loaded.name}{'-quick' if quick else ''}.jsonl") if out is None else out
    checked_target(target, (".jsonl",), "results of a benchmark")
    entrants = entrants_of(loaded, entrant or ())
    again = f"finished runs are in {plain(str(target))}: the same command with --resume goes on"
    with ending(lambda error: again), titled_bar() as advance:
        results = run_benchmark(loaded, entrants, target, resume=resume, audits=audit, progress=advance)
    with printing(lambda: f"the results are in {plain(str(target))}"):
        summary = BenchSummary.of(results)
        if as_json:
            print_json(summary.as_dict())
        else:
            show(text_of(summary, max(console().width, 100)))
            show(f"\nresults saved to {target}: 'cloister bench report {target} --out page.html' makes a page")


@bench_app.command("audit")
def audit_entrant(
    entrant: EntrantText,
    only: Annotated[
        list[str] | None, typer.Option(help="Check to make, once or more: 'equal seeds', budget, ... Default: all.")
    ] = None,
    releases: Annotated[
        int | None,
        typer.Option(min=10, help="Releases of each table of the attack. Default: 4,000, or fewer if they are slow."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short attack, whose power is not measured.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes at once. Default: one per core.")] = None,
    as_json: AsJson = False,
) -> None:
    """Audit an entrant, and print its badge.

    Ends with exit code 3 if a check failed. It tests behaviour and reads no code: it finds mistakes, not malice, and
    replaces no proof.
    """
    from cloister.lab.bench.audit.auditing import audit as audited
    from cloister.lab.bench.entrants import entrant_of
    from cloister.lab.bench.installing import install

    loaded = entrant_of(entrant)
    environment = install(loaded)
    with bar("audit") as advance:
        found = audited(
            loaded, environment, only=only or (), releases=releases, quick=quick, workers=workers, progress=advance
        )
    if as_json:
        print_json(found.as_dict())
    else:
        show(_text(found))
    if found.faults:
        raise typer.Exit(FAULTS_FOUND)


def _text(audit: Audit) -> str:
    lines = [f"{audit.entrant.name}: {audit.badge}"]
    for verdict in audit.verdicts:
        lines += [f"  {verdict.check}: {verdict.state}: {verdict.reason}", f"    {verdict.command}"]
    return "\n".join(lines)


@bench_app.command()
def report(
    results: Annotated[Path, typer.Argument(help="Results that 'bench run' saved.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", help="Write one page with tables, plots and badges: .html.", rich_help_panel=OUTPUT
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the results of a benchmark, or write them as a page."""
    from cloister.lab.bench.report import BenchSummary, page_of, text_of
    from cloister.lab.bench.results import Results
    from cloister.run.saving import checked_target, put

    target = None if out is None else checked_target(out, (".html",), "reports")
    summary = BenchSummary.of(Results.read(results))
    if not summary.panels and target is not None:
        raise InvalidInput(f"{results} has no runs: 'cloister bench run' makes them")
    if target is not None:
        put(target, page_of(summary).encode())
    with printing(lambda: f"the page is {target}" if target else "run it again"):
        if as_json:
            print_json(summary.as_dict())
        elif target is None:
            show(text_of(summary, max(console().width, 100)))
        else:
            show(f"report saved to {target}")


@bench_app.command()
def new(folder: Annotated[Path, typer.Argument(help="Folder to make; the entrant gets its name.")]) -> None:
    """Write an entrant to edit.

    It clusters, and passes the audit as it stands.
    """
    from cloister.lab.bench.starting import write_template

    name = write_template(folder)
    show(
        f"wrote {folder}, the entrant '{plain(name)}'. Edit {folder / 'run'} and {folder / 'entry.toml'}, then:\n"
        f"  cloister bench audit {folder}"
    )


@bench_app.command("list")
def list_entrants(as_json: AsJson = False) -> None:
    """List the entrants that come with cloister.

    Methods of cloister take part by their names, as 'cloister list' prints them.
    """
    from cloister.lab.bench.entrants import of_folder, shipped_folder, shipped_names

    entrants = [of_folder(shipped_folder() / name, name) for name in shipped_names()]
    if as_json:
        print_json([entrant.facts.as_dict() for entrant in entrants])
        return
    for entrant in entrants:
        show(f"{entrant.name}: {entrant.facts.title}")

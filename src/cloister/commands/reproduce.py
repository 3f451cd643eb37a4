"""``cloister reproduce``: a paper's tables and figures by its own protocol, beside what was published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.commands.cli_option import OUTPUT
from cloister.commands.common import AsJson, console, plain, print_json, print_table, say, show
from cloister.commands.progress import bar

if TYPE_CHECKING:
    from cloister.lab.papers.reproduction import Reproduction


def reproduce(
    paper: Annotated[
        str, typer.Argument(help="fastlloyd, chang, stemmer, hst, google, pe-means, dpm, or all of them: all.")
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer data sets, budgets and runs: minutes, not hours.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="Folder for each paper's page (.md), plots (.svg), figures (.csv) and finished runs (.jsonl), which "
            "are not made again; made if it does not exist.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of processes, each on one core. Default: one per core.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure a paper's figures, beside the published ones.

    Follows the paper's own protocol. NOT private: the figures depend on the data sets, which are public. Sets are read
    from the folder that the environment variable CLOISTER_DATA names, where 'cloister data get' puts them, or
    generated; missing ones are named and skipped.
    """
    from cloister.lab.papers.page import checked_folder, save
    from cloister.lab.papers.papers import ALL, NAMES, paper_of
    from cloister.lab.papers.reproduction import reproduce as run
    from cloister.rows.workers.threads import cores

    names = list(NAMES) if paper == ALL else [paper_of(paper).name]
    folder = None if out is None else checked_folder(out, names)
    made = []
    for name in names:
        kept = None if folder is None else folder / f"{name}{'-quick' if quick else ''}.jsonl"
        with bar(f"{name} (runs)") as advance:
            made.append(run(name, quick=quick, workers=workers or cores(), kept=kept, progress=advance))
        if folder is not None:
            save(made[-1], folder)
        if not as_json:
            _print(made[-1])
    if as_json:
        print_json([one.as_dict() for one in made])
    elif folder is not None:
        show(f"\npages, plots and figures (NOT private) saved to {folder}")


def _print(made: Reproduction) -> None:
    """Print what is beaten, met and missed of a paper, then what was left out."""
    from rich.table import Table

    table = Table(title=plain(made.paper.title), title_justify="left")
    for heading in ("claim", "published", "ours", ""):
        table.add_column(heading, overflow="fold")
    for headline in made.headlines:
        table.add_row(headline.claim, headline.published, headline.ours, headline.verdict)
    print_table(table, console())
    for name, reason in made.skipped.items():
        say(f"skipped {name}: {reason}")
    for name, reason in made.refused.items():
        say(f"refused: {name}: {reason}")

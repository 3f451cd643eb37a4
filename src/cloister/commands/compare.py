"""``cloister compare``: methods beside one another on rows that one holds."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.commands.common import AsJson, RowsOrAddress, console, names, print_json, show
from cloister.commands.options import METHOD, OUTPUT, PRIVACY, Reading, Wanted
from cloister.commands.program import ending, printing
from cloister.commands.progress import bar
from cloister.commands.taking import lacks, taking
from cloister.core.errors import InvalidInput

if TYPE_CHECKING:
    from cloister.lab.comparing import Study


@taking
def compare(
    rows: RowsOrAddress,
    k: Annotated[int, typer.Option("-k", "--k", help="Number of centres.", rich_help_panel=METHOD)],
    epsilon: Annotated[
        str, typer.Option(help="Privacy budgets in nats, separated by commas: 0.1,1.", rich_help_panel=PRIVACY)
    ],
    reading: Annotated[
        Reading,
        lacks("every row counts", "user_column"),
        lacks("rows are held in memory by every process, each on one core", "engine", "scheduler", "threads"),
    ],
    asked: Annotated[
        Wanted,
        lacks("several are compared, by options of their own", "k", "epsilon", "delta", "method", "bounds"),
        lacks("each contender has its own", "trust", "components", "options", "zoom"),
        lacks("every row counts", "rows_per_user", "pooled"),
        lacks("runs are independent, and figures are not private", "seed", "not_private"),
    ],
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods, separated by commas, each with options of its own if "
            "wanted: auto,fastlloyd:rounds=3:trust=local. Default: auto and all methods that it picks from.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    runs: Annotated[int, typer.Option(help="Runs per method and budget.", rich_help_panel=METHOD)] = 10,
    delta: Annotated[
        str,
        typer.Option(
            help="Probability of failure of the guarantee; auto: 1 / (n ln n), as papers state figures, and not 0 as "
            "in fit: these rows are not secret, and methods with Gaussian noise can take part.",
            rich_help_panel=PRIVACY,
        ),
    ] = "auto",
    bounds: Annotated[
        str,
        typer.Option(
            help="Bounds as in fit; rows: read off these rows, which a private run never does.", rich_help_panel=PRIVACY
        ),
    ] = "rows",
    rivals: Annotated[
        str | None,
        typer.Option(help="Packages to compare with, if installed: sklearn, diffprivlib.", rich_help_panel=METHOD),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A .jsonl file that keeps every finished run; if it exists, its study goes on.", rich_help_panel=OUTPUT
        ),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw cost against epsilon: .png or .svg.", rich_help_panel=OUTPUT)
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.", rich_help_panel=OUTPUT)] = False,
    as_json: AsJson = False,
) -> None:
    """Compare methods on rows that are generated or public. NOT private: the figures tell about the rows."""
    from cloister.lab.comparing import compare as compared
    from cloister.run.result import checked_target
    from cloister.showing.plots import ENDINGS

    if as_csv and as_json:
        raise InvalidInput("--csv and --json: give one of them")
    drawn = None if picture is None else checked_target(picture, ENDINGS, "pictures")
    kept = _scratch() if out is None else out
    with ending(lambda error: _again(kept, out is None), lambda: out is None and kept.exists()), bar("runs") as advance:
        study = compared(
            rows,
            k=k,
            epsilons=_numbers(epsilon, "--epsilon"),
            methods=names(methods),
            runs=runs,
            bounds=bounds,
            delta="auto" if delta == "auto" else _number(delta, "--delta"),
            public_rows=asked.public_rows,
            scale=asked.scale,
            rivals=names(rivals) or (),
            workers=reading.workers,
            out=kept,
            progress=advance,
            **reading.arguments("workers"),
        )
        if drawn is not None:
            study.plot(drawn)
    with printing(lambda: _again(kept, out is None)):
        _print(study, as_csv, as_json)
        if drawn is not None and not (as_csv or as_json):
            show(f"\npicture (NOT private) saved to {drawn}")
    if out is None:
        kept.unlink(missing_ok=True)


def _print(study: Study, as_csv: bool, as_json: bool) -> None:
    if as_json:
        print_json(study.as_dict())
    else:
        text = study.csv().removesuffix("\n") if as_csv else study.table(max(console().width, 100))
        show(text)


def _scratch() -> Path:
    """Folder where runs are kept until they are printed, if nobody said where."""
    return Path(f"cloister-study-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.jsonl")


def _again(kept: Path, unasked: bool) -> str:
    """How to go on after the comparison was cut off."""
    if not kept.exists():
        return "no run was finished: start it again"
    command = shlex.join(["cloister", *sys.argv[1:], *(["--out", str(kept)] if unasked else [])])
    return f"finished runs are in {kept}: go on with {command}"


def _number(text: str, flag: str) -> float:
    first, *more = _numbers(text, flag)
    if more:
        raise InvalidInput(f"{flag} is {text!r}: give one number")
    return first


def _numbers(text: str, flag: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"{flag} is {text!r}: give numbers, separated by commas") from None

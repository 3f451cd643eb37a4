"""``cloister compare``: methods beside one another on rows that one holds."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.commands.common import AsJson, Rows, console, names, plain, print_json, refuse_addresses, show, whole
from cloister.commands.endings import ending, printing
from cloister.commands.progress import bar
from cloister.core.errors import InvalidInput

if TYPE_CHECKING:
    from cloister.comparing import Study


def compare(
    rows: Rows,
    k: Annotated[int, typer.Option("-k", "--k", help="Number of centres.")],
    epsilon: Annotated[str, typer.Option(help="Privacy budgets in nats, separated by commas: 0.1,1.")],
    methods: Annotated[str | None, typer.Option(help="Methods, separated by commas, each with options of its own if "
        "wanted: auto,fastlloyd:rounds=3:trust=local. Default: auto and all methods that it picks from.")] = None,
    runs: Annotated[int, typer.Option(help="Runs per method and budget.")] = 10,
    delta: Annotated[str, typer.Option(help="Probability of failure of the guarantee; auto: 1 / (n ln n).")] = "auto",
    bounds: Annotated[str, typer.Option(help="Bounds as in fit; rows: read off these rows, which a private run never "
        "does.")] = "rows",
    scale: Annotated[str | None, typer.Option(help="Units of distances, as in fit.")] = None,
    public_rows: Annotated[int | None, typer.Option("--rows", parser=whole, metavar="<int>", help="Number of rows that "
        "runs are told. Default: how many there are.")] = None,
    columns: Annotated[str | None, typer.Option(help="Columns to use, separated by commas, as in fit.")] = None,
    missing: Annotated[str, typer.Option(help="Rows with missing or infinite cells: refuse or drop.")] = "refuse",
    rivals: Annotated[str | None, typer.Option(help="Packages to compare with, if installed: sklearn, "
        "diffprivlib.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes, each on one core; default: one per core.")] = None,
    out: Annotated[Path | None, typer.Option(help="A .jsonl file that keeps every finished run; if it exists, its "
        "study goes on.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw cost against epsilon: .png or .svg.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Compare methods on rows that are generated or public. NOT private: the figures tell about the rows."""
    from cloister.comparing import compare as compared
    from cloister.plotting.figures import ENDINGS
    from cloister.run.result import checked_target

    refuse_addresses(rows)
    if as_csv and as_json:
        raise InvalidInput("--csv and --json: give one of them")
    drawn = None if picture is None else checked_target(picture, ENDINGS, "pictures")
    kept = _scratch() if out is None else out
    with ending(lambda error: _again(kept, out is None), lambda: out is None and kept.exists()), bar("runs") as advance:
        study = compared(
            rows, k=k, epsilons=_numbers(epsilon, "--epsilon"), methods=names(methods), runs=runs, bounds=bounds,
            delta="auto" if delta == "auto" else _number(delta, "--delta"), public_rows=public_rows, scale=scale,
            columns=names(columns), missing=missing, rivals=names(rivals) or (), workers=workers, out=kept,
            progress=advance,
        )  # fmt: skip
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
        show(plain(text, keep="\n"))


def _scratch() -> Path:
    """Where runs are kept until they are printed, if nobody said where."""
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

"""``cloister compare``: methods beside one another on rows that one holds."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import attrs
import typer

from cloister.commands.common import AsJson, RowsOrAddress, console, names, print_json, share_or_word, show
from cloister.commands.option_groups import default_of, excludes, option_groups, with_start
from cloister.commands.options import DESCRIBING, METHOD, OUTPUT, PRIVACY, Config, Wanted, cli_option
from cloister.commands.program import ending, printing
from cloister.commands.progress import bar
from cloister.core.defaults import DELTA
from cloister.core.errors import InvalidInput
from cloister.rows.options import Reading

if TYPE_CHECKING:
    from cloister.lab.comparing import Study


@final
@attrs.frozen(kw_only=True)
class Contest:
    """Methods that are compared, and the budgets that they are compared at."""

    epsilons: Any = cli_option(
        "Privacy budgets in nats, separated by commas: 0.1,1.", PRIVACY, "--epsilon", kind=str | None
    )
    delta: Any = cli_option(
        "Probability of failure of the guarantee. Default: auto, 1 / (n ln n), as papers state figures, and not "
        f"{DELTA:g} as in fit: these rows are not secret, and methods with Gaussian noise can take part.",
        PRIVACY,
        kind=str | None,
    )
    methods: list[str] | None = cli_option(
        "Methods, separated by commas, each with options of its own if wanted: auto,fastlloyd:rounds=3:trust=local. "
        "Default: auto and all methods that it picks from.",
        METHOD,
        kind=str | None,
        read=names,
    )
    runs: int | None = cli_option("Runs per method and budget. Default: 10.", METHOD)
    rivals: list[str] | None = cli_option(
        "Packages to compare with, if installed: sklearn, diffprivlib.", METHOD, kind=str | None, read=names
    )


@option_groups
def compare(
    rows: RowsOrAddress,
    reading: Annotated[
        Reading,
        excludes("rows are held in memory by every process, each on one core", "engine", "scheduler", "threads"),
    ],
    asked: Annotated[
        Wanted,
        excludes("several are compared, by --epsilon, --delta and --methods of its own", "epsilon", "delta", "method"),
        excludes("each contender has its own: METHOD:name=value in --methods", "components", "options"),
        excludes("rows are in one place, and nobody pools them", "pooled"),
        excludes("costs are of centres, whatever describes their groups", *DESCRIBING),
        excludes("runs are independent, and figures are not private", "seed", "not_private"),
        default_of("public_rows", "the number of these rows"),
    ],
    contest: Contest,
    config: Config = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A .jsonl file that keeps every finished run; if it exists, its study goes on. Or a .csv file of the "
            "figures: until it is there, runs are kept in a .jsonl file beside it.",
            rich_help_panel=OUTPUT,
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
    from cloister.lab.comparing.conditions import READ
    from cloister.run.saving import checked_target, put
    from cloister.showing.plots import ENDINGS

    if as_csv and as_json:
        raise InvalidInput("--csv and --json: give one of them")
    reading, asked = with_start(reading, asked)
    if asked.k is None:
        raise InvalidInput("no k: give -k")
    if contest.epsilons is None:
        raise InvalidInput("no epsilon: give --epsilon, one or more: 0.1,1")
    drawn = None if picture is None else checked_target(picture, ENDINGS, "pictures")
    target = None if out is None else checked_target(out, (".jsonl", ".csv"), "studies")
    table = target if target is not None and target.suffix == ".csv" else None
    kept = _scratch() if target is None else target.with_suffix(".jsonl")
    passing = kept != out and not kept.exists()
    with ending(lambda error: _again(kept, out is None), lambda: passing and kept.exists()), bar("runs") as advance:
        study = compared(
            rows,
            k=asked.k,
            epsilons=_numbers(contest.epsilons, "--epsilon"),
            methods=contest.methods,
            runs=10 if contest.runs is None else contest.runs,
            bounds=READ if asked.bounds is None else asked.bounds,
            delta="auto" if contest.delta in (None, "auto") else _number(contest.delta, "--delta"),
            public_rows=asked.public_rows,
            scale=asked.scale,
            rows_per_user=asked.rows_per_user,
            zoom="auto" if asked.zoom is None else share_or_word(asked.zoom),
            trust=asked.trust,
            start=asked.start,
            rivals=contest.rivals or (),
            workers=reading.workers,
            out=kept,
            progress=advance,
            reading=attrs.evolve(reading, workers=None),
        )
        if drawn is not None:
            study.plot(drawn)
        if table is not None:
            put(table, study.csv().encode())
    with printing(lambda: _again(kept, out is None)):
        _print(study, as_csv, as_json)
        for what, place in (("figures", table), ("picture", drawn)):
            if place is not None and not (as_csv or as_json):
                show(f"\n{what} (NOT private) saved to {place}")
    if passing:
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


def _number(given: Any, flag: str) -> float:
    first, *more = _numbers(given, flag)
    if more:
        raise InvalidInput(f"{flag} is {given!r}: give one number")
    return first


def _numbers(given: Any, flag: str) -> list[float]:
    """Numbers of a flag, or of a config file."""
    parts = given.split(",") if isinstance(given, str) else given if isinstance(given, list) else [given]
    try:
        if any(isinstance(part, bool) for part in parts):
            raise TypeError
        return [float(part) for part in parts]
    except (TypeError, ValueError):
        raise InvalidInput(f"{flag} is {given!r}: give numbers, separated by commas") from None

"""``cloister compare``: a study of methods on rows that are not secret."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import attrs

from cloister.commands.cli_option import METHOD, OUTPUT, PRIVACY, cli_option
from cloister.commands.common import AsJson, RowsOrAddress, console, print_json, share_or_word, show
from cloister.commands.names import split_names
from cloister.commands.option_groups import default_of, excludes, option_groups, with_start
from cloister.commands.options import DESCRIBING, Config, RunOptions
from cloister.commands.program import ending, printing
from cloister.commands.progress import bar
from cloister.core.defaults import DELTA
from cloister.core.errors import InvalidInput
from cloister.rows.options import Reading

if TYPE_CHECKING:
    from cloister.lab.comparing import Study


@final
@attrs.frozen(kw_only=True)
class StudyOptions:
    """Methods that are compared, their budgets, and the destination of the figures."""

    epsilons: Any = cli_option(
        "Privacy budgets in nats, separated by commas: 0.1,1.", PRIVACY, "--epsilon", kind=str | None
    )
    delta: Any = cli_option(
        "Probability that the guarantee fails. Default: auto, 1 / (n ln n) as in papers, and not "
        f"{DELTA:g} as in fit: these rows are not secret, and methods with Gaussian noise can take part.",
        PRIVACY,
        kind=str | None,
    )
    methods: list[str] | None = cli_option(
        "Methods separated by commas, each with its own options after colons: auto,fastlloyd:rounds=3:trust=local. "
        "Default: auto and all methods that it picks from.",
        METHOD,
        kind=str | None,
        read=split_names,
    )
    runs: int | None = cli_option("Runs per method and budget. Default: 10.", METHOD)
    rivals: list[str] | None = cli_option(
        "Other programs to compare with: names that 'cloister bench list' prints, or folders of entrants, separated by "
        "commas.",
        METHOD,
        kind=str | None,
        read=split_names,
    )
    out: Path | None = cli_option(
        "File for the study. A .jsonl file keeps every finished run, and an existing one is continued; a .csv file "
        "gets the figures, with the runs in a .jsonl file beside it until it is written.",
        OUTPUT,
        in_config=False,
    )
    picture: Path | None = cli_option("Plot cost against epsilon: .png or .svg.", OUTPUT, in_config=False)
    as_csv: bool = cli_option("Print CSV.", OUTPUT, "--csv", default=False, in_config=False)


@option_groups
def compare(
    rows: RowsOrAddress,
    reading: Annotated[
        Reading,
        excludes("every process holds the rows in memory, and uses one core", "engine", "scheduler", "threads"),
    ],
    options: Annotated[
        RunOptions,
        excludes("it compares several: give its own --epsilon, --delta and --methods", "epsilon", "delta", "method"),
        excludes("each contender has its own: METHOD:name=value in --methods", "components", "options"),
        excludes("rows are in one place, and no parties aggregate them", "pooled"),
        excludes("it compares the costs of centres alone", *DESCRIBING),
        excludes("runs are independent, and figures are not private", "seed", "not_private"),
        default_of("public_rows", "the number of these rows"),
    ],
    settings: StudyOptions,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Compare methods on generated or public rows.

    NOT private: the figures depend on the rows themselves.
    """
    from cloister.run.saving import checked_target, put
    from cloister.showing.plots import ENDINGS

    if settings.as_csv and as_json:
        raise InvalidInput("--csv and --json: give one of them")
    reading, options = with_start(reading, options)
    if options.k is None:
        raise InvalidInput("no k: give -k")
    if settings.epsilons is None:
        raise InvalidInput("no epsilon: give --epsilon, one or more: 0.1,1")
    picture = None if settings.picture is None else checked_target(settings.picture, ENDINGS, "pictures")
    target = None if settings.out is None else checked_target(settings.out, (".jsonl", ".csv"), "studies")
    table = target if target is not None and target.suffix == ".csv" else None
    runs = _scratch() if target is None else target.with_suffix(".jsonl")
    temporary = runs != settings.out and not runs.exists()
    again = partial(_again, runs, settings.out is None)
    with ending(lambda error: again(), lambda: temporary and runs.exists()), bar("runs") as advance:
        study = _study(rows, reading, options, settings, runs, advance)
        if picture is not None:
            study.plot(picture)
        if table is not None:
            put(table, study.csv().encode())
    with printing(again):
        _print(study, settings.as_csv, as_json)
        for noun, place in (("figures", table), ("picture", picture)):
            if place is not None and not (settings.as_csv or as_json):
                show(f"\n{noun} (NOT private) saved to {place}")
    if temporary:
        runs.unlink(missing_ok=True)


def _study(
    rows: list[str],
    reading: Reading,
    options: RunOptions,
    settings: StudyOptions,
    out: Path,
    progress: Callable[[int, int], None],
) -> Study:
    """Run the study. Args: out (file that keeps every finished run), progress."""
    from cloister.lab.comparing import Terms, compare as run
    from cloister.lab.comparing.terms import READ

    terms = Terms(
        k=options.k,
        bounds=READ if options.bounds is None else options.bounds,
        delta="auto" if settings.delta in (None, "auto") else _number(settings.delta, "--delta"),
        public_rows=options.public_rows,
        scale=options.scale,
        rows_per_user=options.rows_per_user,
        zoom="auto" if options.zoom is None else share_or_word(options.zoom),
        trust=options.trust,
        start=options.start,
    )
    return run(
        rows,
        terms,
        epsilons=_numbers(settings.epsilons, "--epsilon"),
        methods=settings.methods,
        runs=10 if settings.runs is None else settings.runs,
        rivals=settings.rivals or (),
        workers=reading.workers,
        out=out,
        progress=progress,
        reading=attrs.evolve(reading, workers=None),
    )


def _print(study: Study, as_csv: bool, as_json: bool) -> None:
    if as_json:
        print_json(study.as_dict())
    else:
        text = study.csv().removesuffix("\n") if as_csv else study.table(max(console().width, 100))
        show(text)


def _scratch() -> Path:
    """Return a new file in this folder, which keeps the runs until they are printed."""
    return Path(f"cloister-study-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.jsonl")


def _again(runs: Path, unnamed: bool) -> str:
    """Say how to go on after an interruption. Args: runs (file of the finished runs), unnamed (without ``--out``)."""
    if not runs.exists():
        return "no run was finished: start it again"
    command = shlex.join(["cloister", *sys.argv[1:], *(["--out", str(runs)] if unnamed else [])])
    return f"finished runs are in {runs}: go on with {command}"


def _number(value: Any, flag: str) -> float:
    numbers = _numbers(value, flag)
    if len(numbers) > 1:
        raise InvalidInput(f"{flag} is {value!r}: give one number")
    return numbers[0]


def _numbers(value: Any, flag: str) -> list[float]:
    """Return the numbers of a flag or a config file. Raises: InvalidInput."""
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    try:
        if any(isinstance(part, bool) for part in parts):
            raise TypeError
        return [float(part) for part in parts]
    except (TypeError, ValueError):
        raise InvalidInput(f"{flag} is {value!r}: give numbers, separated by commas") from None

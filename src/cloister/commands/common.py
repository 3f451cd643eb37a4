"""Arguments that commands share, numbers and names as they are written there, and all printing."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from cloister.core.doubles import as_float
from cloister.core.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from cloister.run.result import Result

ADDRESS_HELP = (
    "Files of rows: Parquet, Arrow, CSV, NPY, NPZ, or a pattern in quotes; or a database's address, such as "
    "duckdb:///lake.db, with --table."
)
RowsOrAddress = Annotated[list[str], typer.Argument(help=ADDRESS_HELP)]
PlanFolder = Annotated[Path, typer.Argument(help="Folder of the plan.")]
PlanFile = Annotated[Path, typer.Argument(help="The plan that all parties hold: a TOML file.")]
Unsigned = Annotated[
    bool, typer.Option("--unsigned", help="Go without the parties' signatures of the plan: trust this copy of it.")
]
AcceptShares = Annotated[
    bool,
    typer.Option(
        "--accept-shares",
        help="Go on where who answered what is too far from the planned shares for chance, or what reports say from "
        "the law of reports.",
    ),
]
Robust = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Leave out what this share of the reports could have invented if they lied, e.g. 0.01. Groups as small "
        "are lost.",
    ),
]
NotPrivate = Annotated[
    bool,
    typer.Option(
        "--not-private", help="Allow a plan whose noise can be repeated (test_noise_seed): it protects nobody."
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Fail at the first file, report or person that would be refused.")
]
PartyName = Annotated[str, typer.Option("--party", help="This party's name in the plan and in its certificate.")]
Certificate = Annotated[
    Path, typer.Option("--cert", help="Certificate of this side; its key (.key), ca.pem and NAME.pool lie beside it.")
]
PrivateKey = Annotated[Path | None, typer.Option("--key", help="Its private key, if it is elsewhere.")]
Authority = Annotated[Path | None, typer.Option("--ca", help="The authority's certificate, if it is elsewhere.")]
Journal = Annotated[
    Path | None,
    typer.Option(
        "--journal", help="File to remember the session in: start again with it after a crash. Keep it secret."
    ),
]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0: any that is free.")]
OpenIt = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
GroupNames = Annotated[
    str | None,
    typer.Option(
        "--names",
        help="Names of groups, beside their numbers: 0=Frail,1=Young, or a .toml or .json file of such. Files of rows "
        "have them in a column 'group'.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

WIDEST = 24
"""Most characters of a heading that count: longer ones are cut."""

MOST_TABLES = 4
"""Most tables that a result's centres are printed in, if one is too wide for the terminal."""

EDGES = 3
"""Characters around a cell."""


def whole(text: str | int) -> int:
    """Parse a whole number, which may be written as 1e6; a default is one already. Raises: typer.BadParameter for
    anything else."""
    shown = repr(text) if len(str(text)) <= WIDEST else f"{str(text)[:WIDEST]!r}..."
    try:
        value = float(text) if "e" in str(text).lower() else int(text)
    except ValueError:
        raise typer.BadParameter(f"{shown} is not a whole number") from None
    if not as_float(value).is_integer():
        raise typer.BadParameter(f"{shown} is not a whole number that can be used")
    return int(value)


MOST_COLUMNS = 2**16
"""Most columns without a name: far more than any method finds centres in."""


def few(value: int | None) -> int | None:
    """A number of columns, if it can be. Raises: typer.BadParameter: it is larger than ``MOST_COLUMNS``."""
    if value is not None and value > MOST_COLUMNS:
        raise typer.BadParameter(f"give at most {MOST_COLUMNS} columns")
    return value


def one_budget(text: str | float) -> float:
    """Parse the budget of one run. Raises: typer.BadParameter for anything else, such as a list of budgets."""
    if "," in str(text):
        raise typer.BadParameter(f"{text!r} is a list, and one run has one budget: 'cloister compare' takes several")
    try:
        value = float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a valid float") from None
    if not math.isfinite(value):
        raise typer.BadParameter("give a finite number")
    return value


def seconds(text: str) -> float:
    """Parse a time to wait. Raises: typer.BadParameter for anything but a positive finite number."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise typer.BadParameter(f"{text!r} is not a positive number of seconds")
    return value


def number_or_text(text: str | None) -> Any:
    """A whole number; anything else as it is: ``run.method_selection`` takes ranges, and refuses what is none."""
    try:
        return text if text is None else int(text)
    except ValueError:
        return text


def share_or_word(value: Any) -> Any:
    """Return a share as a number; words, and what is nothing, as they are: ``run.layers.preprocessing`` checks them."""
    try:
        return value if isinstance(value, bool) else as_float(value)
    except (TypeError, ValueError):
        return value


def print_json(value: Any) -> None:
    show(json.dumps(value, indent=1))


def show(text: str) -> None:
    """Print a text, whose names are untrusted: no terminal takes one for a command. ``steady`` takes care of characters
    that it cannot encode."""
    print(plain(text, keep="\n"), flush=True)


def steady() -> None:
    """Write characters that an output cannot encode as escapes, so that no paid result is lost to a name; make an
    output that was closed before the start (``>&-``) fail like any other that cannot be written."""
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream: TextIO | None = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _unwritable(number))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _unwritable(number: int) -> TextIO:
    """A stream that cannot be written, in place of one that was closed: no file gets its number, or its words."""
    while (taken := os.open(os.devnull, os.O_RDONLY)) < number:
        pass
    return os.fdopen(taken, "w")


def console() -> Console:
    """A rich console without markup: names of columns and data sets are untrusted text."""
    from rich.console import Console

    return Console(markup=False, emoji=False, highlight=False)


def print_table(table: Table, on: Console) -> None:
    """Print a table at once, with what makes a terminal write bold; its cells are ``plain`` already."""
    with on.capture() as captured:
        on.print(table)
    print(captured.get(), end="", flush=True)


def print_result(result: Result, verbose: bool = True) -> None:
    """Print the centres as a table, then the privacy statement. Args: verbose (the budget by question)."""
    from cloister.run.method_selection import suggested
    from cloister.run.warnings import after

    terminal = console()
    tables = tables_of(result, [plain(name) for name in result.columns], terminal.width)
    tables[0].title = f"{len(result.centers)} private centres by {plain(result.method['name'])}"
    for table in tables:
        print_table(table, terminal)
    for warning in after(result):
        show(f"WARNING: {warning}.")
    if words := suggested(result.problem, result.details):
        show(words)
    show(result.privacy.text(brief=not verbose))


def tables_of(result: Result, names: Sequence[str], width: int) -> list[Table]:
    """Return the centres with their standard errors: a row per centre, the largest group first, or per column where
    that takes fewer tables below one another; where many would be needed, one with as many columns as fit, and how many
    more there are.

    Args: names (of the columns, as they can be printed), width (of the terminal, in characters).
    """
    from cloister.run.shown import center_texts, size_texts

    every, sizes, order = center_texts(result), size_texts(result), result.by_size
    texts = [every[i] for i in order]
    upright = [["centre", *(result.called[i] for i in order)]]
    if sizes is not None:
        upright.append(["rows (noisy)", *(sizes[i] for i in order)])
    fixed = len(upright)
    upright += [[name, *(row[j] for row in texts)] for j, name in enumerate(names)]
    turned = [list(cells) for cells in zip(*upright, strict=True)]
    by_centre, by_column = _parts(upright, width), _parts(turned, width)
    parts = by_centre if len(by_centre) == 1 else min(by_column, by_centre, key=len)
    if len(parts) <= MOST_TABLES:
        return [_table(part) for part in parts]
    shown = max(_room(upright, width - len("... 1000 more") - EDGES), fixed + 1)
    more = len(upright) - shown
    return [_table(upright[:shown], f"... {more} more" if more else "")]


def _parts(columns: list[list[str]], width: int) -> list[list[list[str]]]:
    """Return these columns as tables that fit, each with the first column and at least one more."""
    names, rest, parts = columns[0], columns[1:], list[list[list[str]]]()
    while rest:
        room = max(1, _room([names, *rest], width) - 1)
        parts.append([names, *rest[:room]])
        rest = rest[room:]
    return parts


def _room(columns: list[list[str]], width: int) -> int:
    """How many of these columns fit."""
    wide, fit = 1, 0
    for cells in columns:
        wide += EDGES + max(min(len(cells[0]), WIDEST), *map(len, cells[1:]))
        if wide > width:
            break
        fit += 1
    return fit


def _table(columns: list[list[str]], last: str = "") -> Table:
    """Args: columns (each its heading and its cells), last (heading of an empty one)."""
    from rich.table import Table

    table = Table()
    for cells in columns:
        table.add_column(cells[0], justify="right")
    if last:
        table.add_column(last)
    for row in zip(*(cells[1:] for cells in columns), strict=True):
        table.add_row(*row)
    return table


def print_saved(result: Result, target: Path | None, as_json: bool, verbose: bool = True) -> None:
    """Print a result for people or for programs. Args: target (where it is saved, if anywhere), verbose."""
    if as_json:
        print_json(result.as_dict())
        return
    print_result(result, verbose)
    if target is not None:
        show(f"\nsaved to {target}")


def say(text: str) -> None:
    """Print a message to stderr, for whoever runs the program; without a working stderr it is dropped."""
    try:
        print(plain(text, keep="\n"), file=sys.stderr, flush=True)
    except OSError:
        mute(sys.stderr)


def mute(stream: TextIO) -> None:
    """Redirect a broken output to the null device: at exit Python would flush it again, and complain."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def plain(text: str, keep: str = "") -> str:
    """Escape control characters: file names and plan text are untrusted. Args: keep (characters left as they are)."""
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)


def given_reports(paths: list[str]) -> list[Any]:
    """Paths of reports, and standard input for '-', which is read last. Raises: InvalidInput: it is closed."""
    if "-" in paths and sys.stdin is None:
        raise InvalidInput("standard input is closed: give files, or send reports into this program")
    return [path for path in paths if path != "-"] + [sys.stdin.buffer for path in paths if path == "-"][:1]


def tell_columns(population: Any) -> None:
    """Say which columns are used and which are left out, before anything is spent; nothing where none has a name."""
    if population.selection.by_name:
        say(plain(population.selection.words))


def told_once() -> Callable[[str], None]:
    """Function that says each of its texts once, as a note: a population tells the same in every round."""
    before = set[str]()

    def told(text: str) -> None:
        if text not in before:
            before.add(text)
            say(f"note: {plain(text)}")

    return told


def names(text: str | None) -> list[str] | None:
    """Split names at commas. Raises: InvalidInput: as ``parted``."""
    return None if text is None else parted(text, f"the names are {text!r}")


def parted(text: str, said: str) -> list[str]:
    """What stands between commas; in double quotes it may have commas, as a cell of CSV.

    Raises: InvalidInput: quotes that do not end where a part does. Args: said, of the text in that case.
    """
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True))
    except csv.Error:
        rows = []
    if text and len(rows) != 1:
        raise InvalidInput(f'{said}: part them with commas, and put one that has a comma in double quotes: "A, B",C')
    return [part.strip() for part in rows[0]] if rows else [""]

"""Arguments that commands share, parsing of numbers and names, and all printing."""

from __future__ import annotations

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

from cloister.commands.cli_option import OUTPUT
from cloister.core.doubles import as_float
from cloister.core.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from cloister.run.result import Result

ADDRESS_HELP = (
    "Files of rows (Parquet, Arrow, CSV, NPY, NPZ), patterns in quotes, or a database's address with --table, such as "
    "duckdb:///lake.db."
)
RowsOrAddress = Annotated[list[str], typer.Argument(help=ADDRESS_HELP)]
SavedResult = Annotated[Path, typer.Argument(help="Result saved by fit, decode, advance, join or drift.")]
PlanFolder = Annotated[Path, typer.Argument(help="Folder of the plan.")]
ReportFiles = Annotated[
    list[str],
    typer.Argument(help="Files or folders of reports or messages, patterns in quotes, or - for standard input."),
]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 picks a free one.")]
OpenIt = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
GroupNames = Annotated[
    str | None,
    typer.Option(
        "--names",
        help="Names of groups, shown beside their numbers (in files of rows as a column 'group'): 0=Frail,1=Young, "
        "or a .toml or .json file.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.", rich_help_panel=OUTPUT)]

WIDEST = 24
"""Maximum number of characters of a heading; longer ones are cut."""

MOST_TABLES = 4
"""Maximum number of tables for a result's centres, if one is too wide for the terminal."""

EDGES = 3
"""Characters around a cell."""


def parse_whole(text: str | int) -> int:
    """Parse a whole number, such as 1000 or 1e6. Raises: typer.BadParameter."""
    shown = repr(text) if len(str(text)) <= WIDEST else f"{str(text)[:WIDEST]!r}..."
    try:
        value = float(text) if "e" in str(text).lower() else int(text)
    except ValueError:
        raise typer.BadParameter(f"{shown} is not a whole number") from None
    if not as_float(value).is_integer():
        raise typer.BadParameter(f"{shown} is not a whole number that can be used")
    return int(value)


MOST_COLUMNS = 2**16
"""Maximum number of columns without names: far more than any method finds centres in."""


def check_dimension(value: int | None) -> int | None:
    """Return a number of columns. Raises: typer.BadParameter: it exceeds ``MOST_COLUMNS``."""
    if value is not None and value > MOST_COLUMNS:
        raise typer.BadParameter(f"give at most {MOST_COLUMNS} columns")
    return value


def parse_epsilon(text: str | float) -> float:
    """Parse the budget of one run. Raises: typer.BadParameter: it is a list of budgets, or no finite number."""
    if "," in str(text):
        raise typer.BadParameter(f"{text!r} is a list, and one run has one budget: 'cloister compare' takes several")
    try:
        value = float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a valid float") from None
    if not math.isfinite(value):
        raise typer.BadParameter("give a finite number")
    return value


def parse_seconds(text: str | float) -> float:
    """Parse a duration. Raises: typer.BadParameter: it is no positive finite number."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise typer.BadParameter(f"{text!r} is not a positive number of seconds")
    return value


def number_or_text(text: str | None) -> Any:
    """Return a whole number as one, and other text as it is (``run.method_selection`` reads ranges)."""
    try:
        return text if text is None else int(text)
    except ValueError:
        return text


def share_or_word(value: Any) -> Any:
    """Return a share as a number, and anything else as it is (``run.layers.preprocessing`` checks it)."""
    try:
        return value if isinstance(value, bool) else as_float(value)
    except (TypeError, ValueError):
        return value


def print_json(value: Any) -> None:
    """Print data as indented JSON."""
    show(json.dumps(value, indent=1))


def show(text: str) -> None:
    """Print a text with control characters escaped: its names are untrusted, and may hold commands to a terminal."""
    print(plain(text, keep="\n"), flush=True)


def harden_outputs() -> None:
    """Let both outputs escape characters that they cannot encode, and fail when they are closed (``>&-``).

    No paid result may be lost to a name of a column.
    """
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream: TextIO | None = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _unwritable(number))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _unwritable(number: int) -> TextIO:
    """Return a stream that cannot be written, in place of a closed one."""
    # it also occupies the descriptor, which the next opened file would get, and the output with it
    while (taken := os.open(os.devnull, os.O_RDONLY)) < number:
        pass
    return os.fdopen(taken, "w")


def console() -> Console:
    """Return a rich console without markup: names of columns and data sets are untrusted text."""
    from rich.console import Console

    return Console(markup=False, emoji=False, highlight=False)


def print_table(table: Table, on: Console) -> None:
    """Print a table in one write, with its bold headings; its cells are ``plain`` already."""
    with on.capture() as captured:
        on.print(table)
    print(captured.get(), end="", flush=True)


def print_result(result: Result, verbose: bool = True) -> None:
    """Print the centres as a table, then the privacy statement. Args: verbose (list the budget by question)."""
    from cloister.run.method_selection import suggested
    from cloister.run.warnings import after

    terminal = console()
    tables = tables_of(result, [plain(name) for name in result.columns], terminal.width)
    tables[0].title = f"{len(result.centers)} private centres by {plain(result.method['name'])}"
    for table in tables:
        print_table(table, terminal)
    for warning in after(result):
        show(f"WARNING: {warning}.")
    if suggestion := suggested(result.problem, result.details):
        show(suggestion)
    show(result.privacy.text(brief=not verbose))


def tables_of(result: Result, names: Sequence[str], width: int) -> list[Table]:
    """Return the centres with their standard errors as tables, the largest group first.

    A row is a centre, or a column where that takes fewer tables. Where more than ``MOST_TABLES`` would be needed, there
    is one, with as many columns as fit and the number of the others.

    Args:
        result: the result.
        names: names of the columns, as they can be printed.
        width: of the terminal, in characters.
    """
    from cloister.run.shown import center_texts, size_texts

    coordinates, sizes, order = center_texts(result), size_texts(result), result.by_size
    texts = [coordinates[i] for i in order]
    upright = [["centre", *(result.called[i] for i in order)]]
    if sizes is not None:
        upright.append(["rows (noisy)", *(sizes[i] for i in order)])
    fixed = len(upright)
    upright += [[name, *(row[j] for row in texts)] for j, name in enumerate(names)]
    transposed = [list(cells) for cells in zip(*upright, strict=True)]
    by_centre, by_column = _parts(upright, width), _parts(transposed, width)
    parts = by_centre if len(by_centre) == 1 else min(by_column, by_centre, key=len)
    if len(parts) <= MOST_TABLES:
        return [_table(part) for part in parts]
    shown = max(_room(upright, width - len("... 1000 more") - EDGES), fixed + 1)
    hidden = len(upright) - shown
    return [_table(upright[:shown], f"... {hidden} more" if hidden else "")]


def _parts(columns: list[list[str]], width: int) -> list[list[list[str]]]:
    """Split columns into tables that fit, each with the first column and at least one more."""
    names, remaining, parts = columns[0], columns[1:], list[list[list[str]]]()
    while remaining:
        room = max(1, _room([names, *remaining], width) - 1)
        parts.append([names, *remaining[:room]])
        remaining = remaining[room:]
    return parts


def _room(columns: list[list[str]], width: int) -> int:
    """Return the number of these columns that fit."""
    wide, fit = 1, 0
    for cells in columns:
        wide += EDGES + max(min(len(cells[0]), WIDEST), *map(len, cells[1:]))
        if wide > width:
            break
        fit += 1
    return fit


def _table(columns: list[list[str]], last: str = "") -> Table:
    """Return a table. Args: columns (each its heading and its cells), last (heading of an empty one)."""
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
    """Print a result, for people or as JSON. Args: target (file that it is saved in, if any), verbose."""
    if as_json:
        print_json(result.as_dict())
        return
    print_result(result, verbose)
    if target is not None:
        show(f"\nsaved to {target}")


def say(text: str) -> None:
    """Print a message to stderr, with control characters escaped; without a working stderr it is dropped."""
    try:
        print(plain(text, keep="\n"), file=sys.stderr, flush=True)
    except OSError:
        mute(sys.stderr)


def mute(stream: TextIO) -> None:
    """Redirect a broken output to the null device, since Python flushes it again at exit, and complains."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def plain(text: str, keep: str = "") -> str:
    """Escape control characters of untrusted text. Args: keep (characters that are left as they are)."""
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)


def given_reports(paths: list[str]) -> list[Any]:
    """Return the paths, and standard input for '-', which is read last. Raises: InvalidInput: it is closed."""
    if "-" in paths and sys.stdin is None:
        raise InvalidInput("standard input is closed: give files, or send reports into this program")
    return [path for path in paths if path != "-"] + [sys.stdin.buffer for path in paths if path == "-"][:1]


def tell_columns(population: Any) -> None:
    """Say which columns are used and which are left out, unless none has a name."""
    if population.selection.by_name:
        say(plain(population.selection.words))


def notes_once() -> Callable[[str], None]:
    """Return a function that says each of its texts once, as a note: a population repeats them in every round."""
    notes = set[str]()

    def note(text: str) -> None:
        if text not in notes:
            notes.add(text)
            say(f"note: {plain(text)}")

    return note

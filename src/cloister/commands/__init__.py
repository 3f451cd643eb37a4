"""Commands of both sides of the trust boundary: one file each. ``cli`` registers them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloister.core.errors import InvalidInput

if TYPE_CHECKING:
    from cloister.core.results import Result

Rows = Annotated[
    list[str], typer.Argument(help="Files of rows: Parquet, Arrow, CSV, NPY, NPZ, or a pattern in quotes.")
]
PlanFolder = Annotated[Path, typer.Argument(help="Folder of the plan.")]
PlanFile = Annotated[Path, typer.Argument(help="The plan that all parties hold: a TOML file.")]
Columns = Annotated[
    str | None, typer.Option(help="Columns to use, separated by commas; default: all numeric ones (of CSV: all).")
]
Unsigned = Annotated[
    bool, typer.Option("--unsigned", help="Go without the parties' signatures of the plan: trust this copy of it.")
]
AcceptShares = Annotated[
    bool,
    typer.Option(
        "--accept-shares",
        help="Go on where the numbers who answered a question are too far from its planned share for chance.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def whole(text: str) -> int:
    """A whole number, which may be written as 1e6. Raises: typer.BadParameter for anything else."""
    try:
        value = float(text) if "e" in text.lower() else int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a whole number") from None
    if not float(value).is_integer():
        raise typer.BadParameter(f"{text!r} is not a whole number")
    return int(value)


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=1))


def print_result(result: Result) -> None:
    """Centres as a table, then what was promised."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    shown = min(len(result.columns), max(3, (console.width - 30) // 13))
    table = Table(title=f"{len(result.centers)} private centres by {result.method['name']}")
    table.add_column("centre", justify="right")
    if result.weights is not None:
        table.add_column("rows (noisy)", justify="right")
    for name in result.columns[:shown]:
        table.add_column(name, justify="right")
    if shown < len(result.columns):
        table.add_column(f"... {len(result.columns) - shown} more")
    for i, center in enumerate(result.centers):
        weight = [] if result.weights is None else [f"{result.weights[i]:.0f}"]
        table.add_row(str(i), *weight, *(f"{v:.6g}" for v in center[:shown]))
    console.print(table)
    if result.weights is not None and (empty := int((result.weights < result.weights.mean() / 100).sum())):
        typer.echo(
            f"{empty} of {len(result.centers)} centres hold hardly any rows by their noisy counts: fewer centres, narrower bounds "
            "or more budget would use them better."
        )
    typer.echo(result.privacy.text())


def say(text: str) -> None:
    """Tell the person who runs the program, not whoever reads its output."""
    typer.echo(plain(text, keep="\n"), err=True)


def plain(text: str, keep: str = "") -> str:
    """Text without what a terminal would obey: names of files, and what stands in a plan, are other people's. Args: keep (as they are)."""
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)


@contextmanager
def event_log(path: Path | None) -> Iterator[Callable[[dict[str, Any]], None]]:
    """What writes an event as a line of JSON, with the time, to a file that grows; without a path nothing is written.

    Raises:
        InvalidInput: the file cannot be written.
    """
    if path is None:
        yield lambda entry: None
        return
    try:
        file = path.open("a", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror or error}") from error
    with file:

        def write(entry: dict[str, Any]) -> None:
            file.write(json.dumps({"time": round(time.time(), 3), **entry}) + "\n")
            file.flush()

        yield write


def pairs(items: list[str] | None, flag: str) -> dict[str, str]:
    """Repeated name=value flags. Raises: InvalidInput for anything else, and for one name with two values."""
    found = dict[str, str]()
    for item in items or []:
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            raise InvalidInput(f"{flag} takes name=value, not '{item}'")
        if found.setdefault(name, value) != value:
            raise InvalidInput(f"{flag} {name} was given twice, with different values")
    return found


def names(text: str | None) -> list[str] | None:
    """Names separated by commas."""
    return None if text is None else [name.strip() for name in text.split(",")]


@contextmanager
def progress(what: str) -> Iterator[Callable[[int], None]]:
    """A count of rows on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda n: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda n: bar.advance(task, n)

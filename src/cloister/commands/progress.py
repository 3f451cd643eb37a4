"""A progress bar for passes over rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloister.run.request import PreparedRun


@contextmanager
def progress() -> Iterator[tuple[Callable[[int], None] | None, Callable[[PreparedRun, int], None] | None]]:
    """A progress bar on a terminal, nothing elsewhere. Its total is the public number of rows times rounds."""
    if not sys.stderr.isatty():
        yield None, None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("reading", total=None)
        yield (
            lambda n: bar.advance(task, n),
            lambda plan, rounds: bar.update(
                task, description=f"{rounds} rounds", total=None if plan.rows is None else rounds * plan.rows
            ),
        )


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar for so many of so many, with the time that is left, on a terminal; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)

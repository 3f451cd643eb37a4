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
